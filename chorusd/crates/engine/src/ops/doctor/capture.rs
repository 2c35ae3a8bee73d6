//! Checks capture.

use chorus_base::error::Result;
use chorus_proto::methods::capture::SourceStatus;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;

use super::check_with;
use crate::capture::CaptureSource;
use crate::ops::Ops;

/// Checks whether everything that the programs write can be captured. Capture that works needs no line.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let status = ops.capture.describe(CaptureSource::ALL.to_vec()).await?;
    let mut checks: Vec<Check> = status.sources.iter().filter(|source| source.on).flat_map(problems).collect();
    if ops.capture.is_watch_limited() {
        checks.push(check_with(
            "capture",
            Verdict::Warn,
            "the system has no more inotify watches: some conversations are captured up to 10 minutes late",
            "raise the limit: sudo sysctl fs.inotify.max_user_watches=524288",
        ));
    }
    Ok(checks)
}

fn problems(source: &SourceStatus) -> Vec<Check> {
    let name = format!("capture of {}", source.source);
    let failed = source.failure.as_ref().map(|failure| {
        let files = pluralize(source.failed, "transcript");
        let text = format!("{files} could not be read, for example {}: {}", failure.path, failure.reason);
        check_with(&name, Verdict::Warn, text, "they are tried again every 10 minutes; see chorusctl capture status")
    });
    let silent = source.used_since.zip(source.last_written_at).map(|(used, written)| {
        let text = format!(
            "used on {}, but its last transcript was written on {}",
            used.strftime("%F"),
            written.strftime("%F")
        );
        check_with(&name, Verdict::Warn, text, "it may keep its conversations elsewhere now; see docs/CAPTURE.md")
    });
    failed.into_iter().chain(silent).collect()
}
