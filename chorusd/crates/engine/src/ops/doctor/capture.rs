//! Checks capture.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{CaptureFailure, SourceStatus, UnreadLine};
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
            "the limit on inotify watches is reached: some conversations are captured up to 10 minutes late",
            "raise the limits: sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024",
        ));
    }
    Ok(checks)
}

fn problems(source: &SourceStatus) -> Vec<Check> {
    let name = format!("capture of {}", source.source);
    let unsaved = source.unsaved.unwrap_or(0);
    let failed = source.failure.as_ref().map(|failure| {
        let example = format!("for example {}: {}", failure.path, failure.reason);
        match source.failed - unsaved {
            0 => {
                let text = format!("{} could not be saved, {example}", pluralize(unsaved, "transcript"));
                check_with(&name, Verdict::Warn, text, "free disk space, then run: chorusctl capture on")
            }
            unread => {
                let text = format!("{} could not be read, {example}", pluralize(unread, "transcript"));
                let hint = "they are tried again every 10 minutes; see chorusctl capture status";
                check_with(&name, Verdict::Warn, text, hint)
            }
        }
    });
    let skipped = source.skipped.as_ref().map(|UnreadLine { path, line, reason }| {
        let lines = pluralize(source.skipped_lines, "line");
        let text = format!("{lines} could not be read, for example {path} line {line}: {reason}");
        check_with(&name, Verdict::Warn, text, "the rest of the conversation was captured; see docs/CAPTURE.md")
    });
    let unreadable = source.unreadable.iter().map(|CaptureFailure { path, reason }| {
        let hint = format!("allow it, then run: chorusctl capture on (for example chmod u+rx {path})");
        check_with(&name, Verdict::Warn, format!("cannot list {path}: {reason}"), &hint)
    });
    let silent = source.used_since.zip(source.last_written_at).map(|(used, written)| {
        let text = format!(
            "used on {}, but its last transcript was written on {}",
            used.strftime("%F"),
            written.strftime("%F")
        );
        check_with(&name, Verdict::Warn, text, "it may keep its conversations elsewhere now; see docs/CAPTURE.md")
    });
    unreadable.chain(failed).chain(skipped).chain(silent).collect()
}
