//! `send` and `send.cancel`.

pub mod cancel;
mod turn;

pub use turn::{may_begin, send};
