//! Checks whether spans reach the collector.

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;

use super::{check, check_with};
use crate::ops::Ops;

const CHECK_NAME: &str = "traces";

/// Runs the check; none without a collector.
pub(super) fn checks(ops: &Ops) -> Option<Check> {
    let endpoint = ops.config.traces.endpoint.as_deref()?;
    let export = &ops.traces.export;
    if !export.is_built() {
        let text = "config.toml has a table [traces], but this chorusd was built without traces";
        return Some(check_with(
            CHECK_NAME,
            Verdict::Warn,
            text,
            "remove `endpoint`, or build chorusd with `--features otlp`",
        ));
    }
    let totals = export.totals();
    let counted = format!("{} sent, {} dropped", pluralize(totals.exported, "span"), totals.dropped);
    Some(match export.last_error() {
        None => check(CHECK_NAME, Verdict::Ok, format!("{endpoint}: {counted}")),
        Some(error) => check_with(
            CHECK_NAME,
            Verdict::Warn,
            format!("{endpoint}: {error} ({counted})"),
            "start the collector, or fix [traces] in config.toml and run `chorusctl daemon restart`",
        ),
    })
}
