//! Sessions as a tree: what each hangs from, and in which order a drawing has them. Pure, and it ends whatever the files say.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use uuid::Uuid;

/// A session, as far as the tree needs it.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: Uuid,
    pub parent: Option<Uuid>,
    pub saved_at: Timestamp,
    pub started_at: Timestamp,
    /// It was no live context: when it began tells nothing.
    pub imported: bool,
}

/// The live context.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    pub parent: Option<Uuid>,
    pub started_at: Timestamp,
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its index among the nodes.
    pub node: usize,
    /// The save before it of the same context, else its parent, which need not be a node.
    pub predecessor: Option<Uuid>,
    /// The circle that its parents are is cut here.
    pub cycle: bool,
}

/// The nodes in the order of a drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub entries: Vec<TreeEntry>,
    /// What hangs from nothing, in that order.
    pub roots: Vec<Uuid>,
    /// Parents that are no nodes.
    pub missing_parents: Vec<Uuid>,
    /// What the leaf hangs from.
    pub leaf: Option<Uuid>,
}

/// Arranges `nodes`: each comes behind what it hangs from, and of several that hang from one the line that was worked on last comes
/// last; roots in the order of their saves.
#[must_use]
pub fn arrange(nodes: &[Node], leaf: Option<Leaf>) -> Tree {
    let mut by_time: Vec<usize> = (0..nodes.len()).collect();
    by_time.sort_by_key(|node| (nodes[*node].saved_at, nodes[*node].id));
    let (mut above, newest) = find_predecessors(nodes, &by_time);
    let hangs_from = leaf.and_then(|leaf| newest.get(&(leaf.parent, leaf.started_at)).copied().or(leaf.parent));
    let index: HashMap<Uuid, usize> = nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
    let cut = break_cycles(&mut above, &index, &by_time);
    let mut below: HashMap<Uuid, Vec<usize>> = HashMap::new();
    let (mut tops, mut gaps) = (Vec::new(), Vec::new());
    for node in by_time {
        match above[node] {
            None => tops.push(TopLevel::Root(node)),
            Some(id) => {
                let siblings = below.entry(id).or_default();
                if siblings.is_empty() && !index.contains_key(&id) {
                    tops.push(TopLevel::MissingParent(id));
                    gaps.push(id);
                }
                siblings.push(node);
            }
        }
    }
    gaps.extend(hangs_from.filter(|id| !index.contains_key(id) && !gaps.contains(id)));
    let mut worked_on: Vec<Timestamp> = nodes.iter().map(|node| node.saved_at).collect();
    if let Some(node) = hangs_from.and_then(|id| index.get(&id)) {
        worked_on[*node] = Timestamp::MAX;
    }
    // Below before above: the time of a line is that of its newest end.
    for node in walk_depth_first(nodes, &tops, &below).into_iter().rev() {
        if let Some(above) = above[node].and_then(|id| index.get(&id)) {
            worked_on[*above] = worked_on[*above].max(worked_on[node]);
        }
    }
    below.values_mut().for_each(|siblings| siblings.sort_by_key(|node| worked_on[*node]));
    let places: Vec<TreeEntry> = walk_depth_first(nodes, &tops, &below)
        .into_iter()
        .map(|node| TreeEntry { node, predecessor: above[node], cycle: cut.contains(&node) })
        .collect();
    let roots = places.iter().filter(|place| place.predecessor.is_none()).map(|place| nodes[place.node].id).collect();
    Tree { entries: places, roots, missing_parents: gaps, leaf: hangs_from }
}

/// What nothing of the agent stands above.
enum TopLevel {
    Root(usize),
    /// A parent that is no node.
    MissingParent(Uuid),
}

type NewestSaves = HashMap<(Option<Uuid>, Timestamp), Uuid>;

/// What each node hangs from, and the newest save of each live context.
fn find_predecessors(nodes: &[Node], by_time: &[usize]) -> (Vec<Option<Uuid>>, NewestSaves) {
    let mut above = vec![None; nodes.len()];
    let mut newest = NewestSaves::new();
    for at in by_time {
        let node = &nodes[*at];
        let before = if node.imported { None } else { newest.insert((node.parent, node.started_at), node.id) };
        above[*at] = before.or(node.parent);
    }
    (above, newest)
}

/// Cuts circles of parents open, each at one node: those nodes.
fn break_cycles(above: &mut [Option<Uuid>], index: &HashMap<Uuid, usize>, by_time: &[usize]) -> HashSet<usize> {
    let mut cut = HashSet::new();
    // In which walk a node was passed.
    let mut passed = vec![usize::MAX; above.len()];
    for (walk, start) in by_time.iter().enumerate() {
        let mut at = Some(*start);
        while let Some(node) = at {
            if passed[node] != usize::MAX {
                if passed[node] == walk {
                    above[node] = None;
                    cut.insert(node);
                }
                break;
            }
            passed[node] = walk;
            at = above[node].and_then(|id| index.get(&id).copied());
        }
    }
    cut
}

/// All nodes, each behind what it hangs from.
fn walk_depth_first(nodes: &[Node], tops: &[TopLevel], below: &HashMap<Uuid, Vec<usize>>) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut left: Vec<usize> = Vec::new();
    for top in tops {
        match top {
            TopLevel::Root(node) => left.push(*node),
            TopLevel::MissingParent(id) => left.extend(below.get(id).into_iter().flatten().rev()),
        }
        while let Some(node) = left.pop() {
            order.push(node);
            left.extend(below.get(&nodes[node].id).into_iter().flatten().rev());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    /// Session `n`, saved at `n` seconds, of a context of its own.
    fn node(n: u128, parent: Option<u128>) -> Node {
        let time = at(i64::try_from(n).unwrap());
        Node { id: id(n), parent: parent.map(id), saved_at: time, started_at: time, imported: false }
    }

    fn order(nodes: &[Node], tree: &Tree) -> Vec<u128> {
        tree.entries.iter().map(|place| nodes[place.node].id.as_u128()).collect()
    }

    #[test]
    fn the_line_that_was_worked_on_last_comes_last() {
        let nodes = [node(1, None), node(2, Some(1)), node(3, Some(1)), node(4, Some(2)), node(9, None)];
        let tree = arrange(&nodes, None);
        assert_eq!(order(&nodes, &tree), [1, 3, 2, 4, 9]);
        assert_eq!(tree.roots, [id(1), id(9)]);
        let live = arrange(&nodes, Some(Leaf { parent: Some(id(3)), started_at: at(50) }));
        assert_eq!((order(&nodes, &live), live.leaf), (vec![1, 2, 4, 3, 9], Some(id(3))));
    }

    #[test]
    fn saves_of_one_context_follow_each_other_and_imports_do_not() {
        let begun = |n, imported| Node { started_at: at(0), imported, ..node(n, None) };
        let nodes = [begun(1, false), begun(2, false), begun(3, true), begun(4, true)];
        let tree = arrange(&nodes, Some(Leaf { parent: None, started_at: at(0) }));
        assert_eq!((tree.roots, tree.leaf), (vec![id(1), id(3), id(4)], Some(id(2))));
        assert_eq!(tree.entries[1].predecessor, Some(id(1)));
    }

    #[test]
    fn what_has_lost_its_parent_hangs_from_a_gap() {
        let nodes = [node(1, Some(70)), node(2, Some(70)), node(3, Some(71))];
        let tree = arrange(&nodes, Some(Leaf { parent: Some(id(72)), started_at: at(9) }));
        assert_eq!((order(&nodes, &tree), tree.roots), (vec![1, 2, 3], vec![]));
        assert_eq!(tree.missing_parents, [id(70), id(71), id(72)]);
    }

    #[test]
    fn circles_are_cut_once_and_nothing_is_lost() {
        let nodes = [node(1, Some(3)), node(2, Some(1)), node(3, Some(2)), node(4, Some(2)), node(5, Some(5))];
        let tree = arrange(&nodes, None);
        let mut all = order(&nodes, &tree);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4, 5]);
        assert_eq!(tree.entries.iter().filter(|place| place.cycle).count(), 2);
        assert_eq!(tree.roots.len(), 2);
    }

    #[test]
    fn a_long_chain_is_walked_without_going_deep() {
        let nodes: Vec<Node> = (1..=100_000).map(|n| node(n, (n > 1).then(|| n - 1))).collect();
        let tree = arrange(&nodes, None);
        assert_eq!(order(&nodes, &tree), (1..=100_000).collect::<Vec<_>>());
    }
}
