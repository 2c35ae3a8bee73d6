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
            let head = found.head.as_deref().map(|head| format!("; newest {}", sanitize::one_line(head)));
            app.stdout.status_line(&format!(
                "{}, hash chain intact{}",
                pluralize(found.rows, "entry"),
                head.unwrap_or_default()
            ))
        }
        (false, at) => {
            let at = at.map_or_else(String::new, |at| format!("entry {at}: "));
            Err(Error::failed(format!(
                "the audit log was changed: {at}{why} ({} in total)",
                pluralize(found.rows, "entry")
            ))
            .with_hint("another program changed db/chorus.db, or an older copy of it was restored"))
        }
    }
}
