//! Finds the entries that lead to the end of a session.

use std::collections::{HashMap, HashSet};

use crate::import::raw_object::RawObject;

/// The place of an entry.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub line: u64,
    pub offset: u64,
    id: Option<String>,
    /// `None` if the entry does not name one, which is not the same as naming no parent.
    parent: Option<Option<String>>,
    is_message: bool,
}

/// The entries of a session in the order of the file.
#[derive(Debug, Default)]
pub(super) struct SessionTree {
    nodes: Vec<Node>,
    /// The entry at which the conversation continues, if an entry after it says so.
    leaf: Option<String>,
}

impl SessionTree {
    /// Adds an entry. Returns the reason if it has no type.
    pub(super) fn add(&mut self, fields: &RawObject<'_>, line: u64, offset: u64) -> Result<(), String> {
        let kind = fields.get_text("type").ok_or("no type")?;
        if kind == "leaf" {
            self.leaf = fields.get_text("targetId").map(String::from);
            return Ok(());
        }
        let parent = fields.contains_key("parentId").then(|| fields.get_text("parentId").map(String::from));
        let (id, is_message) = (fields.get_text("id").map(String::from), kind == "message");
        self.nodes.push(Node { line, offset, id, parent, is_message });
        self.leaf = None;
        Ok(())
    }

    /// Returns the entries that lead to the end, in the order of the file, and the lines of messages on other branches. An
    /// entry whose parent is missing follows the one before it.
    pub(super) fn into_path(self) -> (Vec<Node>, Vec<u64>) {
        let positions: HashMap<&str, usize> =
            self.nodes.iter().enumerate().filter_map(|(at, node)| Some((node.id.as_deref()?, at))).collect();
        let last = self.nodes.len().checked_sub(1);
        let mut next = self.leaf.as_deref().and_then(|leaf| positions.get(leaf).copied()).or(last);
        let mut chosen = HashSet::new();
        while let Some(at) = next {
            if !chosen.insert(at) {
                break;
            }
            next = match &self.nodes[at].parent {
                Some(None) => None,
                Some(Some(parent)) => match positions.get(parent.as_str()) {
                    Some(parent) if *parent != at => Some(*parent),
                    _ => at.checked_sub(1),
                },
                None => at.checked_sub(1),
            };
        }
        let (path, others): (Vec<_>, Vec<_>) =
            self.nodes.into_iter().enumerate().partition(|(at, _)| chosen.contains(at));
        let left = others.into_iter().filter(|(_, node)| node.is_message).map(|(_, node)| node.line);
        (path.into_iter().map(|(_, node)| node).collect(), left.collect())
    }
}
