//! Secrets: what agents produce is kept, told and sent without them.

mod appended;
mod false_positives;
mod fixture;
mod planted;
mod scrubbed;
pub mod secrets;
mod stored;
mod tools;
