//! Resolves the parent of every line.

use std::collections::HashMap;

use super::index::{
    FLAG_ASSISTANT, FLAG_DUPLICATE, FLAG_MESSAGE, FLAG_RESULT, FLAG_SIDE, FLAG_SYSTEM, LineNode, NO_NODE,
    TranscriptIndex,
};

/// Sets the parent of every node. Returns the lines that repeat a uuid, each with the line that counts instead.
pub(super) fn resolve(index: &mut TranscriptIndex) -> Vec<(u64, u32)> {
    let copies = mark_duplicates(index);
    let parents = std::mem::take(&mut index.parents);
    let mut before = PreviousLines::default();
    let mut forward = false;
    for (number, uuid) in (0u32..).zip(parents) {
        let node = index.nodes[number as usize];
        if node.has_flag(FLAG_DUPLICATE) {
            continue;
        }
        let parent = find_node(index, uuid).filter(|parent| *parent != number && is_same_chain(index, *parent, number));
        let parent = parent.unwrap_or_else(|| before.previous_of(index, number));
        forward |= parent != NO_NODE && parent > number;
        index.nodes[number as usize].parent = parent;
        before.record(index, number);
    }
    if forward {
        break_cycles(index);
    }
    // From here on only the leaves of summaries are looked up.
    let leaves = index.titles.leaves();
    index.uuids.retain(|(uuid, _)| leaves.binary_search(uuid).is_ok());
    index.uuids.shrink_to_fit();
    copies
}

/// Returns the node with the given uuid. Once the parents are resolved, only those of leaves are found.
pub(super) fn find_node(index: &TranscriptIndex, uuid: u64) -> Option<u32> {
    let at = index.uuids.binary_search_by_key(&uuid, |entry| entry.0).ok()?;
    Some(index.uuids[at].1)
}

fn is_same_chain(index: &TranscriptIndex, a: u32, b: u32) -> bool {
    let (a, b) = (&index.nodes[a as usize], &index.nodes[b as usize]);
    a.has_flag(FLAG_SIDE) == b.has_flag(FLAG_SIDE) && (!a.has_flag(FLAG_SIDE) || a.agent == b.agent)
}

/// Of several lines with one uuid, keeps the first that has a message and removes the others from the tree.
fn mark_duplicates(index: &mut TranscriptIndex) -> Vec<(u64, u32)> {
    index.uuids.sort_unstable();
    let mut copies = Vec::new();
    for run in index.uuids.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
        let nodes = &mut index.nodes;
        let first = run
            .iter()
            .map(|entry| entry.1)
            .find(|node| nodes[*node as usize].has_flag(FLAG_MESSAGE))
            .unwrap_or(run[0].1);
        let line = nodes[first as usize].line;
        for &(_, node) in run.iter().filter(|entry| entry.1 != first) {
            let copy = &mut nodes[node as usize];
            if copy.has_flag(FLAG_MESSAGE) {
                copies.push((u64::from(copy.line), line));
            }
            copy.flags = (copy.flags & !FLAG_MESSAGE) | FLAG_DUPLICATE;
        }
    }
    let nodes = &index.nodes;
    index.uuids.retain(|entry| !nodes[entry.1 as usize].has_flag(FLAG_DUPLICATE));
    copies.sort_unstable();
    copies
}

/// The previous lines, for lines that do not name a parent.
#[derive(Debug, Default)]
struct PreviousLines {
    main: Option<u32>,
    /// The last line of each subagent; key 0 is for those without a name.
    side: HashMap<u16, u32>,
}

impl PreviousLines {
    fn previous_of(&self, index: &TranscriptIndex, number: u32) -> u32 {
        let node = &index.nodes[number as usize];
        let found = match node.flags & FLAG_SIDE != 0 {
            false => self.main,
            // Without a name, a side chain starts with its prompt.
            true if node.agent == 0
                && node.has_flag(FLAG_MESSAGE)
                && !node.has_flag(FLAG_ASSISTANT | FLAG_RESULT | FLAG_SYSTEM) =>
            {
                None
            }
            true => self.side.get(&node.agent).copied(),
        };
        found.unwrap_or(NO_NODE)
    }

    fn record(&mut self, index: &TranscriptIndex, number: u32) {
        let node = &index.nodes[number as usize];
        // A line without a message may be a late note on a line far above.
        let replace = |last: u32| node.has_flag(FLAG_MESSAGE) || !index.nodes[last as usize].has_flag(FLAG_MESSAGE);
        if !node.has_flag(FLAG_SIDE) {
            if self.main.is_none_or(replace) {
                self.main = Some(number);
            }
        } else if self.side.get(&node.agent).copied().is_none_or(replace) {
            self.side.insert(node.agent, number);
        }
    }
}

/// Breaks each cycle at its first line. The parent of that line becomes the message before it in the file, unless that
/// leads back to the line.
fn break_cycles(index: &mut TranscriptIndex) {
    let firsts = find_cycles(index);
    if firsts.is_empty() {
        return;
    }
    for first in &firsts {
        index.nodes[*first as usize].parent = NO_NODE;
    }
    let before = preceding_messages(index);
    let mut roots = RootForest::new(index);
    for first in firsts {
        let before = before[first as usize];
        if before != NO_NODE && roots.find_root(before) != first {
            index.nodes[first as usize].parent = before;
            roots.attach_root(first, before);
        }
    }
}

/// Returns the first line of each cycle.
fn find_cycles(index: &TranscriptIndex) -> Vec<u32> {
    let parent = |node: u32| index.nodes[node as usize].parent;
    let mut walked = vec![NO_NODE; index.nodes.len()];
    let mut firsts = Vec::new();
    for start in 0..index.nodes.len() as u32 {
        let mut at = start;
        while at != NO_NODE && walked[at as usize] == NO_NODE {
            walked[at as usize] = start;
            at = parent(at);
        }
        if at != NO_NODE && walked[at as usize] == start {
            let around = std::iter::successors(Some(parent(at)), |next| (*next != at).then(|| parent(*next)));
            firsts.extend(around.min());
        }
    }
    firsts
}

/// Returns for each line the nearest message before it in the same chain.
fn preceding_messages(index: &TranscriptIndex) -> Vec<u32> {
    let mut newest: HashMap<Option<u16>, u32> = HashMap::new();
    let of = |(number, node): (u32, &LineNode)| {
        let chain = node.has_flag(FLAG_SIDE).then_some(node.agent);
        let before = newest.get(&chain).copied().unwrap_or(NO_NODE);
        if node.has_flag(FLAG_MESSAGE) {
            newest.insert(chain, number);
        }
        before
    };
    (0u32..).zip(&index.nodes).map(of).collect()
}

/// Finds the root of each line. A disjoint-set forest with path splitting, since a file may have long paths. It has no
/// cycles.
#[derive(Debug)]
pub(super) struct RootForest(Vec<u32>);

impl RootForest {
    pub(super) fn new(index: &TranscriptIndex) -> Self {
        let up = |(number, node): (u32, &LineNode)| if node.parent == NO_NODE { number } else { node.parent };
        Self((0u32..).zip(&index.nodes).map(up).collect())
    }

    pub(super) fn find_root(&mut self, node: u32) -> u32 {
        let mut at = node;
        while self.0[at as usize] != at {
            let up = self.0[at as usize];
            self.0[at as usize] = self.0[up as usize];
            at = up;
        }
        at
    }

    /// Makes a root the child of a line of another tree.
    fn attach_root(&mut self, root: u32, below: u32) {
        self.0[root as usize] = below;
    }
}
