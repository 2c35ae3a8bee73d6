//! A tree of lines of work, drawn downwards: what goes on from one stands below it in its column, what branches off in a column of its
//! own. So a chain of thousands stays as narrow as one.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

/// Columns that are drawn; what branches off further is told by `…`.
const MOST: usize = 16;

/// What a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Something that others hang from and that is not there.
    Gap(Uuid),
    /// The node with this index.
    Node(usize),
    /// The end that is worked on.
    Leaf,
}

/// A row of the drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub what: What,
    /// From 0.
    pub column: usize,
    /// It branches off from the column before its own.
    branches: bool,
    /// Nothing is above it.
    root: bool,
}

/// The rows of `nodes`, each an id and what it hangs from, in the order of a drawing: each behind what it hangs from, and what goes on
/// in the same column last. `leaf`: what the end hangs from that is worked on, where there is one.
#[must_use]
pub fn rows(nodes: &[(Uuid, Option<Uuid>)], gaps: &[Uuid], leaf: Option<Option<Uuid>>) -> Vec<Row> {
    let there: HashSet<Uuid> = nodes.iter().map(|(id, _)| *id).chain(gaps.iter().copied()).collect();
    let known = |above: Option<Uuid>| above.filter(|id| there.contains(id));
    let mut left: HashMap<Uuid, usize> = HashMap::new();
    for above in nodes.iter().map(|(_, above)| *above).chain(leaf).filter_map(known) {
        *left.entry(above).or_default() += 1;
    }
    let mut columns: HashMap<Uuid, usize> = HashMap::new();
    let mut rows = Vec::with_capacity(nodes.len() + gaps.len() + 1);
    let top = |what| Row { what, column: 0, branches: false, root: true };
    for (index, (id, above)) in nodes.iter().enumerate() {
        let row = match known(*above) {
            None => top(What::Node(index)),
            Some(above) => {
                let column = *columns.entry(above).or_insert_with(|| {
                    // A node comes behind what it hangs from: this is a gap.
                    rows.push(top(What::Gap(above)));
                    0
                });
                let left = left.entry(above).or_default();
                *left = left.saturating_sub(1);
                let branches = *left > 0;
                Row { what: What::Node(index), column: column + usize::from(branches), branches, root: false }
            }
        };
        columns.insert(*id, row.column);
        rows.push(row);
    }
    if let Some(above) = leaf {
        put_leaf(&mut rows, nodes, known(above));
    }
    rows
}

/// The end goes below whatever branched off from what it hangs from.
fn put_leaf(rows: &mut Vec<Row>, nodes: &[(Uuid, Option<Uuid>)], above: Option<Uuid>) {
    let Some(above) = above else {
        rows.push(Row { what: What::Leaf, column: 0, branches: false, root: true });
        return;
    };
    let is_above = |row: &Row| match row.what {
        What::Gap(id) => id == above,
        What::Node(index) => nodes[index].0 == above,
        What::Leaf => false,
    };
    let at = rows.iter().position(is_above).unwrap_or_else(|| {
        rows.push(Row { what: What::Gap(above), column: 0, branches: false, root: true });
        rows.len() - 1
    });
    let column = rows[at].column;
    let below = rows[at + 1..].iter().position(|row| row.column <= column);
    let leaf = Row { what: What::Leaf, column, branches: false, root: false };
    rows.insert(below.map_or(rows.len(), |below| at + 1 + below), leaf);
}

impl Row {
    /// What stands before the text of the row; `boxes`: with characters that only some terminals have.
    #[must_use]
    pub fn lead(&self, boxes: bool) -> String {
        let (line, branch, deeper) = if boxes { ("│ ", "├─", "… ") } else { ("| ", "|-", ". ") };
        let mark = match (self.what, self.root, boxes) {
            (What::Gap(_), _, true) => "✗",
            (What::Gap(_), _, false) => "x",
            (What::Leaf, _, true) => "◉",
            (What::Leaf, _, false) => "@",
            (What::Node(_), true, true) => "●",
            (What::Node(_), true, false) => "*",
            (What::Node(_), false, true) => "○",
            (What::Node(_), false, false) => "o",
        };
        let mut lead = match self.column {
            0 => String::new(),
            column if column > MOST => line.repeat(MOST - 1) + deeper,
            column if self.branches => line.repeat(column - 1) + branch,
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
        let name = |row: &Row| match row.what {
            What::Gap(id) => format!("gap {}", id.as_u128()),
            What::Node(index) => nodes[index].0.as_u128().to_string(),
            What::Leaf => "live".into(),
        };
        let rows = rows(&nodes, &gaps, leaf.map(|above| above.map(id)));
        rows.iter().map(|row| row.lead(true) + &name(row)).collect()
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
        let deep = Row { what: What::Node(0), column: 500, branches: true, root: false };
        assert!(deep.lead(true).chars().count() <= 2 * MOST + 2);
        assert_eq!(Row { column: 1, ..deep }.lead(false), "|-o ");
    }
}
