//! The house rules that code can check.

mod crates;
mod files;
mod ledger;
pub mod source;
mod words;
