//! The pages below docs/ agree with the programs.

mod client_example;
mod examples;
pub mod generated;
mod protocol_page;
mod schema;
mod tools_page;
