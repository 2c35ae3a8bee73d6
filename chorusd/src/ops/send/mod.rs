//! `send` and `send.cancel`.

pub mod cancel;
mod turn;

pub use cancel::take_back;
pub use turn::{Origin, longest, may_begin, send, send_for, send_to, unfit};
