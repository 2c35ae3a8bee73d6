//! The changes that an action makes to a state.

use crate::action::Action;
use crate::database::execute;
use crate::setting::Setting;
use crate::state::{Heartbeat, Life, MAX_AGENTS, Node, Request, State, Work};
use crate::symmetry::choose_least;

/// Returns the state after an action, or None if the action changes nothing.
#[must_use]
pub fn apply_action(setting: &Setting, state: &State, action: Action) -> Option<State> {
    let next = apply(setting, state, action)?;
    Some(if setting.symmetric { choose_least(&next, setting) } else { next })
}

fn apply(setting: &Setting, state: &State, action: Action) -> Option<State> {
    let mut next = *state;
    match action {
        Action::Claim { node, agent } => next.add(request(state, node, agent, Work::Claim)),
        Action::Write { node, agent } => {
            let epoch = state.node(node).held[usize::from(agent)];
            let message = state.row(agent).acknowledged + 1;
            next.add(request(state, node, agent, Work::Write { epoch, message }));
        }
        Action::Release { node, agent } => {
            let epoch = std::mem::take(&mut next.node_mut(node).held[usize::from(agent)]);
            next.add(Request { awaited: false, ..request(state, node, agent, Work::Release { epoch }) });
        }
        Action::Want { node, agent } => next.row_mut(agent).wanted_by = Some(node),
        Action::Execute(request) => return execute(setting, state, &request),
        Action::Abort(request) => next.replace(&request, None),
        Action::Answer(request) => receive(&mut next, &request),
        Action::LoseConnection(request) => abandon(&mut next, &request),
        Action::Crash(node) => {
            let mine = state.requests().filter(|request| request.awaited && request.from.node == node);
            mine.for_each(|request| abandon(&mut next, request));
            let Node { boot, heartbeat, .. } = *state.node(node);
            *next.node_mut(node) = Node { boot, heartbeat, ..Node::default() };
        }
        Action::Restart(node) => {
            let boot = state.node(node).boot + 1;
            *next.node_mut(node) = Node { boot, life: Life::Running, ..Node::default() };
        }
        Action::Stop(node) => next.node_mut(node).life = Life::Stopping,
        Action::EndHeartbeat(node) => {
            let it = next.node_mut(node);
            it.heartbeat = Heartbeat::Ended;
            if it.held == [0; MAX_AGENTS] && state.requests().all(|request| request.from != state.process(node)) {
                it.life = Life::Down;
                it.busy = false;
            }
        }
        Action::SendHeartbeat(node) => {
            let it = next.node_mut(node);
            (it.heartbeat, it.busy) = (Heartbeat::Fresh, false);
        }
        Action::FindStale(node) => next.node_mut(node).heartbeat = Heartbeat::Stale,
        Action::ReachBound(node) => next.node_mut(node).busy = true,
        Action::Pause(node) => next.node_mut(node).paused = true,
        Action::Resume(node) => next.node_mut(node).paused = false,
        Action::Cut(node) => next.node_mut(node).cut = true,
        Action::Reconnect(node) => next.node_mut(node).cut = false,
        Action::CalmDown => next.calm = true,
    }
    if next.calm {
        renew_heartbeats(&mut next);
    }
    Some(next)
}

/// In the calm, every node that reaches the database is in time with its heartbeat.
fn renew_heartbeats(next: &mut State) {
    for node in next.nodes.iter_mut().filter(|node| node.is_connected() && node.heartbeat != Heartbeat::Ended) {
        (node.heartbeat, node.busy) = (Heartbeat::Fresh, false);
    }
}

fn request(state: &State, node: u8, agent: u8, work: Work) -> Request {
    Request { agent, from: state.process(node), awaited: true, work }
}

/// Gives a process its answer.
fn receive(next: &mut State, request: &Request) {
    let held = &mut next.node_mut(request.from.node).held[usize::from(request.agent)];
    let row_message = match request.work {
        Work::Granted { epoch } => {
            *held = epoch;
            None
        }
        Work::Refused { epoch } => {
            if *held == epoch {
                *held = 0;
            }
            None
        }
        Work::Accepted { message } | Work::WriteChecked { message, .. } => Some(message),
        _ => None,
    };
    if let Some(message) = row_message {
        let row = next.row_mut(request.agent);
        row.acknowledged = row.acknowledged.max(message);
    }
    let rest = (!request.is_answer()).then_some(Request { awaited: false, ..*request });
    next.replace(request, rest);
}

/// Leaves a request to the database: nobody awaits its answer any more.
fn abandon(next: &mut State, request: &Request) {
    let rest = (!request.is_answer()).then_some(Request { awaited: false, ..*request });
    next.replace(request, rest);
}
