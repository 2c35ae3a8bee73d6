//! `chorusctl context save`: saves the live context as a session.

use std::time::{Duration, Instant};

use chorus_proto::methods::context::{Save, SaveParams, SaveResult};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, Event, EventType, Session};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::{App, parse_result};
use crate::commands::format;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::time;

/// How long to wait for a generated summary unless `--timeout` is given.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(15);

/// Save a checkpoint (the conversation continues)
///
/// The checkpoint is on disk when the command returns. Its file is named after the description. The command waits
/// up to 15 seconds or --timeout for a generated summary.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Description, a few words; several are joined
    #[arg(value_name = "DESCRIPTION")]
    words: Vec<String>,
    /// Clear the live conversation afterwards
    #[arg(long)]
    clear: bool,
    /// Add a tag (repeatable)
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Do not wait for a generated summary
    #[arg(long)]
    no_wait: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let Args { words, clear, tag, no_wait } = args;
    let description = (!words.is_empty()).then(|| words.join(" "));
    let params = SaveParams { conversation: app.conversation(), agent: app.agent(), description, clear, tag };
    let raw = app.call_raw::<Save>(&params)?;
    let mut saved: SaveResult = parse_result(&raw)?;
    let waited = saved.summary_pending && !no_wait;
    let patience = summary_timeout(app.global.timeout);
    let late = Instant::now() + patience;
    if waited && wait_for_summary(app, &mut saved.session, late).is_err() {
        // The session is saved and durable; only its summary is late.
        let after = if Instant::now() < late {
            "yet".into()
        } else {
            format!("after {}", time::format_two_units(patience.as_secs()))
        };
        app.stderr.warning(&format!("the summary is not ready {after}; see it later: chorusctl show latest"));
    } else if waited {
        saved.summary_pending = false;
    }
    if app.stdout.format() != OutputFormat::Text {
        let typed = if waited { Some(to_raw_value(&saved).map_err(CallError::from)?) } else { None };
        return app.stdout.json_line(typed.as_deref().unwrap_or(&raw));
    }
    for warning in &saved.warnings {
        app.stderr.warning(warning);
    }
    format::print_saved(&mut app.stdout, &saved.session)?;
    if let Some(before) = &saved.unchanged_since {
        let line = format!("unchanged since {}; this is a copy of it", format::session_name(&app.stdout, before));
        app.stdout.status_line(&line)?;
    }
    if saved.cleared { app.stdout.status_line("cleared the conversation") } else { Ok(()) }
}

/// Returns how long to wait for a generated summary.
fn summary_timeout(given: Option<Duration>) -> Duration {
    given.unwrap_or(SUMMARY_TIMEOUT)
}

/// Waits until the summary is ready and updates `session` with it.
fn wait_for_summary(app: &mut App, session: &mut Session, late: Instant) -> Result<(), Error> {
    let id = session.header.id.to_string();
    // Subscribe first, on a second connection, so that no event is missed between the check and the wait.
    let mut listener = app.address()?.connect().map_err(CallError::from)?;
    listener.call::<Subscribe>(&SubscribeParams { after: None })?;
    listener.set_deadline(Some(late));
    let now = GetParams { agent: app.agent(), session: id.clone(), limit: Some(0), ..GetParams::default() };
    let mut found = app.call::<Get>(&now)?;
    if found.summary_pending {
        while !is_summary_ready(&listener.next_notification()?, &id) {}
        found = app.call::<Get>(&now)?;
    }
    *session = found.session;
    Ok(())
}

/// Returns true for the event that says that the summary of `id` is ready.
fn is_summary_ready((method, params): &(String, Box<RawValue>), id: &str) -> bool {
    let ready =
        |event: &Event| event.kind == EventType::SummaryReady && event.data.get("id").is_some_and(|of| of == id);
    method == "event" && serde_json::from_str(params.get()).is_ok_and(|event| ready(&event))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn a_summary_is_waited_for_as_long_as_the_help_says() {
        assert_eq!(summary_timeout(None), Duration::from_secs(15));
        assert_eq!(summary_timeout(Some(Duration::from_secs(2))), Duration::from_secs(2));
        let help = Args::augment_args(clap::Command::new("save")).get_long_about().map(ToString::to_string);
        assert!(help.as_deref().is_some_and(|help| help.contains("up to 15 seconds or --timeout")), "{help:?}");
    }
}
