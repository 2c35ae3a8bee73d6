//! `chorusctl audit verify`.

use chorus_proto::methods::audit::{Verify, VerifyParams, VerifyResult};

use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::safe;
use crate::ui::words::count;

/// Check that nothing in the log was changed or taken out
///
/// Walks the chain of hashes from the first row to the newest, and compares that with the one noted beside it. The exit status is 1
/// where something does not fit. docs/PERMISSIONS.md says how another program can do the same, and what is not found this way.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Checks it.
///
/// # Errors
/// What does not fit.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let raw = app.call_raw::<Verify>(&VerifyParams {})?;
    let found: VerifyResult = read(&raw)?;
    if app.out.format() != Format::Text {
        app.out.json_line(&raw)?;
        app.out.flush()?;
    }
    let why = safe::one_line(found.reason.as_deref().unwrap_or_default());
    match (found.intact, found.broken_at) {
        (true, _) if app.out.format() != Format::Text => Ok(()),
        (true, _) => {
            let head = found.head.as_deref().map(|head| format!("; the newest is {}", safe::one_line(head)));
            app.out.done(&format!(
                "{}, each fits the one before it{}",
                count(found.rows, "row"),
                head.unwrap_or_default()
            ))
        }
        (false, at) => {
            let at = at.map_or_else(String::new, |at| format!("row {at}: "));
            Err(Failure::failed(format!(
                "the log is not as it was written: {at}{why} ({} in all)",
                count(found.rows, "row")
            ))
            .hint("something other than chorusd has changed db/chorus.db, or an older copy was put in its place"))
        }
    }
}
