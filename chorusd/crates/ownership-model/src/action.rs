//! The actions that are possible in a state.

use std::fmt;

use crate::database::may_claim;
use crate::setting::{Heartbeats, Rule, Setting};
use crate::state::{Heartbeat, Life, Node, Request, State, Work};

/// A step of a node, of the database or of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A node asks for an agent.
    Claim { node: u8, agent: u8 },
    /// A node that believes to own an agent begins to write the next message of its client.
    Write { node: u8, agent: u8 },
    /// A node gives an agent up.
    Release { node: u8, agent: u8 },
    /// A node that is asked for an agent of another says so in its row.
    Want { node: u8, agent: u8 },
    /// The database carries a request one step further.
    Execute(Request),
    /// The database rolls a request back, or it never arrives.
    Abort(Request),
    /// The answer arrives.
    Answer(Request),
    /// The connection breaks: the request may still be carried out, but no answer arrives.
    LoseConnection(Request),
    /// The process of a node ends without a word.
    Crash(u8),
    /// A node that is down starts again.
    Restart(u8),
    /// A node is asked to stop.
    Stop(u8),
    /// A node that stops says that it sends no more heartbeats.
    EndHeartbeat(u8),
    /// A node renews its heartbeat.
    SendHeartbeat(u8),
    /// The database's clock finds a heartbeat stale.
    FindStale(u8),
    /// A node reaches the bound that it sets itself.
    ReachBound(u8),
    /// A process stops taking steps.
    Pause(u8),
    /// A process that was paused takes steps again.
    Resume(u8),
    /// A node is cut off from the database.
    Cut(u8),
    /// A node that was cut off reaches the database again.
    Reconnect(u8),
    /// From here on nothing fails.
    CalmDown,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim { node, agent } => write!(f, "node {node} claims agent {agent}"),
            Self::Write { node, agent } => write!(f, "node {node} starts a write for agent {agent}"),
            Self::Release { node, agent } => write!(f, "node {node} releases agent {agent}"),
            Self::Want { node, agent } => write!(f, "node {node} wants agent {agent}"),
            Self::Execute(request) => write!(f, "the database executes {request}"),
            Self::Abort(request) => write!(f, "the database aborts {request}"),
            Self::Answer(request) => write!(f, "the answer arrives: {request}"),
            Self::LoseConnection(request) => write!(f, "the connection is lost during {request}"),
            Self::Crash(node) => write!(f, "node {node} crashes"),
            Self::Restart(node) => write!(f, "node {node} restarts"),
            Self::Stop(node) => write!(f, "node {node} is asked to stop"),
            Self::EndHeartbeat(node) => write!(f, "node {node} ends its heartbeat"),
            Self::SendHeartbeat(node) => write!(f, "node {node} renews its heartbeat"),
            Self::FindStale(node) => write!(f, "the database finds the heartbeat of node {node} stale"),
            Self::ReachBound(node) => write!(f, "node {node} reaches its own bound"),
            Self::Pause(node) => write!(f, "node {node} is paused"),
            Self::Resume(node) => write!(f, "node {node} is resumed"),
            Self::Cut(node) => write!(f, "node {node} is cut off"),
            Self::Reconnect(node) => write!(f, "node {node} reaches the database again"),
            Self::CalmDown => write!(f, "nothing fails any more"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Work::Claim => write!(f, "the claim")?,
            Work::ClaimAfterRead { epoch } => write!(f, "the claim that read epoch {epoch}")?,
            Work::Granted { epoch } => write!(f, "a claim was granted, epoch {epoch}")?,
            Work::Write { epoch, message } => write!(f, "the check of message {message} in epoch {epoch}")?,
            Work::WriteChecked { epoch, message, seq } => {
                write!(f, "the commit of message {message} in epoch {epoch} at seq {seq}")?;
            }
            Work::Accepted { message } => write!(f, "message {message} was accepted")?,
            Work::Refused { epoch } => write!(f, "a write in epoch {epoch} was refused")?,
            Work::Release { epoch } => write!(f, "the release of epoch {epoch}")?,
        }
        let awaited = if self.awaited { "" } else { ", which nobody awaits" };
        write!(f, " (node {}, boot {}, agent {}{awaited})", self.from.node, self.from.boot, self.agent)
    }
}

/// Lists what can happen in a state.
pub fn list_actions(setting: &Setting, state: &State, actions: &mut Vec<Action>) {
    let has_space = state.requests().count() < usize::from(setting.in_flight);
    for node in 0..setting.nodes {
        for agent in (0..setting.agents).filter(|_| has_space) {
            requests_of(setting, state, node, agent, actions);
        }
        if setting.stops || setting.has_heartbeats() {
            heartbeat_of(setting, state, node, actions);
        }
        faults_of(setting, state, node, actions);
    }
    for request in state.requests().copied() {
        on_request(setting, state, request, actions);
    }
    let lives = |node: &Node| node.life == Life::Running && node.is_connected();
    if setting.calm && !state.calm && state.nodes.iter().any(lives) {
        actions.push(Action::CalmDown);
    }
}

fn requests_of(setting: &Setting, state: &State, node: u8, agent: u8, actions: &mut Vec<Action>) {
    let (it, row) = (state.node(node), state.row(agent));
    if !it.is_connected() || state.awaited(node, agent).is_some() {
        return;
    }
    let epoch = it.held[usize::from(agent)];
    if epoch == 0 && it.life == Life::Running && !it.busy {
        let pending =
            state.requests().filter(|request| matches!(request.work, Work::Claim | Work::ClaimAfterRead { .. }));
        let epochs: u8 = state.rows.iter().map(|row| row.epoch).sum();
        let claims = usize::from(epochs) + pending.count();
        if state.calm || (row.epoch < setting.epochs && claims < usize::from(setting.claims)) {
            // Whoever finds another owner first forwards the request to that one.
            if may_claim(setting, state, agent, state.process(node)) {
                actions.push(Action::Claim { node, agent });
            }
        }
    }
    if setting.has_heartbeats() && !state.calm && row.wanted_by.is_none() && it.life == Life::Running {
        let other = row.owner.filter(|owner| owner.node != node);
        if other.is_some_and(|owner| state.node(owner.node).heartbeat == Heartbeat::Fresh) {
            actions.push(Action::Want { node, agent });
        }
    }
    if epoch == 0 {
        return;
    }
    let message = row.acknowledged + 1;
    let written: u8 = state.rows.iter().map(crate::state::Row::next_seq).sum();
    let is_within = message <= setting.messages && (written < setting.writes || row.has_message(message));
    // In the calm, only a node that was overtaken has to learn it.
    let is_touched = if state.calm { epoch < row.epoch } else { is_within };
    if is_touched && !it.busy {
        actions.push(Action::Write { node, agent });
    }
    let is_due = it.life == Life::Stopping || row.wanted_by.is_some_and(|other| other != node && !state.calm);
    if is_due || (!setting.has_heartbeats() && !state.calm) {
        actions.push(Action::Release { node, agent });
    }
}

fn heartbeat_of(setting: &Setting, state: &State, node: u8, actions: &mut Vec<Action>) {
    let it = state.node(node);
    if it.is_connected() && it.heartbeat != Heartbeat::Ended && (it.heartbeat == Heartbeat::Stale || it.busy) {
        actions.push(Action::SendHeartbeat(node));
    }
    let may_be_late = setting.heartbeats == Heartbeats::Sent && !state.calm;
    if it.boot > 0 && it.heartbeat == Heartbeat::Fresh && (may_be_late || !it.is_connected()) {
        actions.push(Action::FindStale(node));
    }
    // A process that was paused past its bound finds that out when it is resumed.
    if it.life != Life::Down && !it.busy && (it.cut || it.paused) {
        actions.push(Action::ReachBound(node));
    }
    if it.life == Life::Stopping && it.is_connected() && it.heartbeat != Heartbeat::Ended {
        let is_idle = it.held == [0; 2] && !state.requests().any(|request| request.from == state.process(node));
        if is_idle || !setting.has(Rule::HeartbeatEndsLast) {
            actions.push(Action::EndHeartbeat(node));
        }
    }
}

fn faults_of(setting: &Setting, state: &State, node: u8, actions: &mut Vec<Action>) {
    let it = state.node(node);
    let is_paused_or_cut = [(it.paused, Action::Resume(node)), (it.cut, Action::Reconnect(node))];
    actions
        .extend(is_paused_or_cut.into_iter().filter(|(is_so, _)| *is_so && it.life != Life::Down).map(|(_, end)| end));
    if state.calm {
        return;
    }
    let down = |node: &&Node| node.life == Life::Down && node.boot > 0;
    let starts: u8 = state.nodes.iter().map(|node| node.boot.saturating_sub(1)).sum();
    let crashes = usize::from(starts) + state.nodes.iter().filter(down).count();
    match it.life {
        Life::Down if it.boot > 0 => actions.push(Action::Restart(node)),
        Life::Down => {}
        Life::Running | Life::Stopping => {
            if crashes < usize::from(setting.crashes) {
                actions.push(Action::Crash(node));
                if setting.stops && it.life == Life::Running && !it.paused {
                    actions.push(Action::Stop(node));
                }
            }
            let is_only_silent = (0..).zip(&state.nodes).all(|(other, it)| other == node || !(it.paused || it.cut));
            if setting.has_heartbeats() && setting.silences && is_only_silent {
                actions.extend((!it.paused).then_some(Action::Pause(node)));
                actions.extend((!it.cut).then_some(Action::Cut(node)));
            }
        }
    }
}

fn on_request(setting: &Setting, state: &State, request: Request, actions: &mut Vec<Action>) {
    let process = state.node(request.from.node);
    let is_silent = !request.awaited || !process.is_connected();
    // A commit that a silent process had sent was carried out before the calm.
    let is_unsent = state.calm && is_silent && holds_lock(&request);
    if !request.is_answer() && !is_unsent {
        actions.push(Action::Execute(request));
    }
    if !request.is_answer() && is_silent && (!holds_lock(&request) || setting.has(Rule::IdleTransactionsEnd)) {
        actions.push(Action::Abort(request));
    }
    let is_early = holds_lock(&request) && !setting.has(Rule::AnswerFollowsCommit);
    if request.awaited && (request.is_answer() || is_early) && process.is_connected() {
        actions.push(Action::Answer(request));
    }
    let may_break = process.is_active() && (process.cut || !setting.has_heartbeats());
    if request.awaited && setting.silences && may_break && !state.calm {
        actions.push(Action::LoseConnection(request));
    }
}

fn holds_lock(request: &Request) -> bool {
    matches!(request.work, Work::WriteChecked { .. })
}
