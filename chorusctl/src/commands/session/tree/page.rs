//! The web page of `chorusctl session tree --html`.

use std::collections::HashMap;
use std::path::Path;

use chorus_pictures::{Mark, TreeRow};
use chorus_proto::methods::session_branching::{TreeGap, TreeResult, TreeSession};
use uuid::Uuid;

use super::branch_points::BranchPoint;
use super::{Dates, describe_gap, live_facts, session_facts, session_title};
use crate::ui::session_tree::{RowKind, layout};
use crate::ui::units::{group_digits, pluralize};
use crate::ui::{Stdout, sanitize};

/// Renders the tree, of `agent` or of all that it has. `hidden` sessions are not in it. Sessions whose exported page is in `directory` link to it.
pub(super) fn render(
    out: &mut Stdout,
    agent: Option<&str>,
    tree: &TreeResult,
    points: &HashMap<Uuid, BranchPoint>,
    hidden: u64,
    directory: Option<&Path>,
) -> String {
    let rows = rows(out, tree, points, directory);
    let of_agent = agent.map(|agent| format!(" of {}", sanitize::one_line(agent))).unwrap_or_default();
    let title = match hidden {
        0 => format!("Conversations{of_agent}"),
        _ => format!("Conversations{of_agent} that continue each other"),
    };
    let mut summary = pluralize(tree.sessions.len() as u64, "saved conversation");
    if hidden > 0 {
        summary.push_str(&format!(", and {} without a continuation", group_digits(hidden)));
    }
    if rows.iter().any(|row| row.link.is_some()) {
        summary.push_str("; those that were exported are links");
    }
    let picture = chorus_pictures::tree(&title, &rows);
    chorus_pictures::page(&title, &summary, &chorus_pictures::section("tree", &picture, ""))
}

fn rows(
    out: &mut Stdout,
    tree: &TreeResult,
    points: &HashMap<Uuid, BranchPoint>,
    directory: Option<&Path>,
) -> Vec<TreeRow> {
    let nodes: Vec<_> = tree.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    let gaps: Vec<Uuid> = tree.gaps.iter().map(|gap| gap.id).collect();
    let named: HashMap<Uuid, &TreeGap> = tree.gaps.iter().map(|gap| (gap.id, gap)).collect();
    let mut places: HashMap<Uuid, usize> = HashMap::new();
    let mut rows = Vec::new();
    for row in layout(&nodes, &gaps, tree.live.as_ref().map(|live| live.hangs_from)) {
        let (id, above, mut drawn) = match (row.kind, &tree.live) {
            (RowKind::Node(index), _) => {
                let session = &tree.sessions[index];
                let drawn = session_row(out, session, points.get(&session.id), directory);
                (Some(session.id), session.hangs_from, drawn)
            }
            (RowKind::MissingParent(id), _) => {
                let title = describe_gap(id, named.get(&id).copied());
                (Some(id), None, TreeRow { mark: Mark::Missing, title, ..TreeRow::default() })
            }
            (RowKind::Live, Some(live)) => {
                let facts = live_facts(out, live, Dates::Absolute);
                (None, live.hangs_from, TreeRow { mark: Mark::Live, name: "live".into(), facts, ..TreeRow::default() })
            }
            (RowKind::Live, None) => continue,
        };
        drawn.column = row.column;
        drawn.parent = above.and_then(|above| places.get(&above).copied());
        if drawn.parent.is_none() && drawn.mark == Mark::Node {
            drawn.mark = Mark::Root;
        }
        if let Some(id) = id {
            places.insert(id, rows.len());
        }
        rows.push(drawn);
    }
    rows
}

fn session_row(
    out: &mut Stdout,
    session: &TreeSession,
    point: Option<&BranchPoint>,
    directory: Option<&Path>,
) -> TreeRow {
    let page = format!("{}.html", session.session_id);
    // The name comes from the daemon: one that leaves the directory is no link.
    let is_there = !page.contains('/') && directory.is_some_and(|directory| directory.join(&page).is_file());
    TreeRow {
        name: sanitize::one_line(&session.short_id),
        title: session_title(session),
        facts: session_facts(out, session, point, Dates::Absolute),
        details: sanitize::one_line(&session.session_id),
        link: is_there.then_some(page),
        ..TreeRow::default()
    }
}
