//! The path through a tree of messages, in which a question that was edited or an answer that was regenerated begins another
//! branch.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

/// One node of a tree.
#[derive(Debug)]
pub(super) struct TreeNode<'a, T> {
    pub id: Cow<'a, str>,
    pub parent: Option<Cow<'a, str>>,
    pub at: Option<Timestamp>,
    /// The node has a message, and does not only connect others.
    pub is_message: bool,
    pub value: T,
}

/// A node on the path of the conversation, with the other branches that follow it.
#[derive(Debug)]
pub(super) struct PathNode<T> {
    pub value: T,
    /// The nodes of the other branches that follow this one, and have messages.
    pub branches: Vec<T>,
}

/// Returns the path to the node `current`, or to the newest leaf if that is unknown. Of two leaves with the same time, the last
/// counts.
pub(super) fn conversation_path<T: Clone>(order: &[TreeNode<'_, T>], current: Option<&str>) -> Vec<PathNode<T>> {
    let nodes: HashMap<&str, &TreeNode<'_, T>> = order.iter().map(|node| (node.id.as_ref(), node)).collect();
    let end = current.filter(|id| nodes.contains_key(id)).or_else(|| newest_leaf(order));
    let mut ids = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut at = end;
    // Stops at a parent that was visited before: the parents form a cycle.
    while let Some((id, node)) = at.and_then(|id| nodes.get_key_value(id)).filter(|(id, _)| !places.contains_key(**id))
    {
        places.insert(id, ids.len());
        ids.push(*id);
        at = node.parent.as_deref();
    }
    let length = ids.len();
    let step = |id: &&str| nodes.get(id).map(|node| PathNode { value: node.value.clone(), branches: Vec::new() });
    let mut steps: Vec<PathNode<T>> = ids.iter().rev().filter_map(step).collect();
    // Position on the path at which each other node branches off, computed once for every chain of nodes.
    let mut known: HashMap<&str, usize> = places.iter().map(|(id, place)| (*id, length - 1 - place)).collect();
    for node in order {
        let place = branch_point(&node.id, &nodes, &mut known);
        if node.is_message
            && !places.contains_key(node.id.as_ref())
            && let Some(step) = steps.get_mut(place)
        {
            step.branches.push(node.value.clone());
        }
    }
    steps
}

/// Returns the position of the nearest ancestor of `id` on the path, or 0.
fn branch_point<'n, T>(
    id: &'n str,
    nodes: &HashMap<&'n str, &'n TreeNode<'_, T>>,
    known: &mut HashMap<&'n str, usize>,
) -> usize {
    let (mut seen, mut chain, mut at) = (HashSet::new(), Vec::new(), Some(id));
    let mut place = 0;
    while let Some(id) = at.filter(|id| seen.insert(*id)) {
        if let Some(found) = known.get(id) {
            place = *found;
            break;
        }
        chain.push(id);
        at = nodes.get(id).and_then(|node| node.parent.as_deref());
    }
    chain.into_iter().for_each(|id| _ = known.insert(id, place));
    place
}

fn newest_leaf<'o, T>(order: &'o [TreeNode<'_, T>]) -> Option<&'o str> {
    let parents: HashSet<&str> = order.iter().filter_map(|node| node.parent.as_deref()).collect();
    let leaves = order.iter().filter(|node| node.is_message && !parents.contains(node.id.as_ref()));
    leaves.max_by_key(|node| node.at).map(|node| node.id.as_ref())
}

/// Says that messages of other branches are kept.
pub(super) fn branches_reason(count: u64) -> String {
    let (messages, are) = if count == 1 { ("message", "is") } else { ("messages", "are") };
    format!(
        "{count} {messages} on other branches (regenerated or edited) {are} kept in `provider` of the preceding message"
    )
}
