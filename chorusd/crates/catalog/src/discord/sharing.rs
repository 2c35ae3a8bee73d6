//! The connection to Discord as several daemons share it: each part of it is with one of them at a time. See
//! docs/design/discord.md.

use std::fmt::Debug;

use chorus_journal::Claim;
use tokio::sync::watch;
use uuid::Uuid;

use super::OpenClaim;
use crate::CatalogRead;

/// A part of the connection to Discord that one process has at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscordLease {
    /// A shard of the gateway, by its number, from 0, and the number of shards: what is received.
    Gateway { shard: u32, of: u32 },
    /// The sending of the posts of a channel, by its id.
    Channel(u64),
    /// The right to begin a session of the gateway, in a bucket of Discord's limit.
    Identify(u32),
}

impl DiscordLease {
    /// The gateway of a bot without shards.
    pub const GATEWAY: Self = Self::Gateway { shard: 0, of: 1 };
}

/// The daemons that share the gateway, as one look at the database finds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayOwners {
    /// The number of daemons that are well and want shards, this one included.
    pub members: u32,
    /// The shards of daemons that are well: the shard, the number of shards, and the daemon.
    pub shards: Vec<(u32, u32, String)>,
}

/// Work that waits, as one look at the database finds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedWork {
    /// Open claims of agents that this daemon owns, by message, oldest first.
    pub claims: Vec<u64>,
    /// Agents with open claims that no daemon owns.
    pub unowned: Vec<Uuid>,
    /// Channels with posts to send that no other daemon sends.
    pub channels: Vec<u64>,
    /// True if another daemon has passed something to this one.
    pub is_handed: bool,
}

/// The agreement of the daemons of a cluster about Discord. Reads that change something are committed when they return.
pub trait SharedDiscord: Debug + Send + Sync {
    /// Claims a lease for this process, unless it has it already.
    fn claim(&self, lease: DiscordLease) -> CatalogRead<'_, Claim>;

    /// Returns whether this process has a lease, as far as it knows, and may begin something with it. Asks nobody.
    fn holds(&self, lease: DiscordLease) -> bool;

    /// Lets the others know that this daemon wants its share of the shards, or does not want it any more.
    fn set_member(&self, wants: bool) -> CatalogRead<'_, ()>;

    /// Looks who has which shard.
    fn gateway_owners(&self) -> CatalogRead<'_, GatewayOwners>;

    /// Gives a lease up after all writes so far.
    fn release(&self, lease: DiscordLease) -> CatalogRead<'_, ()>;

    /// Looks for work.
    fn waiting_work(&self) -> CatalogRead<'_, SharedWork>;

    /// Returns a claim that is still open, as it is now.
    fn open_claim(&self, message: u64) -> CatalogRead<'_, Option<OpenClaim>>;

    /// Returns whether a claim was finished with an answer.
    fn is_answered(&self, message: u64) -> CatalogRead<'_, bool>;

    /// Lists the open claims of a channel, oldest first.
    fn open_claims_in(&self, channel: u64) -> CatalogRead<'_, Vec<OpenClaim>>;

    /// Finishes a claim whose turn has not started, without an answer. Returns false if it has started or is finished.
    fn withdraw(&self, message: u64) -> CatalogRead<'_, bool>;

    /// Passes `body` to the daemon that owns the agent, once for each `id`. Returns false if no other daemon owns it.
    fn hand_over(&self, agent: Uuid, id: u64, body: String) -> CatalogRead<'_, bool>;

    /// Takes all that others have passed to this daemon. What is not recent is deleted.
    fn take_handed(&self) -> CatalogRead<'_, Vec<String>>;

    /// Returns a number that changes when others say that there is work for this daemon. They may have no way to say so.
    fn news(&self) -> watch::Receiver<u64>;

    /// Does the same for shards of the gateway that others have released.
    fn releases(&self) -> watch::Receiver<u64>;
}
