//! Text on a terminal, for `chorusctl` and `chorusctl top`: sanitized, measured, cut and wrapped; numbers and durations with
//! their units; the rows of a tree of sessions.
//!
//! Invariant: pure functions of their arguments.
//!
//! Absent on purpose: colors, the terminal itself, the clock and the time zone.

#![warn(unreachable_pub)]

pub mod duration;
pub mod sanitize;
pub mod session_tree;
pub mod text;
pub mod units;
