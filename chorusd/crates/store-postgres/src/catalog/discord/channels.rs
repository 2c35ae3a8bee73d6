//! Discord channels of agents. The owner of the agent and the holder of the gateway write them.

use chorus_base::error::Result;
use chorus_catalog::discord::{ChannelRow, ChannelTable, NewPost};
use chorus_catalog::{AgentRow, CatalogRead, CatalogWrite};
use chorus_journal::to_nanos;
use chorus_proto::AgentStatus;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PostgresDiscordTables, check_ids, posts};
use crate::batch::JobRows;
use crate::catalog::results::is_one;
use crate::statement::{Call, call};

/// Columns that [`read_channel`] reads, in order.
macro_rules! select_channels {
    ($rest:literal) => {
        concat!(
            "SELECT channel_id, guild_id, agent_id, made, seen, skipped, parent_id, user_id FROM discord_channels ",
            $rest
        )
    };
}

impl ChannelTable for PostgresDiscordTables {
    fn upsert(&self, row: ChannelRow) -> CatalogWrite<()> {
        let checked = check(&row);
        match self.db.grants.of_agent(row.agent) {
            Ok(grant) => self.db.write(checked.map(|()| Some(grant)), vec![upsert(&row)]),
            Err(_) => self.leases.write_gateway(checked, vec![upsert(&row)]),
        }
    }

    fn upsert_with_agent(&self, agent: AgentRow, channel: ChannelRow, welcome: NewPost) -> CatalogWrite<()> {
        let (id, changes) = (agent.id, self.changes.clone());
        let grant = check(&channel).and_then(|()| self.db.grants.of_agent(id).map(Some));
        let calls = vec![upsert_agent(agent), upsert(&channel), posts::enqueue(vec![welcome])];
        let note = move |rows: &JobRows| {
            // If the answer was lost, it may have changed something.
            if rows.first().and_then(|rows| rows.first()).is_none_or(|row| row.get(0)) {
                changes.note_agent(id);
            }
            Ok(())
        };
        self.db.writer.submit(grant, calls, None, note, |_| ())
    }

    fn delete(&self, channel: u64) -> CatalogWrite<bool> {
        let (_, boot) = self.db.node();
        let gateway = self.leases.shard_epoch();
        let delete = |(node, token): (String, Uuid)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[delete_channel($3, $1, $4, $5)])";
            call!(sql, node, token, channel.cast_signed(), boot, gateway)
        };
        self.db.write_with_result(check_ids([channel]).map(|()| None), Vec::new(), delete, is_one)
    }

    fn mark_seen(&self, channel: u64, message: u64) -> CatalogWrite<()> {
        self.leases.write_gateway(check_ids([channel, message]), vec![advance_seen(channel, message)])
    }

    fn get(&self, channel: u64) -> CatalogRead<'_, Option<ChannelRow>> {
        Box::pin(async move {
            check_ids([channel])?;
            let rows = self.db.read(select_channels!("WHERE channel_id = $1"), &[&channel.cast_signed()]).await?;
            Ok(rows.first().map(read_channel))
        })
    }

    fn threads_after(&self, channel: u64) -> CatalogRead<'_, Option<u64>> {
        Box::pin(async move {
            check_ids([channel])?;
            let sql = "SELECT threads_after FROM discord_channels WHERE channel_id = $1";
            let rows = self.db.read(sql, &[&channel.cast_signed()]).await?;
            Ok(rows.first().map(|row| row.get::<_, i64>(0).cast_unsigned()))
        })
    }

    fn list(&self, agent: Option<Uuid>) -> CatalogRead<'_, Vec<ChannelRow>> {
        Box::pin(async move {
            let rows = match agent {
                Some(agent) => {
                    let sql = select_channels!(
                        "WHERE agent_id = $1 AND parent_id IS NULL AND user_id IS NULL ORDER BY channel_id"
                    );
                    self.db.read(sql, &[&agent]).await?
                }
                None => {
                    let sql = select_channels!("WHERE parent_id IS NULL AND user_id IS NULL ORDER BY channel_id");
                    self.db.read(sql, &[]).await?
                }
            };
            Ok(rows.iter().map(read_channel).collect())
        })
    }

    fn list_threads(&self) -> CatalogRead<'_, Vec<ChannelRow>> {
        Box::pin(async move {
            let sql = select_channels!("WHERE parent_id IS NOT NULL ORDER BY channel_id");
            Ok(self.db.read(sql, &[]).await?.iter().map(read_channel).collect())
        })
    }

    fn list_direct(&self) -> CatalogRead<'_, Vec<ChannelRow>> {
        Box::pin(async move {
            let sql = select_channels!("WHERE user_id IS NOT NULL ORDER BY channel_id");
            Ok(self.db.read(sql, &[]).await?.iter().map(read_channel).collect())
        })
    }
}

/// Refuses rows with a number that cannot be an id.
fn check(row: &ChannelRow) -> Result<()> {
    let ChannelRow { channel, guild, seen, skipped, parent, user, .. } = *row;
    check_ids([channel, guild, seen, skipped, parent.unwrap_or(0), user.unwrap_or(0)])
}

fn upsert(row: &ChannelRow) -> Call {
    let sql =
        "INSERT INTO discord_channels AS c (channel_id, guild_id, agent_id, made, seen, skipped, parent_id, user_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (channel_id) DO UPDATE SET guild_id = $2, agent_id = $3, made = $4, seen = greatest(c.seen, $5),
             skipped = greatest(c.skipped, $6), parent_id = $7, user_id = $8";
    call!(
        sql,
        row.channel.cast_signed(),
        row.guild.cast_signed(),
        row.agent,
        row.created_by_us,
        row.seen.cast_signed(),
        row.skipped.cast_signed(),
        row.parent.map(u64::cast_signed),
        row.user.map(u64::cast_signed),
    )
}

/// Advances `seen` of a channel.
pub(super) fn advance_seen(channel: u64, message: u64) -> Call {
    let sql = "UPDATE discord_channels SET seen = $2 WHERE channel_id = $1 AND seen < $2";
    call!(sql, channel.cast_signed(), message.cast_signed())
}

/// Advances `skipped` of a channel.
pub(super) fn advance_skipped(channel: u64, message: u64) -> Call {
    let sql = "UPDATE discord_channels SET skipped = $2 WHERE channel_id = $1 AND skipped < $2";
    call!(sql, channel.cast_signed(), message.cast_signed())
}

fn read_channel(row: &Row) -> ChannelRow {
    let id = |column: usize| row.get::<_, Option<i64>>(column).map(i64::cast_unsigned);
    ChannelRow {
        channel: id(0).unwrap_or(0),
        guild: id(1).unwrap_or(0),
        agent: row.get(2),
        created_by_us: row.get(3),
        seen: id(4).unwrap_or(0),
        skipped: id(5).unwrap_or(0),
        parent: id(6),
        user: id(7),
    }
}

/// The call that inserts or updates an agent. It returns true if that concerns the sessions of the agent.
fn upsert_agent(row: AgentRow) -> Call {
    let status = match row.status {
        AgentStatus::Active => "active",
        AgentStatus::Destroyed => "destroyed",
    };
    let sql = "SELECT upsert_agent($1, $2, $3, $4, $5, $6, $7)";
    call!(sql, row.id, row.name, status.to_owned(), to_nanos(row.created_at), row.dir, row.config, row.stamp)
}
