//! `chorusctl session tree`: draws the sessions of an agent that continue each other as a tree.

mod branch_points;
mod page;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use chorus_proto::methods::session_branching::{Tree, TreeGap, TreeLive, TreeParams, TreeResult, TreeSession};
use jiff::Timestamp;
use uuid::Uuid;

use self::branch_points::{BranchPoint, find_branch_points};
use crate::app::App;
use crate::commands::format;
use crate::commands::session::export::print_page_or_write;
use crate::error::Error;
use crate::print_pages;
use crate::ui::session_tree::{RowKind, layout};
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{group_digits, pluralize};
use crate::ui::{Stdout, Style, sanitize, terminal, text};

/// Narrowest title; on a narrower terminal the facts after it are cut.
const MIN_TITLE_WIDTH: usize = 16;

/// Show saved conversations as a tree
///
/// A continuation is shown below the conversation that it continues, with the message at which it branches off. Branches are indented.
/// Conversations that neither continue another one nor are continued are only shown with --all. `●` is the root of a tree, `◉` the live
/// conversation, and `✗` one that was deleted or belongs to another agent; in a pipe, and without UTF-8, they are `*`, `@` and `x`, and other conversations `o`.
///
/// With --html, the tree is a picture on a web page. Written into a directory of `export --as html`, it links to the pages there:
///
///   chorusctl session tree --html --output pages/tree.html
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also show conversations without a connection to others
    #[arg(long)]
    all: bool,
    /// Print the tree as a web page
    #[arg(long, conflicts_with_all = ["json", "format"])]
    html: bool,
    /// With --html: the file to write [default: standard output]
    #[arg(long, short, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let (agent, conversation, own) = (app.agent(), app.conversation(), app.global.agent.is_none());
    let params =
        |offset| TreeParams { conversation: conversation.clone(), agent: agent.clone(), own, offset, limit: None };
    if app.stdout.format() != OutputFormat::Text {
        return print_pages::print_all_pages::<Tree, _>(app, "sessions", &params(None), |offset| params(Some(offset)));
    }
    let mut tree = app.call::<Tree>(&params(None))?;
    while let Some(offset) = tree.next {
        let page = app.call::<Tree>(&params(Some(offset)))?;
        tree.sessions.extend(page.sessions);
        // Stop at a page whose next offset does not advance.
        tree.next = page.next.filter(|next| *next > offset);
    }
    if tree.sessions.is_empty() && tree.live.is_none() {
        app.stderr.line("no sessions yet");
        app.stderr.hint("chorusctl save, or chorusctl import FILE");
        return Ok(());
    }
    let hidden = if args.all { 0 } else { remove_unrelated(&mut tree) };
    if tree.sessions.is_empty() && tree.live.is_none() {
        app.stderr.line("no conversation continues another one");
        app.stderr.hint("list them: chorusctl history; branch from one: chorusctl session branch SESSION");
        return Ok(());
    }
    let points = find_branch_points(app, &tree.sessions);
    if args.html {
        let output = args.output.as_deref();
        let directory = output.map(|output| output.parent().unwrap_or(Path::new("")));
        // Without --agent, imported conversations of other agents are in the tree, too.
        let agent = app.named_agent();
        let page = page::render(&mut app.stdout, agent.as_deref(), &tree, &points, hidden, directory);
        return print_page_or_write(app, &page, output);
    }
    print_tree(&mut app.stdout, &tree, &points)?;
    if hidden > 0 {
        let line = format!("and {} without a continuation (all: chorusctl session tree --all)", group_digits(hidden));
        writeln!(app.stdout, "\n{}", app.stdout.style(Style::Faint, &line))?;
    }
    Ok(())
}

/// Removes sessions that neither continue another one nor are continued. Returns how many.
fn remove_unrelated(tree: &mut TreeResult) -> u64 {
    let above = tree.sessions.iter().map(|session| session.hangs_from);
    let continued: HashSet<Uuid> = above.chain(tree.live.iter().map(|live| live.hangs_from)).flatten().collect();
    let before = tree.sessions.len();
    tree.sessions.retain(|session| session.hangs_from.is_some() || session.cycle || continued.contains(&session.id));
    let hidden = (before - tree.sessions.len()) as u64;
    tree.live.take_if(|live| live.hangs_from.is_none() && (hidden > 0 || !tree.sessions.is_empty()));
    hidden
}

fn print_tree(out: &mut Stdout, tree: &TreeResult, points: &HashMap<Uuid, BranchPoint>) -> Result<(), Error> {
    let nodes: Vec<_> = tree.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    let gaps: Vec<Uuid> = tree.gaps.iter().map(|gap| gap.id).collect();
    let named: HashMap<Uuid, &TreeGap> = tree.gaps.iter().map(|gap| (gap.id, gap)).collect();
    let boxes = out.is_terminal() && terminal::has_box_drawing();
    for row in layout(&nodes, &gaps, tree.live.as_ref().map(|live| live.hangs_from)) {
        let lead = row.prefix(boxes);
        match (row.kind, &tree.live) {
            (RowKind::Node(index), _) => {
                let session = &tree.sessions[index];
                print_session(out, &lead, session, points.get(&session.id))?;
            }
            (RowKind::MissingParent(id), _) => {
                print_line(out, &lead, "", &describe_gap(id, named.get(&id).copied()), "")?
            }
            (RowKind::Live, Some(context)) => print_live(out, &lead, context)?,
            (RowKind::Live, None) => {}
        }
    }
    Ok(())
}

fn print_session(
    out: &mut Stdout,
    lead: &str,
    session: &TreeSession,
    point: Option<&BranchPoint>,
) -> Result<(), Error> {
    let (title, facts) = (session_title(session), session_facts(out, session, point, Dates::Relative));
    print_line(out, lead, &sanitize::one_line(&session.short_id), &title, &facts)
}

/// How times are written: a page is read later than it was written.
#[derive(Debug, Clone, Copy)]
enum Dates {
    Relative,
    Absolute,
}

impl Dates {
    fn format(self, out: &mut Stdout, at: Timestamp) -> String {
        match self {
            Self::Relative => out.clock().ago(at),
            Self::Absolute => out.clock().local_date_time(at),
        }
    }
}

/// Returns where a session leaves its parent, its length and when it was held.
fn session_facts(out: &mut Stdout, session: &TreeSession, point: Option<&BranchPoint>, dates: Dates) -> String {
    let when = dates.format(out, session.ended_at.unwrap_or(session.saved_at));
    let leaves = point.map(|point| point.to_string());
    let count = pluralize(session.message_count, "message");
    let cycle = session.cycle.then(|| "cycle of parents".to_owned());
    [leaves, Some(count), Some(when), cycle].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns the title of a session with its tags.
fn session_title(session: &TreeSession) -> String {
    let mut title = match &session.corrupt {
        Some(reason) => format!("unreadable file: {}", sanitize::one_line(reason)),
        None => format::title(session.description.as_deref(), session.summary.as_deref(), &session.session_id),
    };
    title.extend(session.tags.iter().map(|tag| format!(" #{}", sanitize::one_line(tag))));
    title
}

fn print_live(out: &mut Stdout, lead: &str, live: &TreeLive) -> Result<(), Error> {
    let facts = live_facts(out, live, Dates::Relative);
    print_line(out, lead, "live", "", &facts)
}

/// Returns the length of the live conversation, and when it changed last.
fn live_facts(out: &mut Stdout, live: &TreeLive, dates: Dates) -> String {
    let when = dates.format(out, live.last_activity_at);
    let unsaved = if live.unsaved == 0 {
        "no unsaved messages".to_owned()
    } else {
        format!("{} unsaved", group_digits(live.unsaved))
    };
    format!("{}, {unsaved} · {when}", pluralize(live.messages, "message"))
}

fn describe_gap(id: Uuid, gap: Option<&TreeGap>) -> String {
    match gap.and_then(|gap| gap.agent_name.as_deref().zip(gap.session_id.as_deref())) {
        Some((agent, session)) => format!("{} of {}", sanitize::one_line(session), sanitize::one_line(agent)),
        None => format!("{id} (deleted)"),
    }
}

/// Prints one line of the tree, cut to the terminal's width: first the title, then the facts.
fn print_line(out: &mut Stdout, lead: &str, name: &str, title: &str, facts: &str) -> Result<(), Error> {
    let name_gap = if name.is_empty() { "" } else { "  " };
    let facts_gap = if title.is_empty() || facts.is_empty() { "" } else { "  " };
    let room = out.width().map(|width| {
        let used = text::width(lead) + text::width(name) + name_gap.len() + facts_gap.len();
        width.saturating_sub(used)
    });
    let title_room = room.map(|room| room.saturating_sub(text::width(facts)).max(MIN_TITLE_WIDTH));
    let title = title_room.map_or_else(|| title.into(), |room| text::truncate(title, room));
    let facts_room = room.map(|room| room.saturating_sub(text::width(&title)));
    let facts = facts_room.map_or_else(|| facts.into(), |room| text::truncate(facts, room));
    let (name, facts) = (out.style(Style::Id, name), out.style(Style::Faint, &facts));
    writeln!(out, "{}", format!("{lead}{name}{name_gap}{title}{facts_gap}{facts}").trim_end())
}
