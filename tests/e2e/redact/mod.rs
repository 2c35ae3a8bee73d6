//! Secrets: what agents produce is kept, told and sent without them.

mod appended;
mod false_positives;
mod planted;
mod rig;
pub mod secrets;
mod tools;
