//! What a conversation was about, in a few of its own sentences: no model, no network, the same every time.

mod clean;
mod cues;
mod digest;
mod extractive;
mod fit;
mod outcome;
mod request;
mod sentence;

pub use digest::Digest;
pub use extractive::{Extract, extract};
