//! `chorusctl audit verify`: checks the hash chain of the audit log.

use chorus_proto::methods::audit::{Verify, VerifyParams, VerifyResult};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Check that no entry was changed or removed
///
/// Verifies the hash chain from the first entry to the newest and compares it with the stored head. The exit status is 1 if they do not
/// match. docs/PERMISSIONS.md explains how to verify the chain with another program, and what this check cannot detect.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let raw = app.call_raw::<Verify>(&VerifyParams {})?;
    let found: VerifyResult = parse_result(&raw)?;
    if app.stdout.format() != OutputFormat::Text {
        app.stdout.json_line(&raw)?;
        app.stdout.flush()?;
    }
    let why = sanitize::one_line(found.reason.as_deref().unwrap_or_default());
    match (found.intact, found.broken_at) {
        (true, _) if app.stdout.format() != OutputFormat::Text => Ok(()),
        (true, _) => {
            let head = found.head.as_deref().map(|head| format!("; the newest is {}", sanitize::one_line(head)));
            app.stdout.status_line(&format!(
                "{}, each fits the one before it{}",
                pluralize(found.rows, "row"),
                head.unwrap_or_default()
            ))
        }
        (false, at) => {
            let at = at.map_or_else(String::new, |at| format!("row {at}: "));
            Err(Error::failed(format!(
                "the log is not as it was written: {at}{why} ({} in all)",
                pluralize(found.rows, "row")
            ))
            .with_hint("something other than chorusd has changed db/chorus.db, or an older copy was put in its place"))
        }
    }
}
