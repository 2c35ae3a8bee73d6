//! The pages below docs/ agree with the programs.

mod client_example;
mod examples;
pub mod generated;
mod picture;
mod protocol_page;
mod schema;
mod screens;
mod tools_page;
