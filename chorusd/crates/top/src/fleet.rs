//! The agents with their conversations, and the rows that show them.

use std::collections::HashMap;

use chorus_proto::methods::conversations::Conversation;
use chorus_proto::{Agent, AgentState, ContextInfo, RunningTurn, Session};
use jiff::Timestamp;
use uuid::Uuid;

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
    Agent(&'a AgentRecord),
    Conversation(&'a AgentRecord, &'a Conversation),
    Captured(&'a AgentRecord, &'a Session),
}

impl<'a> Row<'a> {
    pub(crate) fn key(&self) -> RowKey {
        match self {
            Self::Agent(record) => RowKey::Conversation(Target::main(&record.agent.name)),
            Self::Conversation(record, conversation) => RowKey::Conversation(Target {
                agent: record.agent.name.clone(),
                conversation: Some(conversation.name.clone()),
            }),
            Self::Captured(record, session) => {
                RowKey::Captured(record.agent.name.clone(), session.header.id.to_string())
            }
        }
    }

    pub(crate) fn record(&self) -> &'a AgentRecord {
        match self {
            Self::Agent(record) | Self::Conversation(record, _) | Self::Captured(record, _) => record,
        }
    }

    pub(crate) fn context(&self) -> Option<&'a ContextInfo> {
        match self {
            Self::Agent(record) => record.agent.context.as_ref(),
            Self::Conversation(_, conversation) => conversation.context.as_ref(),
            Self::Captured(..) => None,
        }
    }

    pub(crate) fn turn(&self) -> Option<&'a RunningTurn> {
        match self {
            Self::Agent(record) => record.agent.turn.as_ref(),
            Self::Conversation(_, conversation) => conversation.turn.as_ref(),
            Self::Captured(..) => None,
        }
    }

    /// Returns the tools that run; `None` if that is not known.
    pub(crate) fn tools(&self) -> Option<Vec<&'a str>> {
        let conversation = match self {
            Self::Agent(_) => "",
            Self::Conversation(_, conversation) => &conversation.name,
            Self::Captured(..) => return None,
        };
        let tools =
            self.record().tools.get(conversation).filter(|tools| tools.is_complete || !tools.calls.is_empty())?;
        Some(tools.calls.iter().map(|call| &*call.name).collect())
    }
}

/// A tool call that runs.
#[derive(Debug)]
struct ToolCall {
    id: String,
    name: String,
}

/// The tool calls of a conversation that run. What ran before the first event of its turn is not known.
#[derive(Debug, Default)]
struct RunningTools {
    calls: Vec<ToolCall>,
    /// A model call or a tool call of this turn was seen to start.
    is_complete: bool,
}

/// An agent as it was when the daemon answered.
#[derive(Debug)]
pub(crate) struct AgentRecord {
    pub(crate) agent: Agent,
    /// When the daemon answered.
    pub(crate) at: Timestamp,
    /// The running tools of each conversation; those of `main` are under the empty name.
    tools: HashMap<String, RunningTools>,
    /// Its newest imported conversations.
    captured: Vec<Session>,
    /// Number of all of them.
    pub(crate) captured_total: u64,
}

impl AgentRecord {
    fn new(agent: Agent, at: Timestamp, old: Option<Box<Self>>) -> Box<Self> {
        let (mut tools, captured, captured_total) =
            old.map(|old| (old.tools, old.captured, old.captured_total)).unwrap_or_default();
        tools.retain(|name, _| match &**name {
            "" => agent.turn.is_some(),
            name => agent.conversations.iter().any(|live| live.name == name && live.turn.is_some()),
        });
        Box::new(Self { agent, at, tools, captured, captured_total })
    }

    /// Returns the seconds that a turn has been running.
    pub(crate) fn turn_seconds(&self, turn: &RunningTurn, now: Timestamp) -> u64 {
        let since = now.as_second() - self.at.as_second();
        turn.seconds + u64::try_from(since).unwrap_or_default()
    }

    fn is_idle(&self) -> bool {
        self.agent.state != AgentState::Active && self.agent.conversations.is_empty()
    }

    fn rank(&self) -> Rank {
        Rank { is_importer: self.agent.import_source.is_some(), is_idle: self.is_idle() }
    }

    fn add_to(&self, totals: &mut Totals) {
        totals.active += usize::from(!self.is_idle());
        totals.turns += self.turns();
        if let Some(today) = &self.agent.today {
            totals.tokens += today.tokens;
            if let Some(cost) = today.cost_usd {
                totals.cost_usd += cost;
                totals.priced += 1;
            }
        }
    }

    fn subtract_from(&self, totals: &mut Totals) {
        totals.active -= usize::from(!self.is_idle());
        totals.turns -= self.turns();
        if let Some(today) = &self.agent.today {
            totals.tokens = totals.tokens.saturating_sub(today.tokens);
            if let Some(cost) = today.cost_usd {
                totals.cost_usd -= cost;
                totals.priced -= 1;
            }
        }
    }

    fn turns(&self) -> usize {
        let others = self.agent.conversations.iter().filter(|live| live.turn.is_some()).count();
        usize::from(self.agent.turn.is_some()) + others
    }
}

/// The order of groups of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_importer: bool,
    is_idle: bool,
}

impl Rank {
    const ALL: [Self; 4] = [
        Self { is_importer: false, is_idle: false },
        Self { is_importer: false, is_idle: true },
        Self { is_importer: true, is_idle: false },
        Self { is_importer: true, is_idle: true },
    ];
}

/// An agent in its place, with what is needed to place its rows without a look at it.
#[derive(Debug)]
struct Slot {
    rank: Rank,
    conversations: usize,
    captured: usize,
    first_row: usize,
    record: Box<AgentRecord>,
}

impl Slot {
    fn new(record: Box<AgentRecord>) -> Self {
        let (conversations, captured) = (record.agent.conversations.len(), record.captured.len());
        Self { rank: record.rank(), conversations, captured, first_row: 0, record }
    }

    fn order(&self) -> (Rank, &str) {
        (self.rank, &self.record.agent.name)
    }
}

/// Counts of all agents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) agents: usize,
    pub(crate) active: usize,
    pub(crate) turns: usize,
    pub(crate) tokens: u64,
    cost_usd: f64,
    /// Number of agents with a cost.
    priced: usize,
}

impl Totals {
    /// Returns the cost of today; `None` if no agent has one.
    pub(crate) fn cost_usd(&self) -> Option<f64> {
        (self.priced > 0).then_some(self.cost_usd)
    }
}

/// All agents: those with a live context first, then the others, then those with imported conversations; each by name.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    /// In the order of the rows.
    slots: Vec<Slot>,
    rows: Vec<Place>,
    /// Names of agents by their ids, which stay when an agent is renamed.
    names: HashMap<Uuid, String>,
    totals: Totals,
}

impl Fleet {
    /// Takes all agents.
    pub(crate) fn replace(&mut self, agents: Vec<Agent>, now: Timestamp) {
        let mut before: HashMap<Uuid, Box<AgentRecord>> =
            self.slots.drain(..).map(|slot| (slot.record.agent.id, slot.record)).collect();
        self.names.clear();
        self.totals = Totals { agents: agents.len(), ..Totals::default() };
        for agent in agents {
            let old = before.remove(&agent.id);
            self.names.insert(agent.id, agent.name.clone());
            let record = AgentRecord::new(agent, now, old);
            record.add_to(&mut self.totals);
            self.slots.push(Slot::new(record));
        }
        self.slots.sort_by(|one, other| one.order().cmp(&other.order()));
        self.place_rows();
    }

    /// Takes one agent.
    pub(crate) fn update(&mut self, agent: Agent, now: Timestamp) {
        let of_id = self.names.get(&agent.id).and_then(|name| self.index(name));
        let old = of_id.or_else(|| self.index(&agent.name)).map(|at| (at, self.take(at)));
        self.names.insert(agent.id, agent.name.clone());
        let counts = |slot: &Slot| (slot.conversations, slot.captured);
        let (before, old_row, old) = match old {
            Some((at, slot)) => (Some((at, counts(&slot))), Some(slot.first_row), Some(slot.record)),
            None => (None, None, None),
        };
        let record = AgentRecord::new(agent, now, old);
        record.add_to(&mut self.totals);
        let mut slot = Slot::new(record);
        let at = self.slots.partition_point(|other| other.order() < slot.order());
        let is_in_place = before == Some((at, counts(&slot)));
        slot.first_row = old_row.unwrap_or_default();
        self.slots.insert(at, slot);
        self.totals.agents = self.slots.len();
        if !is_in_place {
            self.place_rows();
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Some(at) = self.index(name) else { return };
        let slot = self.take(at);
        self.names.remove(&slot.record.agent.id);
        self.totals.agents = self.slots.len();
        self.place_rows();
    }

    /// Takes an agent out, without a change of the rows.
    fn take(&mut self, at: usize) -> Slot {
        let slot = self.slots.remove(at);
        slot.record.subtract_from(&mut self.totals);
        slot
    }

    /// Returns the place of an agent.
    fn index(&self, name: &str) -> Option<usize> {
        Rank::ALL.iter().find_map(|rank| self.slots.binary_search_by(|slot| slot.order().cmp(&(*rank, name))).ok())
    }

    fn record_mut(&mut self, name: &str) -> Option<&mut AgentRecord> {
        let at = self.index(name)?;
        Some(&mut self.slots[at].record)
    }

    /// Notes that a tool call of a conversation runs.
    pub(crate) fn start_tool(&mut self, agent: &str, conversation: Option<&str>, id: String, name: String) {
        let Some(record) = self.record_mut(agent) else { return };
        let tools = record.tools.entry(conversation.unwrap_or_default().to_owned()).or_default();
        tools.is_complete = true;
        tools.calls.retain(|call| call.id != id);
        tools.calls.push(ToolCall { id, name });
    }

    /// Notes that a tool call has ended.
    pub(crate) fn finish_tool(&mut self, agent: &str, conversation: Option<&str>, id: &str) {
        let Some(record) = self.record_mut(agent) else { return };
        let tools = record.tools.entry(conversation.unwrap_or_default().to_owned()).or_default();
        // Others that started before it may still run.
        tools.calls.retain(|call| call.id != id);
    }

    /// Notes that a turn has started, of which no tool can run yet.
    pub(crate) fn start_turn(&mut self, agent: &str, conversation: Option<&str>) {
        let Some(record) = self.record_mut(agent) else { return };
        let tools = RunningTools { calls: Vec::new(), is_complete: true };
        record.tools.insert(conversation.unwrap_or_default().to_owned(), tools);
    }

    /// Forgets which tools run, because events were missed.
    pub(crate) fn forget_tools(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.record.tools.clear());
    }

    /// Takes the newest imported conversations of an agent.
    pub(crate) fn set_captured(&mut self, agent: &str, sessions: Vec<Session>, total: u64) {
        let Some(at) = self.index(agent) else { return };
        let slot = &mut self.slots[at];
        (slot.record.captured, slot.record.captured_total) = (sessions, total);
        slot.captured = slot.record.captured.len();
        self.place_rows();
    }

    /// Returns the names of agents that hold imported conversations, each with its program.
    pub(crate) fn importers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.slots
            .iter()
            .filter(|slot| slot.rank.is_importer)
            .filter_map(|slot| Some((&*slot.record.agent.name, slot.record.agent.import_source.as_deref()?)))
    }

    /// Returns the name of the only agent that holds no imported conversations.
    pub(crate) fn only_own_agent(&self) -> Option<String> {
        let mut own = self.slots.iter().filter(|slot| !slot.rank.is_importer);
        let name = own.next()?.record.agent.name.clone();
        own.next().is_none().then_some(name)
    }

    fn place_rows(&mut self) {
        self.rows.clear();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            slot.first_row = self.rows.len();
            self.rows.push(Place::Agent(at));
            self.rows.extend((0..slot.conversations).map(|other| Place::Conversation(at, other)));
            self.rows.extend((0..slot.captured).map(|session| Place::Captured(at, session)));
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns true if there is a cluster.
    pub(crate) fn has_nodes(&self) -> bool {
        self.slots.first().is_some_and(|slot| slot.record.agent.node.is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn row(&self, at: usize) -> Option<Row<'_>> {
        Some(match *self.rows.get(at)? {
            Place::Agent(agent) => Row::Agent(&self.slots[agent].record),
            Place::Conversation(agent, other) => {
                let record = &*self.slots[agent].record;
                Row::Conversation(record, &record.agent.conversations[other])
            }
            Place::Captured(agent, session) => {
                let record = &*self.slots[agent].record;
                Row::Captured(record, &record.captured[session])
            }
        })
    }

    /// Returns the place of a row; that of its agent, if only that is known.
    pub(crate) fn position(&self, key: &RowKey) -> Option<usize> {
        let slot = &self.slots[self.index(key.agent())?];
        let rows = slot.first_row..=slot.first_row + slot.conversations + slot.captured;
        rows.into_iter().find(|at| self.row(*at).is_some_and(|row| row.key() == *key)).or(Some(slot.first_row))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&AgentRecord> {
        Some(&*self.slots[self.index(name)?].record)
    }

    /// Returns the id of an agent.
    pub(crate) fn id(&self, name: &str) -> Option<Uuid> {
        Some(self.get(name)?.agent.id)
    }

    /// Returns the name that an agent has now.
    pub(crate) fn name(&self, id: Uuid) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// Returns the conversation of `target`, if it is known.
    pub(crate) fn find(&self, target: &Target) -> Option<Row<'_>> {
        let record = self.get(&target.agent)?;
        match &target.conversation {
            None => Some(Row::Agent(record)),
            Some(name) => {
                let live = record.agent.conversations.iter().find(|live| live.name == *name)?;
                Some(Row::Conversation(record, live))
            }
        }
    }

    /// Returns the names of agents that contain `words`, at most `limit`.
    pub(crate) fn named_like(&self, words: &str, limit: usize) -> Vec<String> {
        let wanted = words.to_lowercase();
        let names = self.slots.iter().map(|slot| &slot.record.agent.name);
        names.filter(|name| name.contains(&wanted)).take(limit).cloned().collect()
    }
}
