//! What a model writes down of messages before they leave a window: asked for in a form ([`form`]), piece by piece of the transcript
//! ([`piece`]), and read with suspicion ([`read`]). Each item names the message that it came from, by a number that only the piece
//! knows; what names none is thrown away.

mod form;
mod found;
mod piece;
mod read;
#[cfg(test)]
mod tests;

pub use form::form;
pub use found::{Found, Notes};
pub use piece::{Piece, newest, piece};
pub use read::read;
