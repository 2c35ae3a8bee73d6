//! Text as messages of Discord: pure.

mod answer;
mod fence;
mod split;
mod tail;
#[cfg(test)]
mod tests;

pub use answer::{Shown, shown};
pub use split::split;
pub use tail::tail;

/// Characters (code points) that a message takes.
pub const MOST: usize = 2000;
