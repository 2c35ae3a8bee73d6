//! The house rules that code can check.

mod files;
mod parts;
pub mod source;
