//! Which line follows which.

use std::collections::HashMap;

use super::index::{ASSISTANT, COPY, Index, NONE, RESULT, SIDE, SYSTEM, TALK};

/// Sets the parent of every node. Gives the lines that repeat a uuid, each with the line that stands for it.
pub(super) fn resolve(index: &mut Index) -> Vec<(u64, u32)> {
    let copies = drop_copies(index);
    let parents = std::mem::take(&mut index.parents);
    let mut before = Before::default();
    let mut forward = false;
    for (number, uuid) in (0u32..).zip(parents) {
        let node = index.nodes[number as usize];
        if node.is(COPY) {
            continue;
        }
        let parent = find(index, uuid).filter(|parent| *parent != number && same_chain(index, *parent, number));
        let parent = parent.unwrap_or_else(|| before.last(index, number));
        forward |= parent != NONE && parent > number;
        index.nodes[number as usize].parent = parent;
        before.pass(index, number);
    }
    if forward {
        break_circles(index);
    }
    copies
}

/// The node with that uuid.
pub(super) fn find(index: &Index, uuid: u64) -> Option<u32> {
    let at = index.uuids.binary_search_by_key(&uuid, |entry| entry.0).ok()?;
    Some(index.uuids[at].1)
}

fn same_chain(index: &Index, a: u32, b: u32) -> bool {
    let (a, b) = (&index.nodes[a as usize], &index.nodes[b as usize]);
    a.is(SIDE) == b.is(SIDE) && (!a.is(SIDE) || a.agent == b.agent)
}

/// Of lines with one uuid the first that can be read stands for all; the others leave the tree.
fn drop_copies(index: &mut Index) -> Vec<(u64, u32)> {
    index.uuids.sort_unstable();
    let mut copies = Vec::new();
    for run in index.uuids.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
        let nodes = &mut index.nodes;
        let first = run.iter().map(|entry| entry.1).find(|node| nodes[*node as usize].is(TALK)).unwrap_or(run[0].1);
        let line = nodes[first as usize].line;
        for &(_, node) in run.iter().filter(|entry| entry.1 != first) {
            let copy = &mut nodes[node as usize];
            if copy.is(TALK) {
                copies.push((u64::from(copy.line), line));
            }
            copy.flags = (copy.flags & !TALK) | COPY;
        }
    }
    let nodes = &index.nodes;
    index.uuids.retain(|entry| !nodes[entry.1 as usize].is(COPY));
    copies.sort_unstable();
    copies
}

/// What stood before a line, for lines that do not name what they follow.
#[derive(Debug, Default)]
struct Before {
    main: Option<u32>,
    /// The last line of each helper; 0: of those that are not named.
    side: HashMap<u16, u32>,
}

impl Before {
    fn last(&self, index: &Index, number: u32) -> u32 {
        let node = &index.nodes[number as usize];
        let found = match node.flags & SIDE != 0 {
            false => self.main,
            // Without a name, a side chain starts with what it was asked.
            true if node.agent == 0 && node.is(TALK) && !node.is(ASSISTANT | RESULT | SYSTEM) => None,
            true => self.side.get(&node.agent).copied(),
        };
        found.unwrap_or(NONE)
    }

    fn pass(&mut self, index: &Index, number: u32) {
        let node = &index.nodes[number as usize];
        // A line that says nothing may be a late note on something far above.
        let replace = |last: u32| node.is(TALK) || !index.nodes[last as usize].is(TALK);
        if !node.is(SIDE) {
            if self.main.is_none_or(replace) {
                self.main = Some(number);
            }
        } else if self.side.get(&node.agent).copied().is_none_or(replace) {
            self.side.insert(node.agent, number);
        }
    }
}

/// Lets the first line of every circle follow what stands before it in the file.
fn break_circles(index: &mut Index) {
    let mut walked = vec![NONE; index.nodes.len()];
    for start in 0..index.nodes.len() as u32 {
        let mut at = start;
        while at != NONE && walked[at as usize] == NONE {
            walked[at as usize] = start;
            at = index.nodes[at as usize].parent;
        }
        if at != NONE && walked[at as usize] == start {
            let mut first = at;
            let mut next = index.nodes[at as usize].parent;
            while next != at {
                first = first.min(next);
                next = index.nodes[next as usize].parent;
            }
            index.nodes[first as usize].parent = standing_before(index, first);
        }
    }
}

/// The nearest line before that speaks in the same chain; none where it leads back to `first`.
fn standing_before(index: &Index, first: u32) -> u32 {
    let speaks = |at: &u32| index.nodes[*at as usize].is(TALK) && same_chain(index, *at, first);
    let Some(before) = (0..first).rev().find(speaks) else { return NONE };
    let mut at = before;
    for _ in 0..index.nodes.len() {
        match index.nodes[at as usize].parent {
            NONE => return before,
            parent if parent == first => return NONE,
            parent => at = parent,
        }
    }
    NONE
}
