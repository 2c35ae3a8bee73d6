//! The tools that a model may call.

mod conversations;
mod files;
pub mod git;
mod mcp;
pub mod self_edit;
