//! `chorusctl events`.

use chorus_proto::event::{Event, Lagged};
use chorus_proto::methods::events::{List, ListParams, ListResult, Subscribe, SubscribeParams};
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::safe;
use crate::ui::words::count;

/// Show what happened
///
/// Events are numbered; the last 10,000 can be had again, over restarts of the daemon too.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens from now on, until interrupted
    #[arg(long)]
    follow: bool,
    /// Only events after this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
}

/// Shows them.
///
/// # Errors
/// Why they cannot be shown.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    if args.follow { follow(&args, app) } else { list(&args, app) }
}

fn list(args: &Args, app: &mut App) -> Result<(), Failure> {
    let mut after = args.after;
    let mut whole = ListResult { events: Vec::new(), lagged: 0, next: None };
    loop {
        let page = app.call::<List>(&ListParams { after, limit: None })?;
        whole.lagged += page.lagged;
        match app.out.format() {
            Format::Json => whole.events.extend(page.events),
            Format::Jsonl => page.events.iter().try_for_each(|event| json_line(app, event))?,
            Format::Text => {
                lagged(app, page.lagged);
                page.events.iter().try_for_each(|event| text_line(app, event))?;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    if app.out.format() == Format::Json { json_line(app, &whole) } else { Ok(()) }
}

fn follow(args: &Args, app: &mut App) -> Result<(), Failure> {
    app.call::<Subscribe>(&SubscribeParams { after: args.after })?;
    app.client()?.set_timeout(None).map_err(chorus_proto::CallError::from)?;
    loop {
        let (method, params) = app.client()?.next_notification()?;
        match (method.as_str(), app.out.format()) {
            ("event", Format::Text) => {
                let event: Event = read(&params)?;
                text_line(app, &event)?;
            }
            ("event", _) => app.out.json_line(&params)?,
            ("lagged", _) => {
                let Lagged { missed } = read(&params)?;
                lagged(app, missed);
            }
            _ => {}
        }
        app.out.flush()?;
    }
}

fn read<T: serde::de::DeserializeOwned>(params: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(params.get()).map_err(|e| chorus_proto::CallError::from(e).into())
}

fn lagged(app: &mut App, missed: u64) {
    if missed > 0 {
        app.notes.warning(&format!("{} missed: they are no longer kept, or came too fast", count(missed, "event")));
    }
}

fn json_line(app: &mut App, value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.out.json_line(&text)
}

fn text_line(app: &mut App, event: &Event) -> Result<(), Failure> {
    let agent = event.agent.as_deref().unwrap_or("-");
    let about = match event.data.get("text").and_then(serde_json::Value::as_str) {
        Some(text) => text.to_owned(),
        None => event.data.to_string(),
    };
    let (agent, about) = (safe::one_line(agent), safe::one_line(&about));
    let time = app.out.clock().local(event.time);
    writeln!(app.out, "{:>6}  {time}  {:<16}  {agent}  {about}", event.seq, event.kind.as_str())
}
