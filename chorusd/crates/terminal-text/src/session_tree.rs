//! Lays out a tree of sessions, drawn downwards. A session that continues another stands below it in the same column;
//! branches get columns of their own. So a chain of thousands is as narrow as one of two.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

/// Maximum number of columns; deeper branches are marked with `…`.
const MAX_COLUMNS: usize = 16;

/// The kind of a row of the session tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A parent that does not exist.
    MissingParent(Uuid),
    /// The node with this index.
    Node(usize),
    /// The live context.
    Live,
}

/// A row of the drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRow {
    pub kind: RowKind,
    /// Counted from 0.
    pub column: usize,
    /// The row branches off from the column to its left.
    pub is_branch: bool,
    /// The row has no parent.
    pub is_root: bool,
}

/// Lays out `nodes`, each an id and its parent. Nodes must be in drawing order: after their parent, and the child that
/// continues in the parent's column last. `gaps` are missing parents; `leaf` is the parent of the live context, if
/// there is one.
#[must_use]
pub fn layout(nodes: &[(Uuid, Option<Uuid>)], gaps: &[Uuid], leaf: Option<Option<Uuid>>) -> Vec<TreeRow> {
    let there: HashSet<Uuid> = nodes.iter().map(|(id, _)| *id).chain(gaps.iter().copied()).collect();
    let known = |above: Option<Uuid>| above.filter(|id| there.contains(id));
    let mut left: HashMap<Uuid, usize> = HashMap::new();
    for above in nodes.iter().map(|(_, above)| *above).chain(leaf).filter_map(known) {
        *left.entry(above).or_default() += 1;
    }
    let mut columns: HashMap<Uuid, usize> = HashMap::new();
    let mut rows = Vec::with_capacity(nodes.len() + gaps.len() + 1);
    let top = |what| TreeRow { kind: what, column: 0, is_branch: false, is_root: true };
    for (index, (id, above)) in nodes.iter().enumerate() {
        let row = match known(*above) {
            None => top(RowKind::Node(index)),
            Some(above) => {
                let column = *columns.entry(above).or_insert_with(|| {
                    // A node always comes after its parent, so this parent is a gap.
                    rows.push(top(RowKind::MissingParent(above)));
                    0
                });
                let left = left.entry(above).or_default();
                *left = left.saturating_sub(1);
                let branches = *left > 0;
                TreeRow {
                    kind: RowKind::Node(index),
                    column: column + usize::from(branches),
                    is_branch: branches,
                    is_root: false,
                }
            }
        };
        columns.insert(*id, row.column);
        rows.push(row);
    }
    if let Some(above) = leaf {
        insert_live(&mut rows, nodes, known(above));
    }
    rows
}

/// Inserts the live context below all branches of its parent.
fn insert_live(rows: &mut Vec<TreeRow>, nodes: &[(Uuid, Option<Uuid>)], above: Option<Uuid>) {
    let Some(above) = above else {
        rows.push(TreeRow { kind: RowKind::Live, column: 0, is_branch: false, is_root: true });
        return;
    };
    let is_above = |row: &TreeRow| match row.kind {
        RowKind::MissingParent(id) => id == above,
        RowKind::Node(index) => nodes[index].0 == above,
        RowKind::Live => false,
    };
    let at = rows.iter().position(is_above).unwrap_or_else(|| {
        rows.push(TreeRow { kind: RowKind::MissingParent(above), column: 0, is_branch: false, is_root: true });
        rows.len() - 1
    });
    let column = rows[at].column;
    let below = rows[at + 1..].iter().position(|row| row.column <= column);
    let leaf = TreeRow { kind: RowKind::Live, column, is_branch: false, is_root: false };
    rows.insert(below.map_or(rows.len(), |below| at + 1 + below), leaf);
}

impl TreeRow {
    /// Returns the lines and the mark before the row's text; with box-drawing characters if `boxes`.
    #[must_use]
    pub fn prefix(&self, boxes: bool) -> String {
        let (line, branch, deeper) = if boxes { ("│ ", "├─", "… ") } else { ("| ", "|-", ". ") };
        let mark = match (self.kind, self.is_root, boxes) {
            (RowKind::MissingParent(_), _, true) => "✗",
            (RowKind::MissingParent(_), _, false) => "x",
            (RowKind::Live, _, true) => "◉",
            (RowKind::Live, _, false) => "@",
            (RowKind::Node(_), true, true) => "●",
            (RowKind::Node(_), true, false) => "*",
            (RowKind::Node(_), false, true) => "○",
            (RowKind::Node(_), false, false) => "o",
        };
        let mut lead = match self.column {
            0 => String::new(),
            column if column > MAX_COLUMNS => line.repeat(MAX_COLUMNS - 1) + deeper,
            column if self.is_branch => line.repeat(column - 1) + branch,
            column => line.repeat(column),
        };
        lead.push_str(mark);
        lead.push(' ');
        lead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(nodes: &[(u128, Option<u128>)], gaps: &[u128], leaf: Option<Option<u128>>) -> Vec<String> {
        let id = Uuid::from_u128;
        let nodes: Vec<_> = nodes.iter().map(|(node, above)| (id(*node), above.map(id))).collect();
        let gaps: Vec<_> = gaps.iter().map(|gap| id(*gap)).collect();
        let name = |row: &TreeRow| match row.kind {
            RowKind::MissingParent(id) => format!("gap {}", id.as_u128()),
            RowKind::Node(index) => nodes[index].0.as_u128().to_string(),
            RowKind::Live => "live".into(),
        };
        let rows = layout(&nodes, &gaps, leaf.map(|above| above.map(id)));
        rows.iter().map(|row| row.prefix(true) + &name(row)).collect()
    }

    #[test]
    fn a_chain_stays_in_its_column_and_branches_have_their_own() {
        let nodes = [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1)), (5, Some(1)), (6, None)];
        assert_eq!(drawn(&nodes, &[], None), ["● 1", "├─○ 2", "│ ○ 3", "├─○ 4", "○ 5", "● 6"]);
        assert_eq!(drawn(&nodes[..2], &[], Some(Some(1))), ["● 1", "├─○ 2", "◉ live"]);
        assert_eq!(drawn(&nodes[..2], &[], Some(Some(2))), ["● 1", "○ 2", "◉ live"]);
        assert_eq!(drawn(&[], &[], Some(None)), ["◉ live"]);
    }

    #[test]
    fn what_has_lost_its_parent_hangs_from_a_gap() {
        let nodes = [(1, Some(7)), (2, Some(7)), (3, Some(99))];
        let all = ["✗ gap 7", "├─○ 1", "○ 2", "● 3", "✗ gap 8", "◉ live"];
        assert_eq!(drawn(&nodes, &[7, 8], Some(Some(8))), all);
    }

    #[test]
    fn deep_branches_do_not_run_out_of_the_page() {
        let deep = TreeRow { kind: RowKind::Node(0), column: 500, is_branch: true, is_root: false };
        assert!(deep.prefix(true).chars().count() <= 2 * MAX_COLUMNS + 2);
        assert_eq!(TreeRow { column: 1, ..deep }.prefix(false), "|-o ");
    }
}
