//! One tree for the main conversation, one for each side chain.

use std::collections::HashMap;

use super::index::{COPY, Index, SIDE};
use super::links::Roots;

/// The lines of one conversation, its abandoned branches included.
#[derive(Debug)]
pub(super) struct Chain {
    pub side: bool,
    /// In the order of the file.
    pub members: Vec<u32>,
}

/// The main conversation first, then the side chains in order of their beginning.
pub(super) fn chains(index: &Index) -> Vec<Chain> {
    let mut chains = vec![Chain { side: false, members: Vec::new() }];
    let mut of_root: HashMap<u32, usize> = HashMap::new();
    let mut roots = Roots::of(index);
    for (number, node) in (0u32..).zip(&index.nodes) {
        if node.is(COPY) {
            continue;
        }
        let chain = if node.is(SIDE) {
            *of_root.entry(roots.of_node(number)).or_insert_with(|| {
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
