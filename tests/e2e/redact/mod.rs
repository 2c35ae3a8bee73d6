//! Secrets: what agents produce is kept, told and sent without them.

mod appended;
mod false_positives;
mod fixture;
mod planted;
pub mod secrets;
mod stored;
mod tools;
