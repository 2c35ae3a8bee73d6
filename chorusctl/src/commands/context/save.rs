//! `chorusctl context save`.

use std::time::{Duration, Instant};

use chorus_proto::methods::context::{Save, SaveParams, SaveResult};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, Event, EventType, Session};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::{App, read};
use crate::commands::describe;
use crate::connect;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::time;

/// How long a generated summary is waited for.
const PATIENCE: Duration = Duration::from_secs(15);

/// Save the conversation; it goes on
///
/// The save is on disk when this answers. Its description names the file. A generated summary is waited for, for 15 seconds or
/// --timeout.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it was about, in a few words
    description: Option<String>,
    /// Clear the context afterwards
    #[arg(long)]
    clear: bool,
    /// Tag the session; may be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Do not wait for a generated summary
    #[arg(long)]
    no_wait: bool,
}

impl Args {
    /// A plain save.
    #[must_use]
    pub fn of(description: Option<String>) -> Self {
        Self { description, clear: false, tag: Vec::new(), no_wait: false }
    }
}

/// Saves it.
///
/// # Errors
/// Why it was not saved.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let Args { description, clear, tag, no_wait } = args;
    let params = SaveParams { agent: app.agent(), description, clear, tag };
    let raw = app.call_raw::<Save>(&params)?;
    let mut saved: SaveResult = read(&raw)?;
    let waited = saved.summary_pending && !no_wait;
    let patience = app.global.timeout.unwrap_or(PATIENCE);
    let late = Instant::now() + patience;
    if waited && wait_for_summary(app, &mut saved.session, late).is_err() {
        // What was asked for is done and durable.
        let after =
            if Instant::now() < late { "yet".into() } else { format!("after {}", time::exact(patience.as_secs())) };
        app.notes.warning(&format!("the summary is not there {after}; `chorusctl session show latest` has it later"));
    } else if waited {
        saved.summary_pending = false;
    }
    if app.out.format() != Format::Text {
        let typed = if waited { Some(to_raw_value(&saved).map_err(CallError::from)?) } else { None };
        return app.out.json_line(typed.as_deref().unwrap_or(&raw));
    }
    for warning in &saved.warnings {
        app.notes.warning(warning);
    }
    describe::saved(&mut app.out, &saved.session)?;
    if saved.cleared { app.out.done("the context is clear") } else { Ok(()) }
}

/// Takes description and summary into `session` when they are there.
fn wait_for_summary(app: &mut App, session: &mut Session, late: Instant) -> Result<(), Failure> {
    let id = session.header.id.to_string();
    // Listening first, and apart from the questions: no news can slip in between.
    let mut listener = connect::connect(app.places()?, &app.global)?;
    listener.call::<Subscribe>(&SubscribeParams { after: None })?;
    listener.set_deadline(Some(late));
    let now = GetParams { agent: app.agent(), session: id.clone(), limit: Some(0), ..GetParams::default() };
    let mut found = app.call::<Get>(&now)?;
    if found.summary_pending {
        while !announced(&listener.next_notification()?, &id) {}
        found = app.call::<Get>(&now)?;
    }
    *session = found.session;
    Ok(())
}

/// Whether a notification says that the summary of `id` is there.
fn announced((method, params): &(String, Box<RawValue>), id: &str) -> bool {
    let ready =
        |event: &Event| event.kind == EventType::SummaryReady && event.data.get("id").is_some_and(|of| of == id);
    method == "event" && serde_json::from_str(params.get()).is_ok_and(|event| ready(&event))
}
