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
    /// The gateway: what is received, and new sessions.
    Gateway,
    /// The sending of the posts of a channel, by its id.
    Channel(u64),
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

    /// Gives a lease up after all writes so far.
    fn release(&self, lease: DiscordLease) -> CatalogRead<'_, ()>;

    /// Looks for work.
    fn waiting_work(&self) -> CatalogRead<'_, SharedWork>;

    /// Returns a claim that is still open, as it is now.
    fn open_claim(&self, message: u64) -> CatalogRead<'_, Option<OpenClaim>>;

    /// Lists the open claims of a channel, oldest first.
    fn open_claims_in(&self, channel: u64) -> CatalogRead<'_, Vec<OpenClaim>>;

    /// Finishes a claim whose turn has not started, without an answer. Returns false if it has started or is finished.
    fn withdraw(&self, message: u64) -> CatalogRead<'_, bool>;

    /// Passes `body` to the daemon that owns the agent, once for each `id`. Returns false if no other daemon owns it.
    fn hand_over(&self, agent: Uuid, id: u64, body: String) -> CatalogRead<'_, bool>;

    /// Takes all that others have passed to this daemon. What is not recent is deleted.
    fn take_handed(&self) -> CatalogRead<'_, Vec<String>>;

    /// Returns a number that changes when others say that there is work for this daemon, or a lease is free. They may have
    /// no way to say so.
    fn news(&self) -> watch::Receiver<u64>;
}
