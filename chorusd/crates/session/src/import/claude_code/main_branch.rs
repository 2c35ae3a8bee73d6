//! Finds the path from the root of a tree to its newest leaf.
//!
//! All lines of a reply form a unit, and so do all lines with results of its tool calls. The results of parallel calls
//! are children of different lines of the reply, so that following single parents up from a leaf would miss some.

use std::collections::{HashMap, HashSet};

use super::index::{FLAG_ASSISTANT, FLAG_MESSAGE, FLAG_QUEUED, FLAG_RESULT, FLAG_SYSTEM, NO_NODE, TranscriptIndex};
use super::sidechains::Chain;

/// Largest number of system lines after the leaf that are followed up to it.
const MAX_TRAILING_SYSTEM_LINES: usize = 1000;

/// The path of a chain, and the lines that are not on it.
#[derive(Debug, Default)]
pub(super) struct BranchPath {
    /// Node and unit of each line with a message, in order.
    pub order: Vec<(u32, u32)>,
    /// The lines with a message on other branches, in the order of the file.
    pub off_path: Vec<u32>,
}

/// Groups of lines that are on the path together. A unit is identified by its first node.
#[derive(Debug)]
pub(super) struct LineUnits {
    unit: Vec<u32>,
    /// For the unit of a reply, the unit of its tool results.
    results: Vec<u32>,
    /// The nearest ancestor with a message.
    previous: Vec<u32>,
    /// True once `previous` of the node is known.
    linked: Vec<bool>,
}

impl LineUnits {
    pub(super) fn new(index: &TranscriptIndex) -> Self {
        let empty = || vec![NO_NODE; index.nodes.len()];
        Self { unit: empty(), results: empty(), previous: empty(), linked: vec![false; index.nodes.len()] }
    }

    /// Finds the path of one chain.
    pub(super) fn find_path(&mut self, index: &TranscriptIndex, chain: &Chain) -> BranchPath {
        let talk: Vec<u32> =
            chain.members.iter().copied().filter(|node| index.nodes[*node as usize].has_flag(FLAG_MESSAGE)).collect();
        self.link_previous(index, chain);
        self.group_units(index, &talk);
        let mut path =
            self.find_leaf(index, &talk).map_or_else(BranchPath::default, |leaf| self.build_path(index, &talk, leaf));
        self.insert_queued(index, chain, &mut path);
        path
    }

    /// Inserts each queued message after the last message before it, but never between a tool call and its results. A
    /// message that was typed on another branch stays there.
    fn insert_queued(&self, index: &TranscriptIndex, chain: &Chain, path: &mut BranchPath) {
        let waited = |number: &u32| index.nodes[*number as usize].has_flag(FLAG_QUEUED);
        let waited: Vec<u32> = chain.members.iter().copied().filter(waited).collect();
        if waited.is_empty() {
            return;
        }
        let ends: HashMap<u32, usize> = (1..).zip(&path.order).map(|(end, (_, unit))| (*unit, end)).collect();
        let mut places = Vec::with_capacity(waited.len());
        for number in waited {
            let end = match self.previous_unit(number) {
                NO_NODE => Some(0),
                unit => ends.get(&self.results[unit as usize]).or_else(|| ends.get(&unit)).copied(),
            };
            match end {
                Some(end) => places.push((end, number)),
                None => path.off_path.push(number),
            }
        }
        path.off_path.sort_unstable();
        places.sort_unstable();
        let mut order = Vec::with_capacity(path.order.len() + places.len());
        let mut places = places.into_iter().peekable();
        for (end, line) in path.order.drain(..).enumerate() {
            order.extend(std::iter::from_fn(|| places.next_if(|place| place.0 <= end)).map(|(_, node)| (node, node)));
            order.push(line);
        }
        order.extend(places.map(|(_, node)| (node, node)));
        path.order = order;
    }

    fn link_previous(&mut self, index: &TranscriptIndex, chain: &Chain) {
        let mut way = Vec::new();
        for &number in &chain.members {
            let mut at = number;
            // Stops at a node that an earlier walk has resolved.
            let above = loop {
                if self.linked[at as usize] {
                    break self.previous[at as usize];
                }
                self.linked[at as usize] = true;
                way.push(at);
                match index.nodes[at as usize].parent {
                    parent if parent == NO_NODE || index.nodes[parent as usize].has_flag(FLAG_MESSAGE) => break parent,
                    parent => at = parent,
                }
            };
            way.drain(..).for_each(|node| self.previous[node as usize] = above);
        }
    }

    fn group_units(&mut self, index: &TranscriptIndex, talk: &[u32]) {
        let mut replies: HashMap<u32, u32> = HashMap::new();
        for &number in talk {
            let node = &index.nodes[number as usize];
            let mut unit = number;
            if node.has_flag(FLAG_ASSISTANT) && node.reply != 0 {
                let known = replies.get(&node.reply).copied().filter(|reply| self.continues_reply(*reply, number));
                unit = known.unwrap_or(number);
                replies.insert(node.reply, unit);
            } else if node.has_flag(FLAG_RESULT)
                && let Some(reply) = self.answered_reply(index, number)
            {
                let results = &mut self.results[reply as usize];
                if *results == NO_NODE {
                    *results = number;
                }
                unit = *results;
            }
            self.unit[number as usize] = unit;
        }
    }

    /// Returns whether a line with the id of an earlier reply is part of it: it follows the reply or its results, or is
    /// a sibling. An id that recurs later does not count.
    fn continues_reply(&self, reply: u32, number: u32) -> bool {
        let above = self.previous[number as usize];
        if above == self.previous[reply as usize] {
            return true;
        }
        let unit = if above == NO_NODE { NO_NODE } else { self.unit[above as usize] };
        unit != NO_NODE && (unit == reply || unit == self.results[reply as usize])
    }

    /// Returns the reply whose tool calls a line has results for.
    fn answered_reply(&self, index: &TranscriptIndex, number: u32) -> Option<u32> {
        let caller = index.answered_calls(number).iter().find_map(|(id, node)| index.find_call(*id, *node))?;
        let reply = self.unit[caller as usize];
        (reply != NO_NODE && index.nodes[caller as usize].has_flag(FLAG_MESSAGE)).then_some(reply)
    }

    /// Returns the unit before a unit.
    fn previous_unit(&self, unit: u32) -> u32 {
        match self.previous[unit as usize] {
            NO_NODE => NO_NODE,
            above => self.unit[above as usize],
        }
    }

    /// Returns the newest line that no message follows. A system line is returned only if there is nothing else.
    fn find_leaf(&self, index: &TranscriptIndex, talk: &[u32]) -> Option<u32> {
        let speaks = |number: u32| !index.nodes[number as usize].has_flag(FLAG_SYSTEM);
        let mut followed = HashSet::new();
        for &number in talk.iter().filter(|number| speaks(**number) && self.unit[**number as usize] == **number) {
            let mut at = self.previous_unit(number);
            while at != NO_NODE && followed.insert(at) {
                at = self.previous_unit(at);
            }
        }
        let newest = talk.iter().rev().copied();
        let leaf = newest.clone().find(|number| speaks(*number) && !followed.contains(&self.unit[*number as usize]));
        let Some(leaf) = leaf.or(newest.clone().find(|number| speaks(*number))) else { return talk.last().copied() };
        // System lines after the leaf belong to it.
        let unit = self.unit[leaf as usize];
        let behind = newest.take_while(|number| *number > leaf).take(MAX_TRAILING_SYSTEM_LINES).find(|number| {
            let mut at = *number;
            for _ in 0..MAX_TRAILING_SYSTEM_LINES {
                if at == NO_NODE || speaks(at) {
                    break;
                }
                at = self.previous[at as usize];
            }
            at != NO_NODE && self.unit[at as usize] == unit
        });
        Some(behind.unwrap_or(leaf))
    }

    fn build_path(&self, index: &TranscriptIndex, talk: &[u32], leaf: u32) -> BranchPath {
        let mut place: HashMap<u32, u32> = HashMap::new();
        let mut at = self.unit[leaf as usize];
        while at != NO_NODE && !place.contains_key(&at) {
            place.insert(at, place.len() as u32);
            at = self.previous_unit(at);
        }
        let mut direct = HashSet::new();
        let mut at = leaf;
        while at != NO_NODE && direct.insert(at) {
            at = self.previous[at as usize];
        }
        let mut path = BranchPath::default();
        let repeated = self.find_retried_results(index, talk, &place, &direct);
        for &number in talk {
            let unit = self.unit[number as usize];
            if place.contains_key(&unit) && !repeated.contains(&number) {
                path.order.push((number, unit));
            } else {
                path.off_path.push(number);
            }
        }
        // The sort is stable: within a unit, lines stay in the order of the file.
        path.order.sort_by_key(|(_, unit)| std::cmp::Reverse(place.get(unit).copied()));
        path
    }

    /// Returns the lines whose tool results another line of the path repeats, after a retry. The line that is an
    /// ancestor of the leaf counts, else the newest.
    fn find_retried_results(
        &self,
        index: &TranscriptIndex,
        talk: &[u32],
        place: &HashMap<u32, u32>,
        direct: &HashSet<u32>,
    ) -> HashSet<u32> {
        let mut repeated = HashSet::new();
        let mut answers: HashMap<(u32, u64), u32> = HashMap::new();
        for &number in talk.iter().filter(|number| index.nodes[**number as usize].has_flag(FLAG_RESULT)) {
            let unit = self.unit[number as usize];
            // Only lines of one unit have results of the same call.
            if !place.contains_key(&unit) {
                continue;
            }
            for (id, _) in index.answered_calls(number) {
                let Some(other) = answers.insert((unit, *id), number) else { continue };
                if direct.contains(&other) {
                    answers.insert((unit, *id), other);
                    repeated.insert(number);
                } else {
                    repeated.insert(other);
                }
            }
        }
        repeated.retain(|number| !direct.contains(number));
        repeated
    }
}
