//! The tree of a conversation.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::super::json_values::parse_timestamp;
use super::super::raw_object::RawObject;

/// One node of the tree.
struct Node<'a> {
    parent: Option<String>,
    raw: &'a RawValue,
    message: Option<&'a RawValue>,
}

/// A node on the path of the conversation, with the other branches that follow it.
pub(super) struct PathNode<'a> {
    /// `None` if the node only connects others.
    pub message: Option<&'a RawValue>,
    /// Complete nodes of the other branches that follow this one.
    pub branches: Vec<&'a RawValue>,
}

/// Returns the path to the node `current`, or to the newest leaf if that is unknown.
pub(super) fn conversation_path<'a>(mapping: &RawObject<'a>, current: Option<&str>) -> Vec<PathNode<'a>> {
    let order: Vec<(String, Node<'a>)> =
        mapping.iter().filter_map(|(id, raw)| Some((id.to_owned(), parse_node(raw)?))).collect();
    let nodes: HashMap<&str, &Node<'a>> = order.iter().map(|(id, node)| (id.as_str(), node)).collect();
    let end = current.filter(|id| nodes.contains_key(id)).or_else(|| newest_leaf(&order));
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
    let step = |id: &&str| PathNode { message: nodes.get(id).and_then(|node| node.message), branches: Vec::new() };
    let mut steps: Vec<PathNode<'a>> = ids.iter().rev().map(step).collect();
    // Position on the path at which each other node branches off, computed once for every chain of nodes.
    let mut known: HashMap<&str, usize> = places.iter().map(|(id, place)| (*id, length - 1 - place)).collect();
    for (id, node) in &order {
        let place = branch_point(id, &nodes, &mut known);
        if node.message.is_some()
            && !places.contains_key(id.as_str())
            && let Some(step) = steps.get_mut(place)
        {
            step.branches.push(node.raw);
        }
    }
    steps
}

/// Returns the position of the nearest ancestor of `id` on the path, or 0.
fn branch_point<'n>(id: &'n str, nodes: &HashMap<&'n str, &'n Node<'_>>, known: &mut HashMap<&'n str, usize>) -> usize {
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

fn parse_node(raw: &RawValue) -> Option<Node<'_>> {
    let fields = RawObject::from_value(raw)?;
    let parent = fields.get_text("parent").map(Into::into);
    Some(Node { parent, raw, message: fields.get("message") })
}

fn newest_leaf<'o>(order: &'o [(String, Node<'_>)]) -> Option<&'o str> {
    let parents: HashSet<&str> = order.iter().filter_map(|(_, node)| node.parent.as_deref()).collect();
    let time = |node: &Node<'_>| RawObject::from_value(node.message?)?.get("create_time").and_then(parse_timestamp);
    let leaves = order.iter().filter(|(id, node)| node.message.is_some() && !parents.contains(id.as_str()));
    leaves.max_by_key(|(_, node)| time(node)).map(|(id, _)| id.as_str())
}
