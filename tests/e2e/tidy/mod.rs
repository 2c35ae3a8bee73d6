//! The house rules that code can check.

mod crates;
mod files;
mod ledger;
mod modules;
pub mod source;
mod words;
