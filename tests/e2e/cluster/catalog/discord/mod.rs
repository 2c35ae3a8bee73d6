//! The tables of the connection to Discord, and the leases of its parts.

mod agents;
mod contract;
mod leases;
mod script;
mod sending;

use std::sync::Arc;

use chorus_catalog::SessionChanges;
use chorus_catalog::discord::{ChannelRow, NewClaim, NewPost};
use chorus_store_postgres::{Claim, DiscordLease, PostgresDiscord, PostgresJournal};
use uuid::Uuid;

use super::{Result, at, open_sqlite};

const AGENTS: [Uuid; 2] = [Uuid::from_u128(0xa), Uuid::from_u128(0xb)];

fn discord(journal: &PostgresJournal) -> PostgresDiscord {
    journal.discord(Arc::new(SessionChanges::default()))
}

/// Claims a lease, and returns its epoch.
async fn take(node: &PostgresDiscord, lease: DiscordLease) -> Result<i64> {
    match node.leases.claim(lease).await? {
        Claim::Granted { epoch } => Ok(epoch),
        Claim::OwnedBy(owner) => Err(format!("{lease:?} is held by {owner:?}").into()),
    }
}

fn post(channel: u64, about: Option<&str>, nonce: &str) -> NewPost {
    NewPost {
        channel_id: channel,
        about: about.map(str::to_owned),
        body: format!(r#"{{"content":"{nonce}"}}"#),
        nonce: nonce.to_owned(),
        notice_at: None,
    }
}

fn channel(channel: u64, agent: Uuid) -> ChannelRow {
    ChannelRow { channel, guild: 1, agent, created_by_us: true, seen: 10, skipped: 10, parent: None, user: None }
}

fn message(message: u64, channel: u64, agent: Uuid) -> NewClaim {
    NewClaim { message, channel, agent, request: format!("request {message}"), at: at(0), contiguous: true }
}
