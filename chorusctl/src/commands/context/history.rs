//! `chorusctl context history`: lists saved sessions in pages.

mod session_table;

use chorus_proto::error::exit;
use chorus_proto::methods::agent;
use chorus_proto::methods::context::{History, HistoryParams, HistoryResult};
use chorus_proto::shell_word::shell_word;
use chorus_proto::{ConversationRef, SessionSource, TokenPair, Trigger};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::session_table::{prefix_length, title, when};
use crate::app::{App, parse_result};
use crate::commands::{format, project};
use crate::error::Error;
use crate::print_pages::{self, RawObject};
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{format_token_count, group_digits, pluralize};
use crate::ui::{RowArgs, Stdout, Style, Table, sanitize, text};

/// Default number of sessions per page; the same as in the daemon.
const DEFAULT_PAGE_SIZE: u64 = 10;
/// Narrowest column of text; a narrower terminal wraps it itself.
const MIN_TEXT_WIDTH: usize = 20;
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
    /// Only conversations before then, as --since
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
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
    /// Show each session whole, with its summary
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    rows: RowArgs,
}

/// The fields of a session that the table shows. Parsing all of them would take longer than the daemon needs to answer.
#[derive(Debug, Deserialize)]
pub(super) struct SessionRow {
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
    /// Its program has just added something, and capture follows it.
    #[serde(skip)]
    is_live: bool,
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
    let mut table = Table::arranged(session_table::COLUMNS, &args.rows, app.stdout.format())?;
    let next_page = next_page_command(&args, app);
    let (agent, words) = split_agent(args.named.clone(), args.all_agents, app)?;
    let mut params = HistoryParams {
        conversation: app.global.conversation.clone(),
        own: agent.is_none() && app.global.agent.is_none(),
        agent: if args.all_agents { None } else { agent.or_else(|| app.agent()) },
        all_agents: args.all_agents,
        page: args.page,
        limit: args.limit,
        since: args.since.clone(),
        until: args.until.clone(),
        tag: args.tag.clone(),
        source: args.source.clone(),
        project: project::of_daemon(args.project.as_deref(), app)?,
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
            if args.rows.needs_all_rows() {
                return print_arranged(app, table, params, (size, &args), &next_page);
            }
            let mut result = parse_result::<HistoryResult<SessionRow>>(&app.call_raw::<History>(&params)?)?;
            session_table::mark_live(app, &mut result.sessions);
            // With columns, `--long` prints the table whole.
            let long = args.long && args.rows.columns.is_empty();
            if args.long {
                table.print_whole();
            }
            let agents = args.all_agents || args.rows.names("agent");
            print_page(app, table, &params, &result, (size, long, agents), &next_page)
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
    let params = HistoryParams {
        limit: Some(1),
        page: None,
        since: None,
        until: None,
        tag: None,
        keep_numbers: true,
        ..params.clone()
    };
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

/// Prints a page of all sessions, filtered and sorted by the columns of the table. The numbers are those without that.
fn print_arranged(
    app: &mut App,
    mut table: Table,
    mut params: HistoryParams,
    (size, args): (u64, &Args),
    next_page: &str,
) -> Result<(), Error> {
    let page = params.page.unwrap_or(1);
    params.limit = Some(MAX_PAGE_SIZE);
    let mut sessions: Vec<SessionRow> = Vec::new();
    for_each_page(app, params, |_, page| {
        sessions.extend(parse_result::<HistoryResult<SessionRow>>(page)?.sessions);
        Ok(())
    })?;
    if args.long {
        table.print_whole();
    }
    session_table::mark_live(app, &mut sessions);
    let agents = args.all_agents || args.rows.names("agent") || has_several_agents(&sessions);
    session_table::add_rows(&mut table, &mut app.stdout, &sessions, 1, agents);
    let total = table.count_rows() as u64;
    let pages = total.div_ceil(size).max(1);
    table.limit_rows(usize::try_from(size).unwrap_or(usize::MAX));
    if total == 0 {
        app.stderr.line("no sessions match");
        return Ok(());
    }
    if page > pages {
        app.stderr.line(&format!("no such page: {} on {}", pluralize(total, "session"), pluralize(pages, "page")));
        return Ok(());
    }
    table.write_from(usize::try_from((page - 1) * size).unwrap_or(usize::MAX), &mut app.stdout)?;
    print_page_number(app, (page, pages, total), next_page)
}

fn has_several_agents(sessions: &[SessionRow]) -> bool {
    sessions.iter().any(|session| session.agent_name != sessions[0].agent_name)
}

/// Says which page it was, and how to see the next one.
fn print_page_number(app: &mut App, (page, pages, total): (u64, u64, u64), next_page: &str) -> Result<(), Error> {
    let (number, count) = (group_digits(page), group_digits(pages));
    writeln!(app.stdout, "\npage {number} of {count} · {}", pluralize(total, "session"))?;
    if page >= pages {
        return Ok(());
    }
    app.stdout.status_line(&format!("next page: `{next_page} --page {}`", page + 1))
}

fn print_page(
    app: &mut App,
    mut table: Table,
    params: &HistoryParams,
    result: &HistoryResult<SessionRow>,
    (size, long, agents): (u64, bool, bool),
    next_page: &str,
) -> Result<(), Error> {
    if result.sessions.is_empty() {
        let filtered =
            params.since.is_some() || params.until.is_some() || params.tag.is_some() || params.words.is_some();
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
    if long {
        write_long(&mut app.stdout, &result.sessions, first)?;
    } else {
        let agents = agents || has_several_agents(&result.sessions);
        session_table::add_rows(&mut table, &mut app.stdout, &result.sessions, first, agents);
        table.write(&mut app.stdout)?;
    }
    print_page_number(app, (result.page, result.pages, result.total), next_page)
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
    option("until", args.until.clone());
    option("tag", args.tag.clone());
    option("source", args.source.clone());
    option("project", args.project.clone());
    args.rows.to_words().into_iter().for_each(|(name, value)| option(name, Some(value)));
    let flags = [("--all-agents", args.all_agents), ("--long", args.long)];
    words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_owned()));
    words.extend(args.named.iter().map(|word| shell_word(word).into_owned()));
    words.join(" ")
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
