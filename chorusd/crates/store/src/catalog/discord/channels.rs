//! Discord channels of agents, and how far each was read.

use chorus_catalog::discord::{ChannelRow, ChannelTable, NewPost};
use chorus_catalog::{AgentRow, CatalogRead, CatalogWrite};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::outbox;
use crate::catalog::{CatalogDb, agents};
use crate::sqlite::StoreResult;

const COLUMNS: &str = "channel_id, guild_id, agent_id, made, seen, skipped, parent_id, user_id";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteChannelTable {
    pub(super) db: CatalogDb,
}

impl ChannelTable for SqliteChannelTable {
    fn upsert(&self, row: ChannelRow) -> CatalogWrite<()> {
        self.db.write(move |conn| upsert(conn, &row))
    }

    fn upsert_with_agent(&self, agent: AgentRow, channel: ChannelRow, welcome: NewPost) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            agents::upsert(conn, &agent)?;
            upsert(conn, &channel)?;
            outbox::enqueue(conn, &welcome)
        })
    }

    fn delete(&self, channel: u64) -> CatalogWrite<bool> {
        self.db.write(move |conn| {
            let delete = "DELETE FROM discord_channels WHERE channel_id = ?1 OR parent_id = ?1";
            Ok(conn.prepare_cached(delete)?.execute([channel])? > 0)
        })
    }

    fn mark_seen(&self, channel: u64, message: u64) -> CatalogWrite<()> {
        self.db.write(move |conn| advance_seen(conn, channel, message))
    }

    fn get(&self, channel: u64) -> CatalogRead<'_, Option<ChannelRow>> {
        let one = format!("SELECT {COLUMNS} FROM discord_channels WHERE channel_id = ?1");
        self.db.read(move |conn| Ok(conn.prepare_cached(&one)?.query_row([channel], read_channel).optional()?))
    }

    fn threads_after(&self, channel: u64) -> CatalogRead<'_, Option<u64>> {
        let one = "SELECT threads_after FROM discord_channels WHERE channel_id = ?1";
        self.db.read(move |conn| Ok(conn.prepare_cached(one)?.query_row([channel], |row| row.get(0)).optional()?))
    }

    fn list(&self, agent: Option<Uuid>) -> CatalogRead<'_, Vec<ChannelRow>> {
        self.db.read(move |conn| list_where(conn, "parent_id IS NULL AND user_id IS NULL", agent))
    }

    fn list_threads(&self) -> CatalogRead<'_, Vec<ChannelRow>> {
        self.db.read(|conn| list_where(conn, "parent_id IS NOT NULL", None))
    }

    fn list_direct(&self) -> CatalogRead<'_, Vec<ChannelRow>> {
        self.db.read(|conn| list_where(conn, "user_id IS NOT NULL", None))
    }
}

fn list_where(conn: &Connection, condition: &str, agent: Option<Uuid>) -> StoreResult<Vec<ChannelRow>> {
    let wanted = format!(
        "SELECT {COLUMNS} FROM discord_channels WHERE {condition} AND (?1 IS NULL OR agent_id = ?1)
         ORDER BY channel_id"
    );
    let agent = agent.map(|agent| agent.as_bytes().to_vec());
    Ok(conn.prepare_cached(&wanted)?.query_map([agent], read_channel)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn upsert(conn: &Connection, row: &ChannelRow) -> StoreResult<()> {
    conn.prepare_cached(
        // Ids of Discord begin with the milliseconds since 2015.
        "INSERT INTO discord_channels (channel_id, guild_id, agent_id, made, seen, skipped, parent_id, user_id, threads_after)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) - 1420070400000) << 22)
         ON CONFLICT (channel_id) DO UPDATE SET guild_id = excluded.guild_id, agent_id = excluded.agent_id,
             parent_id = excluded.parent_id, user_id = excluded.user_id, made = excluded.made, seen = max(seen, excluded.seen), skipped = max(skipped, excluded.skipped)",
    )?
    .execute(params![
        row.channel,
        row.guild,
        row.agent.as_bytes(),
        row.created_by_us,
        row.seen,
        row.skipped,
        row.parent,
        row.user
    ])?;
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
        parent: row.get(6)?,
        user: row.get(7)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::OnFatal;
    use crate::catalog::SqliteCatalog;

    #[tokio::test]
    async fn a_thread_has_a_row_that_is_no_channel_and_goes_with_its_channel() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: OnFatal = Arc::new(|_| {});
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let path = dir.path().join("chorus.db");
        let catalog = SqliteCatalog::open(&path, &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap().0;
        let channels = &catalog.tables.discord.channels;
        let row = |channel, parent| ChannelRow {
            channel,
            guild: 1,
            agent: Uuid::from_u128(1),
            created_by_us: false,
            seen: channel,
            skipped: channel,
            parent,
            user: None,
        };
        let (room, thread, other) = (row(7, None), row(8, Some(7)), row(9, Some(6)));
        let direct = ChannelRow { guild: 0, user: Some(5), ..row(10, None) };
        for row in [room, thread, other, direct] {
            channels.upsert(row).await.unwrap();
        }
        assert_eq!(channels.list(Some(room.agent)).await.unwrap(), [room]);
        assert_eq!(channels.list_threads().await.unwrap(), [thread, other]);
        assert_eq!(channels.list_direct().await.unwrap(), [direct]);
        let (after, unknown) = (channels.threads_after(7).await.unwrap(), channels.threads_after(1).await.unwrap());
        assert!(after.is_some_and(|after| after > 1 << 60) && unknown.is_none(), "{after:?}");
        channels.upsert(room).await.unwrap();
        assert_eq!(channels.threads_after(7).await.unwrap(), after, "the connection is as old as before");
        assert!(channels.delete(7).await.unwrap());
        assert_eq!((channels.list(None).await.unwrap(), channels.list_threads().await.unwrap()), (vec![], vec![other]));
    }
}
