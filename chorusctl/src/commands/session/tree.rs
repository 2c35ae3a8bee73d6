//! `chorusctl session tree`.

use std::collections::HashMap;

use chorus_proto::methods::tree::{Tree, TreeGap, TreeLive, TreeParams, TreeResult, TreeSession};
use uuid::Uuid;

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::reply;
use crate::ui::branches::{What, rows};
use crate::ui::out::Format;
use crate::ui::words::count;
use crate::ui::{Out, Style, safe, terminal, text};

/// Draw saved conversations as a tree: what goes on from what
///
/// A conversation that goes on stands below the one before it; what branches off is indented. A `●` begins a tree, a `◉` is the live
/// conversation, a `✗` one that is not there (any more), or is another agent's.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Draws it.
///
/// # Errors
/// Why there is none.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let agent = app.agent();
    let params = |offset| TreeParams { agent: agent.clone(), offset, limit: None };
    if app.out.format() != Format::Text {
        return reply::whole::<Tree, _>(app, "sessions", &params(None), |offset| params(Some(offset)));
    }
    let mut tree = app.call::<Tree>(&params(None))?;
    while let Some(offset) = tree.next {
        let page = app.call::<Tree>(&params(Some(offset)))?;
        tree.sessions.extend(page.sessions);
        // A page that leads nowhere ends it.
        tree.next = page.next.filter(|next| *next > offset);
    }
    if tree.sessions.is_empty() && tree.live.is_none() {
        app.notes.line("no sessions yet");
        app.notes.hint("chorusctl context save, or chorusctl session import FILE");
        return Ok(());
    }
    draw(&mut app.out, &tree)
}

fn draw(out: &mut Out, tree: &TreeResult) -> Result<(), Failure> {
    let nodes: Vec<_> = tree.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    let gaps: Vec<Uuid> = tree.gaps.iter().map(|gap| gap.id).collect();
    let named: HashMap<Uuid, &TreeGap> = tree.gaps.iter().map(|gap| (gap.id, gap)).collect();
    let boxes = out.terminal() && terminal::has_boxes();
    for row in rows(&nodes, &gaps, tree.live.as_ref().map(|live| live.hangs_from)) {
        let lead = row.lead(boxes);
        match (row.what, &tree.live) {
            (What::Node(index), _) => session(out, &lead, &tree.sessions[index])?,
            (What::Gap(id), _) => line(out, &lead, "", &gap(id, named.get(&id).copied()), "")?,
            (What::Leaf, Some(context)) => live(out, &lead, context)?,
            (What::Leaf, None) => {}
        }
    }
    Ok(())
}

fn session(out: &mut Out, lead: &str, session: &TreeSession) -> Result<(), Failure> {
    let ago = out.clock().ago(session.saved_at);
    let facts = format!("{ago} · {} · {}", session.trigger.as_str(), count(session.message_count, "message"));
    let mut about: String = session.tags.iter().map(|tag| format!("#{} ", safe::one_line(tag))).collect();
    if session.cycle {
        about.push_str("(its parent hangs from itself) ");
    }
    match &session.corrupt {
        Some(reason) => about.push_str(&format!("unreadable: {}", safe::one_line(reason))),
        None => about.push_str(&describe::subject(session.description.as_deref(), session.summary.as_deref())),
    }
    line(out, lead, &safe::one_line(&session.short_id), &facts, &about)
}

fn live(out: &mut Out, lead: &str, live: &TreeLive) -> Result<(), Failure> {
    let ago = out.clock().ago(live.last_activity_at);
    let unsaved = if live.unsaved == 0 { "all saved".to_owned() } else { format!("{} unsaved", live.unsaved) };
    line(out, lead, "live", &format!("{ago} · {}, {unsaved}", count(live.messages, "message")), "")
}

fn gap(id: Uuid, gap: Option<&TreeGap>) -> String {
    match gap.and_then(|gap| gap.agent_name.as_deref().zip(gap.session_id.as_deref())) {
        Some((agent, session)) => format!("{} of {}", safe::one_line(session), safe::one_line(agent)),
        None => format!("{id} is gone"),
    }
}

/// One line of the drawing, within the terminal.
fn line(out: &mut Out, lead: &str, name: &str, facts: &str, about: &str) -> Result<(), Failure> {
    let gap = if name.is_empty() { "" } else { "  " };
    let end = if about.is_empty() { String::new() } else { format!("  {about}") };
    let used = text::width(lead) + text::width(name) + gap.len();
    let rest = format!("{facts}{end}");
    let rest = match out.width() {
        Some(width) => text::truncate(&rest, width.saturating_sub(used)).into_owned(),
        None => rest,
    };
    let (facts, about) = if rest.starts_with(facts) { rest.split_at(facts.len()) } else { (&*rest, "") };
    let line = format!("{lead}{}{gap}{}{about}", out.paint(Style::Id, name), out.paint(Style::Faint, facts));
    writeln!(out, "{}", line.trim_end())
}
