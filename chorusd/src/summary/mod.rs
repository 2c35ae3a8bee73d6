//! What a conversation was about: in a few of its own sentences ([`extract`]: no model, no network, the same every time), or in a
//! model's words: what it is asked ([`question`]) and what is kept of its answer ([`answer`]).
//! What becomes of two lines that come together: [`united`], [`account`].
//! What is kept of messages that leave a window: what rules find ([`findings`]), or what a model writes down ([`piece`] asks, [`read`]
//! takes the answer). What a fresh context has of the session before it: [`background`].

mod answer;
mod background;
mod clean;
mod cues;
mod digest;
mod extractive;
mod findings;
mod fit;
mod items;
mod merge;
mod outcome;
mod question;
mod request;
mod sentence;
mod structured;
mod transcript;

pub use answer::{Answer, Unusable, answer};
pub use background::{acknowledged, acknowledgement, background, restoration};
pub use digest::Digest;
pub use extractive::{Extract, extract};
pub use findings::{Findings, MOST, findings};
pub use merge::{Line, account, told, united};
pub use question::{lines_question, question};
pub use structured::{Found, Notes, Piece, form, newest, piece, read};
