//! Sessions: saved contexts and what becomes one.

pub mod import;
