//! Arranges sessions as a tree for display. Pure, and terminates even if the parents in the files form cycles.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use uuid::Uuid;

/// A session with the header fields that the tree needs.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: Uuid,
    pub parent: Option<Uuid>,
    pub saved_at: Timestamp,
    pub started_at: Timestamp,
    /// An imported session was never a live context, so its `started_at` does not identify one.
    pub imported: bool,
}

/// The live context of the agent.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    pub parent: Option<Uuid>,
    pub started_at: Timestamp,
}

/// The position of a session in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Index into the nodes.
    pub node: usize,
    /// The previous save of the same context, else the parent, which may be missing from the nodes.
    pub predecessor: Option<Uuid>,
    /// The parents form a cycle, which is cut open at this node.
    pub cycle: bool,
}

/// The nodes in display order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub entries: Vec<TreeEntry>,
    /// Sessions without a predecessor, in display order.
    pub roots: Vec<Uuid>,
    /// Parents that are not among the nodes.
    pub missing_parents: Vec<Uuid>,
    /// The predecessor of the live context.
    pub leaf: Option<Uuid>,
}

/// Arranges `nodes` so that each comes after its predecessor. Of several nodes with one predecessor, the branch that
/// was worked on last comes last. Roots are in the order of their saves.
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
    // Children first, so that each branch gets the time of its newest save.
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

/// The top of a tree: a root, or a parent that is missing.
enum TopLevel {
    Root(usize),
    /// A parent that is not among the nodes.
    MissingParent(Uuid),
}

type NewestSaves = HashMap<(Option<Uuid>, Timestamp), Uuid>;

/// Returns the predecessor of each node and the newest save of each live context.
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

/// Breaks each cycle of parents at one node and returns these nodes.
fn break_cycles(above: &mut [Option<Uuid>], index: &HashMap<Uuid, usize>, by_time: &[usize]) -> HashSet<usize> {
    let mut cut = HashSet::new();
    // The number of the walk that visited each node.
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

/// Returns all nodes depth first, each after its predecessor.
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

    /// Session `n` of a context of its own, saved at `n` seconds.
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
