//! The house rules that code can check.

mod files;
mod parts;
mod source;
