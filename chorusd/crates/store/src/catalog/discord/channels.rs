//! Discord channels of agents, and how far each was read.

use chorus_base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::outbox::{self, NewPost};
use crate::catalog::{AgentRow, CatalogDb, agents};
use crate::sqlite::StoreResult;

/// A row of the table `discord_channels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRow {
    pub channel: u64,
    pub guild: u64,
    pub agent: Uuid,
    /// Whether Chorus created the channel and so may delete it.
    pub created_by_us: bool,
    /// All messages up to this one were processed.
    pub seen: u64,
    /// Messages up to this one are never claimed: they are older than the agent's connection to the channel, or were
    /// skipped.
    pub skipped: u64,
}

const COLUMNS: &str = "channel_id, guild_id, agent_id, made, seen, skipped";

/// The table of the channels of agents.
#[derive(Debug, Clone)]
pub struct ChannelTable {
    pub(in crate::catalog) db: CatalogDb,
}

impl ChannelTable {
    /// Inserts or updates the channel of an agent; `seen` and `skipped` never decrease.
    pub fn upsert(&self, row: ChannelRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| upsert(conn, &row))
    }

    /// Inserts or updates an agent with its channel, and queues the welcome post, in one commit.
    pub fn upsert_with_agent(
        &self,
        agent: AgentRow,
        channel: ChannelRow,
        welcome: NewPost,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            agents::upsert(conn, &agent)?;
            upsert(conn, &channel)?;
            outbox::enqueue(conn, &welcome)
        })
    }

    /// Deletes a channel's row; returns false if there was none.
    pub fn delete(&self, channel: u64) -> impl Future<Output = Result<bool>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let gone = conn.prepare_cached("DELETE FROM discord_channels WHERE channel_id = ?1")?.execute([channel])?;
            Ok(gone == 1)
        })
    }

    /// Records that all messages of a channel up to `message` were processed.
    pub fn mark_seen(&self, channel: u64, message: u64) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| advance_seen(conn, channel, message))
    }

    /// Returns the row of a channel.
    pub async fn get(&self, channel: u64) -> Result<Option<ChannelRow>> {
        let one = format!("SELECT {COLUMNS} FROM discord_channels WHERE channel_id = ?1");
        self.db
            .reader
            .submit(move |conn| Ok(conn.prepare_cached(&one)?.query_row([channel], read_channel).optional()?))
            .await
    }

    /// Lists the channels of an agent, or of all agents.
    pub async fn list(&self, agent: Option<Uuid>) -> Result<Vec<ChannelRow>> {
        let wanted =
            format!("SELECT {COLUMNS} FROM discord_channels WHERE ?1 IS NULL OR agent_id = ?1 ORDER BY channel_id");
        let agent = agent.map(|agent| agent.as_bytes().to_vec());
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn.prepare_cached(&wanted)?.query_map([agent], read_channel)?.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}

pub(super) fn upsert(conn: &Connection, row: &ChannelRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO discord_channels (channel_id, guild_id, agent_id, made, seen, skipped) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (channel_id) DO UPDATE SET guild_id = excluded.guild_id, agent_id = excluded.agent_id,
             made = excluded.made, seen = max(seen, excluded.seen), skipped = max(skipped, excluded.skipped)",
    )?
    .execute(params![row.channel, row.guild, row.agent.as_bytes(), row.created_by_us, row.seen, row.skipped])?;
    Ok(())
}

/// Advances `seen` of a channel.
pub(super) fn advance_seen(conn: &Connection, channel: u64, message: u64) -> StoreResult<()> {
    conn.prepare_cached("UPDATE discord_channels SET seen = ?2 WHERE channel_id = ?1 AND seen < ?2")?
        .execute(params![channel, message])?;
    Ok(())
}

/// Advances `skipped` of a channel.
pub(super) fn advance_skipped(conn: &Connection, channel: u64, message: u64) -> StoreResult<()> {
    conn.prepare_cached("UPDATE discord_channels SET skipped = ?2 WHERE channel_id = ?1 AND skipped < ?2")?
        .execute(params![channel, message])?;
    Ok(())
}

fn read_channel(row: &Row<'_>) -> rusqlite::Result<ChannelRow> {
    Ok(ChannelRow {
        channel: row.get(0)?,
        guild: row.get(1)?,
        agent: Uuid::from_bytes(row.get(2)?),
        created_by_us: row.get(3)?,
        seen: row.get(4)?,
        skipped: row.get(5)?,
    })
}
