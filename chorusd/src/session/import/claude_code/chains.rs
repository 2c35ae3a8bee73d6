//! One tree for the main conversation, one for each side chain.

use std::collections::HashMap;

use super::index::{COPY, Index, NONE, SIDE};

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
    let mut roots: HashMap<u32, u32> = HashMap::new();
    for (number, node) in (0u32..).zip(&index.nodes) {
        if node.is(COPY) {
            continue;
        }
        let chain = if node.is(SIDE) {
            let root = root(index, &mut roots, number);
            *of_root.entry(root).or_insert_with(|| {
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

/// Every line on the way there is known from then on: a file may make all of them lead forward, each a step further.
fn root(index: &Index, known: &mut HashMap<u32, u32>, number: u32) -> u32 {
    let (mut at, mut way) = (number, Vec::new());
    let root = loop {
        if let Some(root) = known.get(&at) {
            break *root;
        }
        way.push(at);
        match index.nodes[at as usize].parent {
            NONE => break at,
            parent => at = parent,
        }
    };
    known.extend(way.into_iter().map(|node| (node, root)));
    root
}
