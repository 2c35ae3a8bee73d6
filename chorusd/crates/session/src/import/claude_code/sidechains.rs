//! Separates the main conversation and the side chains.

use std::collections::HashMap;

use super::index::{FLAG_DUPLICATE, FLAG_SIDE, TranscriptIndex};
use super::parents::RootForest;

/// The lines of one conversation, including abandoned branches.
#[derive(Debug)]
pub(super) struct Chain {
    pub side: bool,
    /// Node numbers in the order of the file.
    pub members: Vec<u32>,
}

/// Returns the main conversation, then the side chains in the order of their first lines.
pub(super) fn split_chains(index: &TranscriptIndex) -> Vec<Chain> {
    let mut chains = vec![Chain { side: false, members: Vec::new() }];
    let mut of_root: HashMap<u32, usize> = HashMap::new();
    let mut roots = RootForest::new(index);
    for (number, node) in (0u32..).zip(&index.nodes) {
        if node.has_flag(FLAG_DUPLICATE) {
            continue;
        }
        let chain = if node.has_flag(FLAG_SIDE) {
            *of_root.entry(roots.find_root(number)).or_insert_with(|| {
                chains.push(Chain { side: true, members: Vec::new() });
                chains.len() - 1
            })
        } else {
            0
        };
        chains[chain].members.push(number);
    }
    chains
}
