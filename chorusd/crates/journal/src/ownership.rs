//! Which agents this daemon may write for, if several share a database.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use chorus_proto::Event;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{ContextRow, ConversationRow, DatabaseReport, JournalRead, NodeRow};

/// A daemon that owns an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Name of the node.
    pub node: String,
    /// Address at which other nodes reach it.
    pub address: String,
}

/// A node whose heartbeat is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateNode {
    pub node: Owner,
    /// Time until which it may begin something, if it has not sent another heartbeat.
    pub may_act_until: Instant,
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This process owns the agent now, in this epoch.
    Granted { epoch: i64 },
    /// Another process owns it, and its heartbeat is fresh.
    OwnedBy(Owner),
}

/// The agents that this daemon owns among those that share a database. What it writes for others is refused. See
/// docs/design/ownership.md.
pub trait Ownership: Debug + Send + Sync {
    /// Returns the name of this node.
    fn node(&self) -> &str;

    /// Returns the boot number of this daemon among those of its node.
    fn boot(&self) -> i64;

    /// Returns whether this daemon owns the agent, as far as it knows.
    fn owns(&self, agent: Uuid) -> bool;

    /// Returns the epoch in which this daemon owns the agent, as far as it knows; `None` if it does not own it.
    fn epoch(&self, agent: Uuid) -> Option<i64>;

    /// Returns whether a daemon has owned the agent before.
    fn was_owned(&self, agent: Uuid) -> JournalRead<'_, bool>;

    /// Claims an agent, which need not exist yet.
    fn claim(&self, agent: Uuid) -> JournalRead<'_, Claim>;

    /// Claims an agent that is about to be created, or comes back, also if this node drains.
    fn claim_new(&self, agent: Uuid) -> JournalRead<'_, Claim>;

    /// Returns another node that takes agents, any of them but those that were not reached lately; `None` if there is none.
    fn find_successor(&self) -> JournalRead<'_, Option<Owner>>;

    /// Notes if this node has reached another one just now: requests for agents that nobody owns are not sent to one that it does not reach.
    fn note_reach(&self, node: &str, is_reached: bool);

    /// Claims the agents that this node owned when it stopped or crashed and that nobody has claimed since. Returns their
    /// ids.
    fn claim_former(&self) -> JournalRead<'_, Vec<Uuid>>;

    /// Claims up to `limit` agents that nobody owns and of which something is due: an idle deadline has passed, or a turn
    /// was running. Returns their ids.
    fn claim_due(&self, limit: u32) -> JournalRead<'_, Vec<Uuid>>;

    /// Gives an agent up after all writes so far. Returns the node that wants it, if one does.
    fn release(&self, agent: Uuid) -> JournalRead<'_, Option<String>>;

    /// Gives an agent up to another node after all writes so far, and tells that node.
    fn hand_over(&self, agent: Uuid, to: String) -> JournalRead<'_, ()>;

    /// Waits until another node has given an agent up to this one, or may have.
    fn wanted(&self) -> JournalRead<'_, ()>;

    /// Claims up to `limit` agents that were given up to this node. Returns their ids.
    fn claim_wanted(&self, limit: u32) -> JournalRead<'_, Vec<Uuid>>;

    /// Lists the agents that this daemon owns.
    fn owned(&self) -> Vec<Uuid>;

    /// Returns whether this node claims no agents, because it is to have none.
    fn is_draining(&self) -> bool;

    /// Lets this node claim no further agents while another node can, or lets it claim again. A restart does that, too.
    fn set_draining(&self, draining: bool) -> JournalRead<'_, ()>;

    /// Forgets a node that has stopped or whose heartbeat is stale, with everything that only its machine needs, until it starts again.
    /// Returns the number of agents that it had and that nobody has now; `None` if it runs.
    fn forget_node(&self, node: String) -> JournalRead<'_, Option<u64>>;

    /// Lists the nodes of the cluster by name, without those that were forgotten.
    fn nodes(&self) -> JournalRead<'_, Vec<NodeRow>>;

    /// Returns the node that owns each agent; those that nobody owns are missing.
    fn owners(&self, agents: Vec<Uuid>) -> JournalRead<'_, HashMap<Uuid, String>>;

    /// Counts the agents that no running node has: no node has their messages in its index.
    fn count_unclaimed(&self) -> JournalRead<'_, u64>;

    /// Tells the other nodes by which hash they can compare the permission profiles of this one with theirs.
    fn publish_profiles(&self, hash: String) -> JournalRead<'_, ()>;

    /// Describes the database that the nodes share.
    fn database(&self) -> JournalRead<'_, DatabaseReport>;

    /// Lists the live contexts of an agent that this daemon owns.
    fn live_contexts_of(&self, agent: Uuid) -> JournalRead<'_, Vec<ContextRow>>;

    /// Lists the conversations beside `main` of an agent.
    fn conversations_of(&self, agent: Uuid) -> JournalRead<'_, Vec<ConversationRow>>;

    /// Waits until the heartbeats of other nodes than those in `known` are late, though not yet stale, and returns those nodes. Only
    /// nodes that have an address.
    fn late_nodes(&self, known: Vec<String>) -> JournalRead<'_, Vec<LateNode>>;

    /// Lets the agents of a node be claimed at once that does not answer, if its own bound has passed by the clock of the database.
    /// Returns whether they may be claimed now.
    fn presume_dead(&self, node: Owner) -> JournalRead<'_, bool>;

    /// Waits until other nodes have fallen silent, so that their agents may be claimed, and returns those.
    fn fallen_silent(&self) -> JournalRead<'_, Vec<String>>;

    /// Returns the other nodes that are well and can be reached.
    fn other_nodes(&self) -> JournalRead<'_, Vec<Owner>>;

    /// Subscribes to the events of other nodes from now on. They arrive within a second, without those that are not stored.
    fn subscribe_elsewhere(&self) -> JournalRead<'_, broadcast::Receiver<Arc<Event>>>;

    /// Waits until this daemon may begin something: the database has accepted its heartbeat lately.
    fn held(&self) -> BoxFuture<'_, ()>;

    /// Waits until this daemon may begin nothing more, because its heartbeat is late.
    fn hold_ended(&self) -> BoxFuture<'_, ()>;

    /// Waits until another node has taken over agents that this one owned, and returns them.
    fn lost(&self) -> JournalRead<'_, Vec<Uuid>>;
}
