//! Decides what is requested again, and when: what events concern soon, everything else rarely.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use chorus_proto::EventType;
use chorus_proto::event::Event;
use jiff::{SignedDuration, Timestamp};

use crate::requests::Request;

/// The least time between two rounds of requests. What happens in between is requested once.
const ROUND: SignedDuration = SignedDuration::from_millis(300);
/// The limit on agents that are requested in a round; the others follow in the next.
const MAX_AGENTS: usize = 16;
/// Intervals at which things without events are requested. That of the daemon also shows soon that it does not answer any more.
const DAEMON_INTERVAL: SignedDuration = SignedDuration::from_secs(4);
const CLUSTER_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
const CAPTURE_INTERVAL: SignedDuration = SignedDuration::from_secs(20);
/// The time after which a list of agents that failed is requested again.
const RETRY_TIME: SignedDuration = SignedDuration::from_secs(3);
/// The interval at which all agents are requested, for changes without an event, such as a new name.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// The parts of the picture that are to be requested from the daemon.
#[derive(Debug, Default)]
pub(crate) struct Refresh {
    agents: BTreeSet<String>,
    captured: BTreeSet<String>,
    approvals: bool,
    tasks: bool,
    /// When they were requested last; `None` if they are to be requested now.
    status_at: Option<Timestamp>,
    daemon_at: Option<Timestamp>,
    cluster_at: Option<Timestamp>,
    capture_at: Option<Timestamp>,
    round_at: Option<Timestamp>,
    /// The daemon has no cluster.
    has_no_cluster: bool,
    /// Requests that are not answered, and when they were sent.
    pending: HashMap<Kind, Timestamp>,
    /// When the first request was sent that the daemon did not answer in time, and no later one either.
    silent_since: Option<Timestamp>,
}

/// Requests of which one at a time is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Status,
    Daemon,
    Capture,
    Cluster,
    Approvals,
    Tasks,
}

impl Kind {
    fn of(request: &Request) -> Option<Self> {
        Some(match request {
            Request::Status => Self::Status,
            Request::Daemon => Self::Daemon,
            Request::Capture => Self::Capture,
            Request::Cluster => Self::Cluster,
            Request::Approvals => Self::Approvals,
            Request::Tasks => Self::Tasks,
            _ => return None,
        })
    }
}

impl Refresh {
    /// Everything is to be requested: the daemon was reached, or events were missed.
    pub(crate) fn all(&mut self) {
        *self = Self { approvals: true, tasks: true, ..Self::default() };
    }

    /// Notes what an event concerns.
    pub(crate) fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventType::ApprovalAsked | EventType::ApprovalDecided => self.approvals = true,
            EventType::TaskStarted | EventType::TaskFinished => self.tasks = true,
            // Shown at once.
            EventType::ToolStarted | EventType::ToolFinished | EventType::AgentDestroyed => return,
            _ => {}
        }
        self.agents.extend(event.agent.clone());
    }

    /// The approvals are to be requested.
    pub(crate) fn all_approvals(&mut self) {
        self.approvals = true;
    }

    pub(crate) fn agent(&mut self, name: &str) {
        self.agents.insert(name.to_owned());
    }

    /// Notes that the imported conversations of an agent changed.
    pub(crate) fn captured(&mut self, agent: &str) {
        self.captured.insert(agent.to_owned());
    }

    /// Notes that there is no cluster.
    pub(crate) fn no_cluster(&mut self) {
        self.has_no_cluster = true;
    }

    /// All agents are to be requested.
    pub(crate) fn everything_of_agents(&mut self) {
        self.status_at = None;
    }

    /// Notes that a request has ended. `is_answer` unless the daemon did not answer it.
    pub(crate) fn answered(&mut self, request: &Request, is_answer: bool) {
        let sent_at = Kind::of(request).and_then(|kind| self.pending.remove(&kind));
        self.silent_since = if is_answer { None } else { self.silent_since.or(sent_at) };
    }

    /// Returns when the oldest request was sent that is not answered.
    pub(crate) fn unanswered_since(&self) -> Option<Timestamp> {
        self.pending.values().copied().chain(self.silent_since).min()
    }

    /// Tries again soon after a request that failed, without which nothing is known.
    pub(crate) fn failed(&mut self, request: &Request, now: Timestamp) {
        if *request == Request::Status {
            self.status_at = Some(now - STATUS_INTERVAL + RETRY_TIME);
        }
    }

    /// Returns what to request now.
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<Request> {
        if self.round_at.is_some_and(|at| now.duration_since(at).abs() < ROUND) {
            return Vec::new();
        }
        let is_due = |at: Option<Timestamp>, interval| at.is_none_or(|at| now.duration_since(at).abs() >= interval);
        let mut requests = Vec::new();
        if is_due(self.status_at, STATUS_INTERVAL) {
            self.status_at = Some(now);
            self.daemon_at = Some(now);
            // All of them are in the answer.
            self.agents.clear();
            requests.push(Request::Status);
        }
        if is_due(self.daemon_at, DAEMON_INTERVAL) {
            self.daemon_at = Some(now);
            requests.push(Request::Daemon);
        }
        if is_due(self.cluster_at, CLUSTER_INTERVAL) {
            self.cluster_at = Some(now);
            requests.extend((!self.has_no_cluster).then_some(Request::Cluster));
        }
        if is_due(self.capture_at, CAPTURE_INTERVAL) {
            self.capture_at = Some(now);
            requests.push(Request::Capture);
        }
        if std::mem::take(&mut self.approvals) {
            requests.push(Request::Approvals);
        }
        if std::mem::take(&mut self.tasks) {
            requests.push(Request::Tasks);
        }
        requests.retain(|request| match Kind::of(request).map(|kind| self.pending.entry(kind)) {
            Some(Entry::Vacant(entry)) => {
                entry.insert(now);
                true
            }
            Some(Entry::Occupied(_)) => false,
            None => true,
        });
        for _ in 0..MAX_AGENTS {
            requests.extend(self.agents.pop_first().map(Request::Agent));
            requests.extend(self.captured.pop_first().map(Request::Captured));
        }
        if !requests.is_empty() {
            self.round_at = Some(now);
        }
        requests
    }

    /// Returns the time until something is due; `None` if only the intervals are.
    pub(crate) fn wait(&self) -> Option<SignedDuration> {
        let is_soon = self.approvals || self.tasks || !self.agents.is_empty() || !self.captured.is_empty();
        (is_soon || self.status_at.is_none()).then_some(ROUND)
    }
}
