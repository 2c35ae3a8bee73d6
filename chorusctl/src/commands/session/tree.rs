//! `chorusctl session tree`: draws the sessions of an agent as a tree.

use std::collections::HashMap;

use chorus_proto::methods::session_branching::{Tree, TreeGap, TreeLive, TreeParams, TreeResult, TreeSession};
use uuid::Uuid;

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::print_pages;
use crate::ui::session_tree::{RowKind, layout};
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Stdout, Style, sanitize, terminal, text};

/// Show saved conversations as a tree
///
/// A continuation is shown below the conversation that it continues; branches are indented. `●` is the root of a tree, `◉` the live
/// conversation, and `✗` one that was deleted or belongs to another agent.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    let agent = app.agent();
    let params = |offset| TreeParams { agent: agent.clone(), offset, limit: None };
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
    print_tree(&mut app.stdout, &tree)
}

fn print_tree(out: &mut Stdout, tree: &TreeResult) -> Result<(), Error> {
    let nodes: Vec<_> = tree.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    let gaps: Vec<Uuid> = tree.gaps.iter().map(|gap| gap.id).collect();
    let named: HashMap<Uuid, &TreeGap> = tree.gaps.iter().map(|gap| (gap.id, gap)).collect();
    let boxes = out.is_terminal() && terminal::has_box_drawing();
    for row in layout(&nodes, &gaps, tree.live.as_ref().map(|live| live.hangs_from)) {
        let lead = row.prefix(boxes);
        match (row.kind, &tree.live) {
            (RowKind::Node(index), _) => print_session(out, &lead, &tree.sessions[index])?,
            (RowKind::MissingParent(id), _) => {
                print_line(out, &lead, "", &describe_gap(id, named.get(&id).copied()), "")?
            }
            (RowKind::Live, Some(context)) => print_live(out, &lead, context)?,
            (RowKind::Live, None) => {}
        }
    }
    Ok(())
}

fn print_session(out: &mut Stdout, lead: &str, session: &TreeSession) -> Result<(), Error> {
    let ago = out.clock().ago(session.saved_at);
    let facts = format!("{ago} · {} · {}", session.trigger.as_str(), pluralize(session.message_count, "message"));
    let mut about: String = session.tags.iter().map(|tag| format!("#{} ", sanitize::one_line(tag))).collect();
    if session.cycle {
        about.push_str("(cycle of parents) ");
    }
    match &session.corrupt {
        Some(reason) => about.push_str(&format!("unreadable file: {}", sanitize::one_line(reason))),
        None => about.push_str(&format::subject(session.description.as_deref(), session.summary.as_deref())),
    }
    print_line(out, lead, &sanitize::one_line(&session.short_id), &facts, &about)
}

fn print_live(out: &mut Stdout, lead: &str, live: &TreeLive) -> Result<(), Error> {
    let ago = out.clock().ago(live.last_activity_at);
    let unsaved = if live.unsaved == 0 { "all saved".to_owned() } else { format!("{} unsaved", live.unsaved) };
    print_line(out, lead, "live", &format!("{ago} · {}, {unsaved}", pluralize(live.messages, "message")), "")
}

fn describe_gap(id: Uuid, gap: Option<&TreeGap>) -> String {
    match gap.and_then(|gap| gap.agent_name.as_deref().zip(gap.session_id.as_deref())) {
        Some((agent, session)) => format!("{} of {}", sanitize::one_line(session), sanitize::one_line(agent)),
        None => format!("{id} (deleted)"),
    }
}

/// Prints one line of the tree, cut to the terminal's width.
fn print_line(out: &mut Stdout, lead: &str, name: &str, facts: &str, about: &str) -> Result<(), Error> {
    let gap = if name.is_empty() { "" } else { "  " };
    let end = if about.is_empty() { String::new() } else { format!("  {about}") };
    let used = text::width(lead) + text::width(name) + gap.len();
    let rest = format!("{facts}{end}");
    let rest = match out.width() {
        Some(width) => text::truncate(&rest, width.saturating_sub(used)).into_owned(),
        None => rest,
    };
    let (facts, about) = if rest.starts_with(facts) { rest.split_at(facts.len()) } else { (&*rest, "") };
    let line = format!("{lead}{}{gap}{}{about}", out.style(Style::Id, name), out.style(Style::Faint, facts));
    writeln!(out, "{}", line.trim_end())
}
