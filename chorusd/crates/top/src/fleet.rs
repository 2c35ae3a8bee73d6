//! The agents with their conversations, and the rows that show them.

use std::collections::HashMap;

use chorus_proto::methods::conversations::Conversation;
use chorus_proto::{Agent, AgentState, ContextInfo, RunningTurn, Session};
use jiff::Timestamp;

/// A conversation of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) agent: String,
    /// `None` for `main`.
    pub(crate) conversation: Option<String>,
}

impl Target {
    pub(crate) fn main(agent: &str) -> Self {
        Self { agent: agent.to_owned(), conversation: None }
    }

    /// Returns the parameters `agent` and `conversation`.
    pub(crate) fn params(&self) -> (Option<String>, Option<String>) {
        (Some(self.agent.clone()), self.conversation.clone())
    }
}

/// The subject of a row, which stays selected when rows move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowKey {
    Conversation(Target),
    /// A captured conversation: the agent that holds it, and its session.
    Captured(String, String),
}

impl RowKey {
    pub(crate) fn agent(&self) -> &str {
        match self {
            Self::Conversation(target) => &target.agent,
            Self::Captured(agent, _) => agent,
        }
    }
}

/// Places of a row's data in the fleet.
#[derive(Debug, Clone, Copy)]
enum Place {
    Agent(usize),
    Conversation(usize, usize),
    Captured(usize, usize),
}

/// A row with its data.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row<'a> {
    Agent(&'a Known),
    Conversation(&'a Known, &'a Conversation),
    Captured(&'a Known, &'a Session),
}

impl<'a> Row<'a> {
    pub(crate) fn key(&self) -> RowKey {
        match self {
            Self::Agent(known) => RowKey::Conversation(Target::main(&known.agent.name)),
            Self::Conversation(known, conversation) => RowKey::Conversation(Target {
                agent: known.agent.name.clone(),
                conversation: Some(conversation.name.clone()),
            }),
            Self::Captured(known, session) => RowKey::Captured(known.agent.name.clone(), session.header.id.to_string()),
        }
    }

    pub(crate) fn known(&self) -> &'a Known {
        match self {
            Self::Agent(known) | Self::Conversation(known, _) | Self::Captured(known, _) => known,
        }
    }

    pub(crate) fn context(&self) -> Option<&'a ContextInfo> {
        match self {
            Self::Agent(known) => known.agent.context.as_ref(),
            Self::Conversation(_, conversation) => conversation.context.as_ref(),
            Self::Captured(..) => None,
        }
    }

    pub(crate) fn turn(&self) -> Option<&'a RunningTurn> {
        match self {
            Self::Agent(known) => known.agent.turn.as_ref(),
            Self::Conversation(_, conversation) => conversation.turn.as_ref(),
            Self::Captured(..) => None,
        }
    }

    /// Returns the tool that runs.
    pub(crate) fn tool(&self) -> Option<&'a str> {
        let conversation = match self {
            Self::Agent(_) => "",
            Self::Conversation(_, conversation) => &conversation.name,
            Self::Captured(..) => return None,
        };
        self.known().tools.get(conversation).map(String::as_str)
    }
}

/// An agent as it was when the daemon answered.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) agent: Agent,
    /// When the daemon answered.
    pub(crate) at: Timestamp,
    /// The running tool of each conversation; that of `main` is under the empty name.
    tools: HashMap<String, String>,
    /// Its newest imported conversations.
    captured: Vec<Session>,
    /// Number of all of them.
    pub(crate) captured_total: u64,
}

impl Known {
    /// Returns the seconds that a turn has been running.
    pub(crate) fn turn_seconds(&self, turn: &RunningTurn, now: Timestamp) -> u64 {
        let since = now.as_second() - self.at.as_second();
        turn.seconds + u64::try_from(since).unwrap_or_default()
    }

    fn is_idle(&self) -> bool {
        self.agent.state != AgentState::Active && self.agent.conversations.is_empty()
    }
}

/// Counts of all agents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) agents: usize,
    pub(crate) active: usize,
    pub(crate) turns: usize,
    pub(crate) tokens: u64,
    pub(crate) cost_usd: Option<f64>,
}

/// All agents: those with a live context first, then the others, then those with imported conversations; each by name.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    agents: Vec<Known>,
    rows: Vec<Place>,
    totals: Totals,
}

impl Fleet {
    /// Takes all agents.
    pub(crate) fn replace(&mut self, agents: Vec<Agent>, now: Timestamp) {
        let mut before: HashMap<String, Known> =
            self.agents.drain(..).map(|known| (known.agent.name.clone(), known)).collect();
        self.agents = agents
            .into_iter()
            .map(|agent| {
                let old = before.remove(&agent.name);
                Self::know(agent, now, old)
            })
            .collect();
        self.arrange();
    }

    /// Takes one agent.
    pub(crate) fn update(&mut self, agent: Agent, now: Timestamp) {
        let at = self.agents.iter().position(|known| known.agent.id == agent.id || known.agent.name == agent.name);
        let old = at.map(|at| self.agents.swap_remove(at));
        self.agents.push(Self::know(agent, now, old));
        self.arrange();
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.agents.retain(|known| known.agent.name != name);
        self.arrange();
    }

    fn know(agent: Agent, at: Timestamp, old: Option<Known>) -> Known {
        let (mut tools, captured, captured_total) =
            old.map(|old| (old.tools, old.captured, old.captured_total)).unwrap_or_default();
        tools.retain(|name, _| match &**name {
            "" => agent.turn.is_some(),
            name => agent.conversations.iter().any(|live| live.name == name && live.turn.is_some()),
        });
        Known { agent, at, tools, captured, captured_total }
    }

    /// Notes which tool of a conversation runs.
    pub(crate) fn set_tool(&mut self, agent: &str, conversation: Option<&str>, tool: Option<String>) {
        let Some(known) = self.agents.iter_mut().find(|known| known.agent.name == agent) else { return };
        let conversation = conversation.unwrap_or_default();
        match tool {
            Some(tool) => known.tools.insert(conversation.to_owned(), tool),
            None => known.tools.remove(conversation),
        };
    }

    /// Takes the newest imported conversations of an agent.
    pub(crate) fn set_captured(&mut self, agent: &str, sessions: Vec<Session>, total: u64) {
        let Some(known) = self.agents.iter_mut().find(|known| known.agent.name == agent) else { return };
        (known.captured, known.captured_total) = (sessions, total);
        self.arrange();
    }

    /// Returns the names of agents that hold imported conversations, each with its program.
    pub(crate) fn importers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.agents.iter().filter_map(|known| Some((&*known.agent.name, known.agent.import_source.as_deref()?)))
    }

    /// Returns the name of the only agent that holds no imported conversations.
    pub(crate) fn only_own_agent(&self) -> Option<String> {
        let mut own = self.agents.iter().filter(|known| known.agent.import_source.is_none());
        let name = own.next()?.agent.name.clone();
        own.next().is_none().then_some(name)
    }

    fn arrange(&mut self) {
        self.agents.sort_by(|one, other| {
            let rank = |known: &Known| (known.agent.import_source.is_some(), known.is_idle());
            rank(one).cmp(&rank(other)).then_with(|| one.agent.name.cmp(&other.agent.name))
        });
        self.rows.clear();
        self.totals = Totals { agents: self.agents.len(), ..Totals::default() };
        for (at, known) in self.agents.iter().enumerate() {
            self.rows.push(Place::Agent(at));
            self.rows.extend((0..known.agent.conversations.len()).map(|other| Place::Conversation(at, other)));
            self.rows.extend((0..known.captured.len()).map(|session| Place::Captured(at, session)));
            let totals = &mut self.totals;
            totals.active += usize::from(!known.is_idle());
            totals.turns += usize::from(known.agent.turn.is_some())
                + known.agent.conversations.iter().filter(|live| live.turn.is_some()).count();
            if let Some(today) = &known.agent.today {
                totals.tokens += today.tokens;
                if let Some(cost) = today.cost_usd {
                    totals.cost_usd = Some(totals.cost_usd.unwrap_or_default() + cost);
                }
            }
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns true if there is a cluster.
    pub(crate) fn has_nodes(&self) -> bool {
        self.agents.first().is_some_and(|known| known.agent.node.is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn row(&self, at: usize) -> Option<Row<'_>> {
        Some(match *self.rows.get(at)? {
            Place::Agent(agent) => Row::Agent(&self.agents[agent]),
            Place::Conversation(agent, other) => {
                let known = &self.agents[agent];
                Row::Conversation(known, &known.agent.conversations[other])
            }
            Place::Captured(agent, session) => {
                let known = &self.agents[agent];
                Row::Captured(known, &known.captured[session])
            }
        })
    }

    /// Returns the place of a row.
    pub(crate) fn position(&self, key: &RowKey) -> Option<usize> {
        let agent = self.agents.iter().position(|known| known.agent.name == key.agent())?;
        let own = |place: &Place| match *place {
            Place::Agent(at) | Place::Conversation(at, _) | Place::Captured(at, _) => at == agent,
        };
        let first = self.rows.iter().position(own)?;
        let rows = self.rows[first..].iter().take_while(|place| own(place)).count();
        (first..first + rows).find(|at| self.row(*at).is_some_and(|row| row.key() == *key)).or(Some(first))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Known> {
        self.agents.iter().find(|known| known.agent.name == name)
    }

    /// Returns the conversation of `target`, if it is known.
    pub(crate) fn find(&self, target: &Target) -> Option<Row<'_>> {
        let known = self.get(&target.agent)?;
        match &target.conversation {
            None => Some(Row::Agent(known)),
            Some(name) => {
                let live = known.agent.conversations.iter().find(|live| live.name == *name)?;
                Some(Row::Conversation(known, live))
            }
        }
    }

    /// Returns the names of agents that contain `words`, at most `limit`.
    pub(crate) fn named_like(&self, words: &str, limit: usize) -> Vec<String> {
        let wanted = words.to_lowercase();
        let names = self.agents.iter().map(|known| &known.agent.name);
        names.filter(|name| name.contains(&wanted)).take(limit).cloned().collect()
    }
}
