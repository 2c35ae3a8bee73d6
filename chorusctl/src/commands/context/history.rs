//! `chorusctl context history`: lists saved sessions in pages.

use chorus_proto::error::exit;
use chorus_proto::methods::agent;
use chorus_proto::methods::context::{History, HistoryParams, HistoryResult};
use chorus_proto::shell_word::shell_word;
use chorus_proto::{ConversationRef, SessionSource, TokenPair, Trigger};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::app::{App, parse_result};
use crate::commands::{format, project};
use crate::error::Error;
use crate::print_pages::{self, RawObject};
use crate::ui::stdout::OutputFormat;
use crate::ui::time::Clock;
use crate::ui::units::{format_token_count, pluralize};
use crate::ui::{Cell, Column, Stdout, Style, Table, sanitize, text};

/// Default number of sessions per page; the same as in the daemon.
const DEFAULT_PAGE_SIZE: u64 = 10;
/// Narrowest column of text; a narrower terminal wraps it itself.
const MIN_TEXT_WIDTH: usize = 20;
/// Narrowest terminal on which projects are shown.
const MIN_PROJECT_WIDTH: usize = 80;
/// The limit on characters of a project's name in the table.
const MAX_PROJECT_CHARS: usize = 14;
/// An imported conversation is live if its last message is newer than so many minutes.
const LIVE_MINUTES: i64 = 10;
/// Maximum number of sessions per page that the daemon accepts.
const MAX_PAGE_SIZE: u64 = 1_000;

/// List saved conversations, newest first
///
/// Lists the sessions of all conversations of an agent, or with --conversation those of one. Commands that take a session accept the
/// numbers shown here until the next `history`, and the underlined prefix of an ID.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// An agent, or words of the title, name, conversation or tags [default: the current agent, and imported conversations]
    #[arg(value_name = "AGENT|WORD", id = "whose")]
    named: Vec<String>,
    /// Sessions of all agents, including deleted ones
    #[arg(long)]
    pub all_agents: bool,
    /// Page to show, starting at 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub page: Option<u64>,
    /// Sessions per page [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only conversations since then: 7d, 1h30m, yesterday, or a date; imported ones by when they ended
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only sessions with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only conversations imported from this program, e.g. claude-code
    #[arg(long, value_name = "PROGRAM")]
    source: Option<String>,
    /// Only conversations held in this directory or below it (`.` is the current one), in one of this name, or sessions of agents of this
    /// project
    #[arg(long, value_name = "DIR|NAME")]
    project: Option<String>,
    /// Show the summary of each session
    #[arg(long)]
    long: bool,
}

/// The fields of a session that the table shows. Parsing all of them would take longer than the daemon needs to answer.
#[derive(Debug, Deserialize)]
struct SessionRow {
    session_id: String,
    short_id: String,
    unique_prefix: Option<String>,
    agent_name: String,
    conversation: Option<ConversationRef>,
    source: Option<SessionSource>,
    saved_at: Timestamp,
    started_at: Timestamp,
    trigger: Trigger,
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

impl SessionRow {
    /// Returns when it was saved, or of an imported conversation when it ended. Imports of earlier versions only say when
    /// the conversation began.
    fn when(&self) -> Timestamp {
        match &self.source {
            Some(source) => source.ended_at,
            None if self.trigger == Trigger::Import => self.started_at,
            None => self.saved_at,
        }
    }

    /// Returns the name of the directory that an imported conversation was held in.
    fn project_name(&self) -> Option<&str> {
        let project = self.source.as_ref()?.project.as_deref()?;
        project.rsplit('/').find(|part| !part.is_empty())
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let next_page = next_page_command(&args, app);
    let (agent, words) = split_agent(args.named, args.all_agents, app)?;
    let mut params = HistoryParams {
        conversation: app.global.conversation.clone(),
        own: agent.is_none() && app.global.agent.is_none(),
        agent: if args.all_agents { None } else { agent.or_else(|| app.agent()) },
        all_agents: args.all_agents,
        page: args.page,
        limit: args.limit,
        since: args.since,
        tag: args.tag,
        source: args.source,
        project: args.project.as_deref().map(project::absolute),
        words: (!words.is_empty()).then(|| words.join(" ")),
        keep_numbers: false,
    };
    if words.len() == 1 && params.agent.is_none() {
        refuse_unknown_word(app, &params, &words[0])?;
    }
    let whole = params.limit.is_none() && params.page.is_none();
    match app.stdout.format() {
        OutputFormat::Json if whole => print_all_pages(app, params),
        OutputFormat::Json => app.call_and_print::<History>(&params, |_, _| Ok(())),
        OutputFormat::Jsonl if whole => {
            params.limit = Some(MAX_PAGE_SIZE);
            for_each_page(app, params, |app, page| print_pages::print_entries(&mut app.stdout, page, "sessions"))
        }
        OutputFormat::Jsonl => {
            let raw = app.call_raw::<History>(&params)?;
            print_pages::print_entries(&mut app.stdout, &raw, "sessions")
        }
        OutputFormat::Text => {
            let size = params.limit.unwrap_or(DEFAULT_PAGE_SIZE);
            let result = parse_result(&app.call_raw::<History>(&params)?)?;
            print_page(app, &params, &result, (size, args.long), &next_page)
        }
    }
}

/// Splits what was named into an agent, if the first word names one, and words to look for.
fn split_agent(
    mut named: Vec<String>,
    all_agents: bool,
    app: &mut App,
) -> Result<(Option<String>, Vec<String>), Error> {
    if named.is_empty() || all_agents || app.global.agent.is_some() {
        return Ok((None, named));
    }
    let agents = app.call::<agent::List>(&agent::ListParams::default())?.agents;
    let agent = agents.iter().any(|agent| agent.name == named[0]).then(|| named.remove(0));
    Ok((agent, named))
}

/// Returns an error if a single word that is not an agent's name matches no session: it may be a mistyped name.
fn refuse_unknown_word(app: &mut App, params: &HistoryParams, word: &str) -> Result<(), Error> {
    let params =
        HistoryParams { limit: Some(1), page: None, since: None, tag: None, keep_numbers: true, ..params.clone() };
    if app.call::<History>(&params)?.total > 0 {
        return Ok(());
    }
    Err(Error::new(
        exit::NOT_FOUND,
        format!("no agent is called {word:?}, and no session has it in its title, name or tags"),
    )
    .with_hint("list them: `chorusctl agent list`, `chorusctl history`"))
}

fn for_each_page(
    app: &mut App,
    mut params: HistoryParams,
    mut take: impl FnMut(&mut App, &RawValue) -> Result<(), Error>,
) -> Result<(), Error> {
    for page in 1.. {
        params.page = Some(page);
        let raw = app.call_raw::<History>(&params)?;
        take(app, &raw)?;
        if parse_result::<RawObject>(&raw)?.get::<u64>("pages")? <= page {
            break;
        }
    }
    Ok(())
}

/// Prints all pages as one JSON value.
fn print_all_pages(app: &mut App, mut params: HistoryParams) -> Result<(), Error> {
    #[derive(Serialize)]
    struct AllPages {
        sessions: Vec<Box<RawValue>>,
        total: u64,
        page: u64,
        pages: u64,
    }
    params.limit = Some(MAX_PAGE_SIZE);
    let mut whole = AllPages { sessions: Vec::new(), total: 0, page: 1, pages: 1 };
    for_each_page(app, params, |_, page| {
        let page: RawObject = parse_result(page)?;
        whole.sessions.extend(page.get::<Vec<Box<RawValue>>>("sessions")?);
        whole.total = page.get("total")?;
        Ok(())
    })?;
    let json = serde_json::to_string(&whole).map_err(|error| Error::failed(error.to_string()))?;
    app.stdout.json(&json)?;
    app.stdout.text("\n")
}

fn print_page(
    app: &mut App,
    params: &HistoryParams,
    result: &HistoryResult<SessionRow>,
    (size, long): (u64, bool),
    next_page: &str,
) -> Result<(), Error> {
    if result.sessions.is_empty() {
        let filtered = params.since.is_some() || params.tag.is_some() || params.words.is_some();
        let filtered = filtered || params.source.is_some() || params.project.is_some();
        match result.total {
            0 if filtered => app.stderr.line("no sessions match"),
            0 => {
                app.stderr.line("no sessions yet");
                app.stderr.hint("chorusctl save, or chorusctl import FILE");
            }
            total => app.stderr.line(&format!(
                "no such page: {} on {}",
                pluralize(total, "session"),
                pluralize(result.pages, "page")
            )),
        }
        return Ok(());
    }
    let first = result.page.saturating_sub(1) * size + 1;
    let one = result.sessions.iter().all(|session| session.agent_name == result.sessions[0].agent_name);
    if long {
        write_long(&mut app.stdout, &result.sessions, first)?;
    } else {
        write_table(&mut app.stdout, &result.sessions, first, params.all_agents || !one)?;
    }
    let total = pluralize(result.total, "session");
    writeln!(app.stdout, "\npage {} of {} · {total}", result.page, result.pages)?;
    if result.page >= result.pages {
        return Ok(());
    }
    app.stdout.status_line(&format!("next page: `{next_page} --page {}`", result.page + 1))
}

/// Returns the command that was given, without its page.
fn next_page_command(args: &Args, app: &App) -> String {
    let mut words = vec!["chorusctl".to_owned(), "history".to_owned()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([format!("--{name}"), shell_word(&value).into_owned()]);
        }
    };
    option("agent", app.global.agent.clone());
    option("conversation", app.global.conversation.clone());
    option("limit", args.limit.map(|limit| limit.to_string()));
    option("since", args.since.clone());
    option("tag", args.tag.clone());
    option("source", args.source.clone());
    option("project", args.project.clone());
    let flags = [("--all-agents", args.all_agents), ("--long", args.long)];
    words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_owned()));
    words.extend(args.named.iter().map(|word| shell_word(word).into_owned()));
    words.join(" ")
}

fn write_table(out: &mut Stdout, sessions: &[SessionRow], first: u64, agents: bool) -> Result<(), Error> {
    let mut table = Table::new([
        Column::new("#").align_right(),
        Column::new("ID"),
        Column::new("WHEN"),
        Column::new(if agents { "AGENT" } else { "" }),
        Column::new("CONVERSATION"),
        Column::new("PROJECT"),
        Column::new("MESSAGES").align_right(),
        Column::new("TITLE").flexible(),
    ]);
    for (number, session) in (first..).zip(sessions) {
        let when = when(session, out.clock());
        table.add_row([
            number.to_string().into(),
            id_cell(session),
            when.into(),
            if agents { sanitize::one_line(&session.agent_name).into() } else { Cell::default() },
            conversation(session).into(),
            project_cell(session, out.width()),
            session.message_count.to_string().into(),
            title_cell(session),
        ]);
    }
    table.write(out)
}

/// Writes each session in a paragraph, with its summary.
fn write_long(out: &mut Stdout, sessions: &[SessionRow], first: u64) -> Result<(), Error> {
    for (number, session) in (first..).zip(sessions) {
        let id = sanitize::one_line(&session.short_id);
        let when = when(session, out.clock());
        let title = title(session);
        let (prefix, rest) = id.split_at(prefix_length(session, &id));
        let id = format!("{}{}", out.style(Style::IdPrefix, prefix), out.style(Style::Id, rest));
        let indent = 2 + number.to_string().len();
        let title_indent = indent + 2 + session.short_id.chars().count();
        let lead = format!("{number}  {id}  ");
        write_wrapped(out, (&lead, title_indent), &title, Style::Strong)?;
        let mut facts = vec![
            when,
            pluralize(session.message_count, "message"),
            format::who(&session.agent_name, session.conversation.as_ref().map(|conversation| &*conversation.name)),
            sanitize::one_line(&session.session_id),
        ];
        if let Some(source) = &session.source {
            facts.extend(source.project.as_deref().map(sanitize::one_line));
            facts.extend(source.branch.as_deref().map(|branch| format!("branch {}", sanitize::one_line(branch))));
        }
        let cost = session.restoration_tokens;
        if !cost.is_zero() {
            facts.push(format!("resume costs {}", format_token_count(cost.input.saturating_add(cost.output))));
        }
        write_wrapped(out, (&" ".repeat(indent), indent), &facts.join(" · "), Style::Faint)?;
        format::print_paragraph(out, session.summary.as_deref().unwrap_or_default())?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes `text` in `style` after `lead`, which is `indent` columns wide, wrapped at words to the right of it.
fn write_wrapped(out: &mut Stdout, (lead, indent): (&str, usize), text: &str, style: Style) -> Result<(), Error> {
    let room = out.width().map_or(usize::MAX, |width| width.saturating_sub(indent).max(MIN_TEXT_WIDTH));
    for (at, line) in text::wrap(text, room).iter().enumerate() {
        let lead = if at == 0 { lead.to_owned() } else { " ".repeat(indent) };
        writeln!(out, "{lead}{}", out.style(style, line))?;
    }
    Ok(())
}

/// Returns the name of the conversation that the session was saved from; empty for `main`.
fn conversation(session: &SessionRow) -> String {
    session.conversation.as_ref().map_or_else(String::new, |conversation| sanitize::one_line(&conversation.name))
}

/// Returns the name of the project, cut so that the title keeps most of the line. A narrow terminal has no room for it.
fn project_cell(session: &SessionRow, width: Option<usize>) -> Cell {
    let name = session.project_name().map(sanitize::one_line).unwrap_or_default();
    match width {
        Some(width) if width < MIN_PROJECT_WIDTH => Cell::default(),
        Some(_) => text::truncate(&name, MAX_PROJECT_CHARS).into_owned().into(),
        None => name.into(),
    }
}

/// Returns the id with the part marked that is enough to name the session.
/// Returns the time of a session, or `live` for a conversation to which its program has just added something.
fn when(session: &SessionRow, clock: &Clock) -> String {
    let is_live = session.source.as_ref().is_some_and(|source| clock.is_recent(source.ended_at, LIVE_MINUTES));
    if is_live { "live".to_owned() } else { clock.local_date_time(session.when()) }
}

fn id_cell(session: &SessionRow) -> Cell {
    let id = sanitize::one_line(&session.short_id);
    let length = prefix_length(session, &id);
    Cell::new(Style::Id, id).with_prefix(length, Style::IdPrefix)
}

fn prefix_length(session: &SessionRow, id: &str) -> usize {
    session.unique_prefix.as_deref().filter(|prefix| id.starts_with(prefix)).map_or(0, str::len)
}

/// Returns the title on one line: the description, else the start of the summary, else the name; then the tags.
fn title(session: &SessionRow) -> String {
    let title = format::title(session.description.as_deref(), session.summary.as_deref(), &session.session_id);
    let tags = session.tags.iter().map(|tag| format!(" #{}", sanitize::one_line(tag)));
    title + &tags.collect::<String>()
}

fn title_cell(session: &SessionRow) -> Cell {
    if let Some(reason) = &session.corrupt {
        return Cell::new(Style::Bad, format!("unreadable file: {}", sanitize::one_line(reason)));
    }
    let title = title(session);
    if session.available { title.into() } else { Cell::new(Style::Bad, format!("(file missing) {title}")) }
}
