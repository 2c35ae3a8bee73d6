//! What calls of models use and may use: every call is noted ([`Usage::note`]), and a cap stops before the next one
//! ([`Usage::may_call`]). A day is one of the machine's time zone.

mod calibration;
mod daily_totals;
mod day;
mod limits;
mod usage_row;

pub use calibration::{Calibration, Sample};
pub use daily_totals::UsageTracker;
pub use day::Day;
pub use limits::UsageLimits;
pub use usage_row::ModelCallInfo;

pub use crate::store::catalog::{CallKind, Spending, UsageRow};
