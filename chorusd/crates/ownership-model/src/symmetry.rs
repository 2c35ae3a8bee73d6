//! States that differ only in the names of nodes and agents are one: each is replaced by the least of them.

use crate::setting::Setting;
use crate::state::{MAX_AGENTS, MAX_NODES, Owner, State};

const NODES: [[u8; MAX_NODES]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
const AGENTS: [[u8; MAX_AGENTS]; 2] = [[0, 1], [1, 0]];

/// Returns the state in which node `i` is called `nodes[i]` and agent `i` is called `agents[i]`.
fn rename(state: &State, nodes: &[u8; MAX_NODES], agents: &[u8; MAX_AGENTS]) -> State {
    let mut renamed = *state;
    let node_name = |node: &mut u8| *node = nodes[usize::from(*node)];
    let owner_name = |owner: &mut Owner| node_name(&mut owner.node);
    for (i, name) in agents.iter().enumerate() {
        let mut row = state.rows[i];
        row.owner.iter_mut().for_each(owner_name);
        row.wanted_by.iter_mut().for_each(node_name);
        row.log.iter_mut().flatten().for_each(|entry| owner_name(&mut entry.writer));
        *renamed.row_mut(*name) = row;
    }
    for (i, name) in nodes.iter().enumerate() {
        let mut node = state.nodes[i];
        for (agent, name) in agents.iter().enumerate() {
            node.held[usize::from(*name)] = state.nodes[i].held[agent];
        }
        *renamed.node_mut(*name) = node;
    }
    for request in renamed.requests.iter_mut().flatten() {
        owner_name(&mut request.from);
        request.agent = agents[usize::from(request.agent)];
    }
    renamed.requests.sort_unstable();
    renamed
}

/// Returns the least of all states that differ from this one only in names.
pub(crate) fn choose_least(state: &State, setting: &Setting) -> State {
    let node_names = &NODES[..[1, 1, 2, 6][usize::from(setting.nodes)]];
    let agent_names = &AGENTS[..usize::from(setting.agents)];
    let all = node_names.iter().flat_map(|nodes| agent_names.iter().map(move |agents| rename(state, nodes, agents)));
    all.min().unwrap_or(*state)
}
