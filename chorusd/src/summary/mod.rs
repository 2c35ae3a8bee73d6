//! What a conversation was about: in a few of its own sentences ([`extract`]: no model, no network, the same every time), or in a
//! model's words: what it is asked ([`question`]) and what is kept of its answer ([`answer`]).

mod answer;
mod clean;
mod cues;
mod digest;
mod extractive;
mod fit;
mod outcome;
mod question;
mod request;
mod sentence;

pub use answer::{Answer, Unusable, answer};
pub use digest::Digest;
pub use extractive::{Extract, extract};
pub use question::question;
