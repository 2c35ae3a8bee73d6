//! Tables of Discord, a file each.

mod identifies;

pub use identifies::Identifies;
