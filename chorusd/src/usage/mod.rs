//! What calls of models use and may use: every call is noted ([`Usage::note`]), and a cap stops before the next one
//! ([`Usage::may_call`]). A day is one of the machine's time zone.

mod calibration;
mod call;
mod day;
mod limits;
mod today;

pub use calibration::{Calibration, Sample};
pub use call::Caller;
pub use day::Day;
pub use limits::Limits;
pub use today::Usage;

pub use crate::store::catalog::{CallKind, Spent, UsageRow};
