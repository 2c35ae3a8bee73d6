//! Secrets: what agents produce is kept, told and sent without them.

mod given;
mod plain;
mod planted;
mod rig;
pub mod secrets;
mod tools;
