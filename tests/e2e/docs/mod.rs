//! The pages below docs/ agree with the programs.

mod client_example;
pub mod generated;
mod protocol_page;
mod schema;
mod tools_page;
