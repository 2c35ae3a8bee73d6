//! Text on a terminal, for `chorusctl` and `chorusctl top`: sanitized, measured, cut and wrapped; numbers and durations with
//! their units; the rows of a tree of sessions; meters and charts of bars.
//!
//! Invariant: pure functions of their arguments.
//!
//! Absent on purpose: colors, the terminal itself, the clock and the time zone.

#![warn(unreachable_pub)]

pub mod column_chart;
pub mod duration;
pub mod meter;
pub mod sanitize;
pub mod session_tree;
pub mod text;
pub mod units;
