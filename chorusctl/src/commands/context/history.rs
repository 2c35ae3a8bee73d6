//! `chorusctl context history`.

use chorus_proto::TokenPair;
use chorus_proto::methods::context::{History, HistoryParams, HistoryResult};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::app::{App, read};
use crate::commands::describe;
use crate::error::Failure;
use crate::reply::{self, Fields};
use crate::ui::out::Format;
use crate::ui::words::{count, tokens};
use crate::ui::{Cell, Column, Out, Style, Table, safe};

/// Sessions to a page, as in the daemon.
const PAGE: u64 = 10;
/// Most sessions that one answer holds.
const MOST: u64 = 1_000;

/// List saved conversations, newest first
///
/// Wherever a session is asked for, the numbers shown here will do until the next `history`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Whose sessions
    #[arg(value_name = "AGENT", id = "whose")]
    agent: Option<String>,
    /// Sessions of every agent, destroyed ones too
    #[arg(long, conflicts_with = "whose")]
    pub all_agents: bool,
    /// Which page, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub page: Option<u64>,
    /// Sessions to a page [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only what was saved since: 7d, 1h30m, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only what carries this tag
    #[arg(long)]
    tag: Option<String>,
}

/// What a line shows of a session; reading all of it would take longer than the daemon needs for the answer.
#[derive(Debug, Deserialize)]
struct Line {
    session_id: String,
    short_id: String,
    agent_name: String,
    saved_at: Timestamp,
    message_count: u64,
    #[serde(default)]
    restoration_tokens: TokenPair,
    description: Option<String>,
    summary: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    available: bool,
    corrupt: Option<String>,
}

/// Lists them.
///
/// # Errors
/// Why there is no list.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let mut params = HistoryParams {
        agent: if args.all_agents { None } else { args.agent.or_else(|| app.agent()) },
        all_agents: args.all_agents,
        page: args.page,
        limit: args.limit,
        since: args.since,
        tag: args.tag,
    };
    let whole = params.limit.is_none() && params.page.is_none();
    match app.out.format() {
        Format::Json if whole => gather(app, params),
        Format::Json => app.answer::<History>(&params, |_, _| Ok(())),
        Format::Jsonl if whole => {
            params.limit = Some(MOST);
            each_page(app, params, |app, page| reply::lines(&mut app.out, page, "sessions"))
        }
        Format::Jsonl => {
            let raw = app.call_raw::<History>(&params)?;
            reply::lines(&mut app.out, &raw, "sessions")
        }
        Format::Text => {
            let size = params.limit.unwrap_or(PAGE);
            let result = read(&app.call_raw::<History>(&params)?)?;
            show(app, &params, &result, size)
        }
    }
}

fn each_page(
    app: &mut App,
    mut params: HistoryParams,
    mut take: impl FnMut(&mut App, &RawValue) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for page in 1.. {
        params.page = Some(page);
        let raw = app.call_raw::<History>(&params)?;
        take(app, &raw)?;
        if read::<Fields>(&raw)?.get::<u64>("pages")? <= page {
            break;
        }
    }
    Ok(())
}

/// All pages as one.
fn gather(app: &mut App, mut params: HistoryParams) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Whole {
        sessions: Vec<Box<RawValue>>,
        total: u64,
        page: u64,
        pages: u64,
    }
    params.limit = Some(MOST);
    let mut whole = Whole { sessions: Vec::new(), total: 0, page: 1, pages: 1 };
    each_page(app, params, |_, page| {
        let page: Fields = read(page)?;
        whole.sessions.extend(page.get::<Vec<Box<RawValue>>>("sessions")?);
        whole.total = page.get("total")?;
        Ok(())
    })?;
    let json = serde_json::to_string(&whole).map_err(|error| Failure::failed(error.to_string()))?;
    app.out.json(&json)?;
    app.out.text("\n")
}

fn show(app: &mut App, params: &HistoryParams, result: &HistoryResult<Line>, size: u64) -> Result<(), Failure> {
    if result.sessions.is_empty() {
        let filtered = params.since.is_some() || params.tag.is_some();
        match result.total {
            0 if filtered => app.notes.line("no sessions match"),
            0 => {
                app.notes.line("no sessions yet");
                app.notes.hint("chorusctl context save, or chorusctl session import FILE");
            }
            total => {
                app.notes.line(&format!("there are {} on {}", count(total, "session"), count(result.pages, "page")))
            }
        }
        return Ok(());
    }
    let first = result.page.saturating_sub(1) * size + 1;
    table(&mut app.out, &result.sessions, first, params.all_agents)?;
    let total = count(result.total, "session");
    writeln!(app.out, "\npage {} of {} · {total}", result.page, result.pages)
}

fn table(out: &mut Out, sessions: &[Line], first: u64, agents: bool) -> Result<(), Failure> {
    let mut table = Table::new([
        Column::new("#").right(),
        Column::new("ID"),
        Column::new("SAVED"),
        Column::new(if agents { "AGENT" } else { "" }),
        Column::new("MESSAGES").right(),
        Column::new("RESUMING").right().optional(),
        Column::new("ABOUT").flexible(),
    ]);
    for (number, session) in (first..).zip(sessions) {
        let saved = out.clock().local(session.saved_at);
        table.row([
            number.to_string().into(),
            Cell::new(Style::Id, safe::one_line(&session.short_id)),
            saved.into(),
            if agents { safe::one_line(&session.agent_name).into() } else { Cell::default() },
            session.message_count.to_string().into(),
            resuming(session.restoration_tokens).into(),
            about(session),
        ]);
    }
    table.write(out)
}

/// What resuming cost, in tokens; most sessions begin otherwise.
fn resuming(cost: TokenPair) -> String {
    if cost.is_zero() { String::new() } else { tokens(cost.input.saturating_add(cost.output)) }
}

fn about(session: &Line) -> Cell {
    if let Some(reason) = &session.corrupt {
        return Cell::new(Style::Bad, format!("unreadable: {}", safe::one_line(reason)));
    }
    let mut subject = describe::subject(session.description.as_deref(), session.summary.as_deref());
    if subject.is_empty() {
        subject = safe::one_line(&session.session_id);
    }
    for tag in &session.tags {
        subject = format!("#{} {subject}", safe::one_line(tag));
    }
    if session.available { subject.into() } else { Cell::new(Style::Bad, format!("(file gone) {subject}")) }
}
