//! The tree of an agent's saved conversations: drawn beside the list of them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use chorus_daemon_client::Failure;
use chorus_proto::methods::session_branching::{Tree, TreeLive, TreeParams, TreeResult, TreeSession};
use chorus_terminal_text::session_tree::{RowKind, TreeRow, layout as lay_out};
use chorus_terminal_text::units::{count_messages, group_digits};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::rows::When;
use crate::app::{App, Daemon};
use crate::extract::{PathParams, QueryParams};
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::text::{age, agent_path, live_path, query, session_path, short, title};

/// Sessions on a page.
const SESSIONS: u64 = 200;
/// Height of a row in pixels; the style sheet has the same.
const ROW: usize = 48;
/// Width of a column in pixels.
const COLUMN: usize = 18;
/// The columns that are drawn; deeper branches share the last one.
const MAX_COLUMNS: usize = 8;

/// Sessions that are read at once when one of them is looked for.
const SESSIONS_AT_ONCE: u64 = 5000;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    offset: Option<u64>,
    /// The session that the page has to have.
    of: Option<Uuid>,
    conversation: Option<String>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathParams(agent): PathParams<String>,
    QueryParams(params): QueryParams<Params>,
) -> PageResult {
    let name = format!("Tree of {}", short(&agent, 64));
    let frame = Frame::new(&app, &name, Section::Conversations);
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let part = |offset: u64, limit: u64| TreeParams {
        agent: Some(agent.clone()),
        conversation: params.conversation.clone(),
        offset: Some(offset),
        limit: Some(limit),
        ..Default::default()
    };
    let offset = match params.offset {
        Some(offset) => offset,
        None => find_page(&mut daemon, params.of, &part).await?,
    };
    let tree = daemon.call::<Tree>(part(offset, SESSIONS)).await?;
    let when = When { now: overview.now, zone: &app.zone };
    let page_from =
        |offset: u64| query(&[("offset", Some(&offset.to_string())), ("conversation", params.conversation.as_deref())]);
    let links = html! {
        @if offset > 0 || tree.next.is_some() {
            nav.pages {
                @if offset > 0 { a rel="prev" href=(page_from(offset.saturating_sub(SESSIONS))) { "← Earlier" } }
                @if let Some(next) = tree.next { a rel="next" href=(page_from(next)) { "Later →" } }
            }
        }
    };
    let main = html! {
        div.heading {
            h1 { (name) }
            a href=(agent_path(&agent)) { "Conversations" }
            span.none { (group_digits(tree.total)) " saved" }
        }
        (links)
        div #tree data-live data-on="context. agent." data-src=(format!("{}/tree{}", agent_path(&agent), page_from(offset))) { (render(&tree, &agent, tree.next.is_none(), when)) }
        (links)
    };
    Ok(page(layout::page(&frame, &overview, &main)))
}

/// Returns the offset of the page that has this session; or the latest work, if it is `None` or is not in the tree.
async fn find_page(
    daemon: &mut Daemon,
    session: Option<Uuid>,
    part: &impl Fn(u64, u64) -> TreeParams,
) -> Result<u64, Failure> {
    let mut offset = 0;
    let mut latest = None;
    loop {
        let tree = daemon.call::<Tree>(part(offset, SESSIONS_AT_ONCE)).await?;
        for (at, other) in (offset..).zip(&tree.sessions) {
            if Some(other.id) == session {
                return Ok(page_of(at));
            }
            let hangs = tree.live.as_ref().is_some_and(|live| live.hangs_from == Some(other.id));
            latest = latest.max(Some((hangs, other.ended_at.unwrap_or(other.saved_at), at)));
        }
        let Some(next) = tree.next else {
            // A live conversation that continues nothing is the last of all.
            let is_apart = tree.live.as_ref().is_some_and(|live| live.hangs_from.is_none());
            let last = tree.total.saturating_sub(1);
            return Ok(page_of(latest.filter(|_| !is_apart).map_or(last, |(.., at)| at)));
        };
        offset = next;
    }
}

fn page_of(session: u64) -> u64 {
    session / SESSIONS * SESSIONS
}

fn render(tree: &TreeResult, agent: &str, is_last: bool, when: When<'_>) -> Markup {
    let nodes: Vec<_> = tree.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    let gaps: Vec<_> = tree.gaps.iter().map(|gap| gap.id).collect();
    // The live context hangs from a session of the last page; on others it is left out.
    let leaf = tree.live.as_ref().filter(|live| shows_live(tree, live, is_last)).map(|live| live.hangs_from);
    let rows = lay_out(&nodes, &gaps, leaf);
    let columns = rows.iter().map(|row| row.column.min(MAX_COLUMNS - 1) + 1).max().unwrap_or(1);
    html! {
        @if rows.is_empty() { p.none { "No saved conversations yet." } }
        div.tree {
            (draw(&rows, tree, columns))
            ol {
                @for row in &rows {
                    @match row.kind {
                        RowKind::Node(index) => (render_session(&tree.sessions[index], when)),
                        RowKind::MissingParent(id) => li { (render_gap(tree, id)) },
                        RowKind::Live => li { @if let Some(live) = &tree.live { (render_live(live, agent, when)) } },
                    }
                }
            }
        }
    }
}

fn shows_live(tree: &TreeResult, live: &TreeLive, is_last: bool) -> bool {
    match live.hangs_from {
        Some(id) => tree.sessions.iter().any(|session| session.id == id) || tree.gaps.iter().any(|gap| gap.id == id),
        None => is_last,
    }
}

fn render_session(session: &TreeSession, when: When<'_>) -> Markup {
    html! {
        li #(format!("s{}", session.id)) {
            a data-item href=(session_path(session.id)) {
                span.title { (title(session.description.as_deref(), session.summary.as_deref(), &session.session_id)) }
                span.about {
                    span { (count_messages(session.message_count)) }
                    span { (age(session.ended_at.unwrap_or(session.saved_at), when.now, when.zone)) }
                    @for tag in &session.tags { span.tag { "#" (short(tag, 40)) } }
                    @if session.corrupt.is_some() { span.bad { "cannot be read" } }
                    @if session.cycle { span.bad { "its parents form a cycle" } }
                }
            }
        }
    }
}

fn render_live(live: &TreeLive, agent: &str, when: When<'_>) -> Markup {
    html! {
        a data-item href=(live_path(agent, None)) {
            span.title { b { "Live conversation" } }
            span.about {
                span { (count_messages(live.messages)) }
                span { (live.unsaved) " unsaved" }
                span { (age(live.last_activity_at, when.now, when.zone)) }
            }
        }
    }
}

fn render_gap(tree: &TreeResult, id: Uuid) -> Markup {
    let gap = tree.gaps.iter().find(|gap| gap.id == id);
    html! {
        @match gap.and_then(|gap| Some((gap.agent_name.as_ref()?, gap.session_id.as_ref()?))) {
            Some((agent, session)) => a data-item href=(session_path(id)) { span.title { (short(session, 100)) } span.about { span { "of " (short(agent, 64)) } } },
            None => span.title.none { "a conversation that no longer exists" },
        }
    }
}

/// The middle of a row.
fn place(row: usize, column: usize) -> (usize, usize) {
    (column.min(MAX_COLUMNS - 1) * COLUMN + COLUMN / 2, row * ROW + ROW / 2)
}

/// Draws a line from each row to its parent, and a circle for each. What a circle stands for is in the list: screen readers skip the picture.
fn draw(rows: &[TreeRow], tree: &TreeResult, columns: usize) -> Markup {
    let mut places: HashMap<Uuid, (usize, usize)> = HashMap::new();
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let (x, y) = place(index, row.column);
        let (id, above) = match row.kind {
            RowKind::Node(at) => (Some(tree.sessions[at].id), tree.sessions[at].hangs_from),
            RowKind::MissingParent(id) => (Some(id), None),
            RowKind::Live => (None, tree.live.as_ref().and_then(|live| live.hangs_from)),
        };
        if let Some(above) = above {
            lines.push(match places.get(&above) {
                Some((from_x, from_y)) if *from_x == x => format!("M{x} {from_y}V{y}"),
                Some((from_x, from_y)) => {
                    format!("M{from_x} {from_y}V{}Q{from_x} {y} {x} {y}", y - ROW / 2)
                }
                // Its parent is on an earlier page.
                None => format!("M{x} 0V{y}"),
            });
        }
        if let Some(id) = id {
            places.insert(id, (x, y));
        }
    }
    let (width, height) = (columns * COLUMN, rows.len() * ROW);
    html! {
        svg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            @for line in &lines { path d=(line) {} }
            @for (index, row) in rows.iter().enumerate() {
                @let (x, y) = place(index, row.column);
                @match row.kind {
                    RowKind::Node(at) => a href=(session_path(tree.sessions[at].id)) tabindex="-1" { circle cx=(x) cy=(y) r="5" class=[row.is_root.then_some("root")] {} },
                    RowKind::MissingParent(_) => circle.gap cx=(x) cy=(y) r="4" {},
                    RowKind::Live => circle.live cx=(x) cy=(y) r="6" {},
                }
            }
        }
    }
}
