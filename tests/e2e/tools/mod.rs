//! The tools that a model may call.

mod conversations;
mod files;
pub mod git;
pub mod self_edit;
