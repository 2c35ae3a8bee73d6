//! `chorusctl events`: lists events and follows new ones.

pub mod sentence;

use std::convert::Infallible;

use chorus_proto::CallError;
use chorus_proto::event::{Event, EventType, Lagged};
use chorus_proto::methods::events::{List, ListParams, ListResult, Subscribe, SubscribeParams};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app::{App, StreamingError};
use crate::commands::format;
use crate::error::Error;
use crate::reconnect::{Reconnection, is_lost};
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{sanitize, text};

/// Narrowest column of the texts, and where they stand if a terminal has no room for it.
const MIN_TEXT_WIDTH: usize = 20;
const NARROW_INDENT: usize = 8;

/// Show or follow events
///
/// Each line is one event: its number, time, type, agent (with the conversation, unless it is main) and what happened. --json also prints its data. The last 10,000 events are kept,
/// across restarts of the daemon.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep printing new events until interrupted
    #[arg(long)]
    follow: bool,
    /// Only events after this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.follow { follow_events(&args, app) } else { list_events(&args, app) }
}

fn list_events(args: &Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let mut after = args.after;
    let mut whole = ListResult { events: Vec::new(), lagged: 0, next: None };
    loop {
        let page = app.call::<List>(&ListParams { after, limit: None })?;
        whole.lagged += page.lagged;
        match app.stdout.format() {
            OutputFormat::Json => whole.events.extend(page.events),
            OutputFormat::Jsonl => page.events.iter().try_for_each(|event| print_json(app, event))?,
            OutputFormat::Text => {
                warn_lagged(app, page.lagged);
                page.events.iter().try_for_each(|event| print_event(app, event))?;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    if app.stdout.format() == OutputFormat::Json { print_json(app, &whole) } else { Ok(()) }
}

fn follow_events(args: &Args, app: &mut App) -> Result<(), Error> {
    let mut after = args.after;
    let mut reconnection = Reconnection::new(None);
    loop {
        match follow_once(app, &mut after) {
            // What happens until then comes afterwards.
            Err(StreamingError::Call(error)) if app.is_remote() && is_lost(&error) => {
                app.stdout.flush()?;
                reconnection.connect(app, error)?;
            }
            Err(error) => return Err(error.into()),
            Ok(never) => match never {},
        }
    }
}

/// Prints events until the connection ends. `after` becomes the number of the last one.
fn follow_once(app: &mut App, after: &mut Option<u64>) -> Result<Infallible, StreamingError> {
    let client = app.client()?;
    let newest = client.call::<Subscribe>(&SubscribeParams { after: *after })?.seq;
    client.set_timeout(None).map_err(CallError::from)?;
    // Later, those that have come since then are missing.
    after.get_or_insert(newest);
    loop {
        let (method, params) = app.client()?.next_notification()?;
        match (method.as_str(), app.stdout.format()) {
            ("event", format) => {
                let Position { seq, node, kind } = serde_json::from_str(params.get()).map_err(CallError::from)?;
                // Events of other nodes have numbers of their own, and pieces of a reply that of the event before.
                if node.is_none() && kind != EventType::TurnDelta {
                    if after.is_some_and(|after| seq <= after) {
                        continue;
                    }
                    *after = Some(seq);
                }
                match format {
                    OutputFormat::Text => print_event(app, &parse_params(&params)?)?,
                    _ => app.stdout.json_line(&params)?,
                }
            }
            ("lagged", _) => {
                let Lagged { missed } = parse_params(&params)?;
                warn_lagged(app, missed);
            }
            _ => {}
        }
        app.stdout.flush()?;
    }
}

/// The place of an event.
#[derive(Deserialize)]
struct Position {
    seq: u64,
    node: Option<String>,
    #[serde(rename = "type")]
    kind: EventType,
}

fn parse_params<T: serde::de::DeserializeOwned>(params: &RawValue) -> Result<T, Error> {
    serde_json::from_str(params.get()).map_err(|e| CallError::from(e).into())
}

fn warn_lagged(app: &mut App, missed: u64) {
    if missed > 0 {
        app.stderr.warning(&format!("missed {}: expired, or too many at once", pluralize(missed, "event")));
    }
}

fn print_json(app: &mut App, value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::value::to_raw_value(value).map_err(CallError::from)?;
    app.stdout.json_line(&text)
}

fn print_event(app: &mut App, event: &Event) -> Result<(), Error> {
    let mut agent = format::who(event.agent.as_deref().unwrap_or("-"), event.conversation.as_deref());
    // Of another node, whose numbers are others.
    let number = match &event.node {
        Some(node) => {
            agent = format!("{agent} on {}", sanitize::one_line(node));
            "-".to_owned()
        }
        None => event.seq.to_string(),
    };
    let about = sanitize::one_line(&sentence::describe(event));
    let time = app.stdout.clock().local_date_time(event.time);
    let mut lead = format!("{number:>6}  {time}  {:<17}  {agent}  ", event.kind.as_str());
    let mut indent = text::width(&lead);
    if app.stdout.width().is_some_and(|width| width < indent + MIN_TEXT_WIDTH) {
        // The text starts below the columns.
        writeln!(app.stdout, "{}", lead.trim_end())?;
        indent = NARROW_INDENT;
        lead = " ".repeat(indent);
    }
    for part in text::wrap(&about, app.stdout.width().map_or(usize::MAX, |width| width - indent)) {
        writeln!(app.stdout, "{lead}{part}")?;
        lead = " ".repeat(indent);
    }
    Ok(())
}
