//! The tools that a model may call.

mod files;
pub mod git;
pub mod self_edit;
