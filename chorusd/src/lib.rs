//! The Chorus daemon as a library.

pub mod session;
pub mod summary;
