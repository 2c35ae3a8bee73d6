//! The agreement of nodes about Discord besides the leases: who works on which claim, and what they pass to each other.

use chorus_catalog::CatalogRead;
use chorus_catalog::discord::{DiscordLease, GatewayOwners, OpenClaim, SharedDiscord, SharedWork};
use chorus_journal::Claim;
use tokio::sync::watch;
use tokio_postgres::Row;
use uuid::Uuid;

use super::DiscordLeases;
use super::claims::{notify_owner_of_claim, read_open};
use super::leases::read_shard;
use super::news::WORK_CHANNEL;
use crate::catalog::results::is_one;
use crate::errors::read_failed;
use crate::node::STALE_AFTER;
use crate::statement::{Call, call, run_alone};

/// Kinds of rows of [`WAITING_WORK`].
const CLAIM: i32 = 1;
const UNOWNED: i32 = 2;
const CHANNEL: i32 = 3;
const HANDED: i32 = 4;

/// The statement that finds the work that waits for a node, sent every few seconds. `$3` is the age of a stale heartbeat in seconds.
const WAITING_WORK: &str = "WITH RECURSIVE fresh AS (
         SELECT id FROM nodes WHERE NOT stopped AND heartbeat > clock_timestamp() - make_interval(secs => $3)
     ), waiting AS (
         (SELECT channel_id FROM discord_outbox WHERE sent_id IS NULL ORDER BY channel_id LIMIT 1)
         UNION ALL
         SELECT (SELECT channel_id FROM discord_outbox WHERE sent_id IS NULL
                     AND channel_id > waiting.channel_id ORDER BY channel_id LIMIT 1)
         FROM waiting WHERE waiting.channel_id IS NOT NULL
     ), open AS (SELECT message_id, agent_id FROM discord_claims WHERE state IN ('queued', 'running'))
     SELECT 1 AS kind, o.message_id AS id, NULL::uuid AS agent FROM open o JOIN heads h ON h.agent_id = o.agent_id
         WHERE h.owner_node = $1 AND h.owner_boot = $2
     UNION ALL
     SELECT DISTINCT 2, 0, o.agent_id FROM open o LEFT JOIN heads h ON h.agent_id = o.agent_id
         WHERE h.owner_node IS NULL OR (h.owner_node = $1 AND h.owner_boot < $2)
             OR (h.owner_node <> $1 AND h.owner_node NOT IN (SELECT id FROM fresh))
     UNION ALL
     SELECT 3, w.channel_id, NULL FROM waiting w LEFT JOIN discord_leases l ON l.kind = 'channel' AND l.id = w.channel_id
         WHERE w.channel_id IS NOT NULL AND (l.owner_node IS NULL OR l.owner_node = $1
             OR l.owner_node NOT IN (SELECT id FROM fresh))
     UNION ALL
     SELECT 4, 0, NULL WHERE EXISTS (SELECT FROM discord_handed WHERE node = $1)
     ORDER BY kind, id";

/// The statement that finds who has which shard. `$1` is the age of a stale heartbeat in seconds.
const GATEWAY_OWNERS: &str = "WITH fresh AS (
         SELECT id, boot, draining FROM nodes
             WHERE NOT stopped AND heartbeat > clock_timestamp() - make_interval(secs => $1)
     )
     SELECT 1 AS kind, count(*) AS id, '' AS node FROM discord_members m JOIN fresh f ON f.id = m.node AND f.boot = m.boot
         WHERE NOT f.draining
     UNION ALL
     SELECT 2, l.id, l.owner_node FROM discord_leases l JOIN fresh f ON f.id = l.owner_node AND f.boot = l.owner_boot
         WHERE l.kind = 'gateway'";

impl SharedDiscord for DiscordLeases {
    fn claim(&self, lease: DiscordLease) -> CatalogRead<'_, Claim> {
        Box::pin(Self::claim(self, lease))
    }

    fn holds(&self, lease: DiscordLease) -> bool {
        self.epoch(lease).is_some() && self.db.node.may_begin()
    }

    fn release(&self, lease: DiscordLease) -> CatalogRead<'_, ()> {
        Box::pin(Self::release(self, lease))
    }

    fn set_member(&self, wants: bool) -> CatalogRead<'_, ()> {
        let sql = match wants {
            true => {
                "INSERT INTO discord_members (node, boot) VALUES ($1, $2)
                 ON CONFLICT (node) DO UPDATE SET boot = $2 WHERE discord_members.boot < $2"
            }
            false => {
                "WITH gone AS (DELETE FROM discord_members WHERE node = $1 AND boot = $2 RETURNING 1)
                 SELECT pg_notify('released', 'discord') FROM gone"
            }
        };
        Box::pin(async move {
            let (node, boot) = self.db.node();
            self.run(call!(sql, node, boot)).await.map(drop)
        })
    }

    fn gateway_owners(&self) -> CatalogRead<'_, GatewayOwners> {
        Box::pin(async move {
            let mut owners = GatewayOwners::default();
            for row in self.db.read(GATEWAY_OWNERS, &[&STALE_AFTER.as_secs_f64()]).await? {
                match (row.get::<_, i32>(0), row.get::<_, i64>(1)) {
                    (1, count) => owners.members = u32::try_from(count).unwrap_or(u32::MAX),
                    (_, id) => {
                        let (shard, of) = read_shard(id);
                        owners.shards.push((shard, of, row.get(2)));
                    }
                }
            }
            Ok(owners)
        })
    }

    fn waiting_work(&self) -> CatalogRead<'_, SharedWork> {
        Box::pin(async move {
            let (node, boot) = self.db.node();
            let rows = self.db.read(WAITING_WORK, &[&node, &boot, &STALE_AFTER.as_secs_f64()]).await?;
            let mut work = SharedWork::default();
            for row in rows {
                let id = || row.get::<_, i64>(1).cast_unsigned();
                match row.get(0) {
                    CLAIM => work.claims.push(id()),
                    UNOWNED => work.unowned.push(row.get(2)),
                    CHANNEL => work.channels.push(id()),
                    HANDED => work.is_handed = true,
                    _ => {}
                }
            }
            Ok(work)
        })
    }

    fn open_claim(&self, message: u64) -> CatalogRead<'_, Option<OpenClaim>> {
        Box::pin(async move {
            let sql = "SELECT message_id, channel_id, agent_id, request, state = 'running' FROM discord_claims
                 WHERE message_id = $1 AND state IN ('queued', 'running')";
            Ok(self.db.read(sql, &[&message.cast_signed()]).await?.first().map(read_open))
        })
    }

    fn is_answered(&self, message: u64) -> CatalogRead<'_, bool> {
        Box::pin(async move {
            let sql = "SELECT FROM discord_claims WHERE message_id = $1 AND state = 'done'";
            Ok(!self.db.read(sql, &[&message.cast_signed()]).await?.is_empty())
        })
    }

    fn open_claims_in(&self, channel: u64) -> CatalogRead<'_, Vec<OpenClaim>> {
        Box::pin(async move {
            let sql = "SELECT message_id, channel_id, agent_id, request, state = 'running' FROM discord_claims
                 WHERE channel_id = $1 AND state IN ('queued', 'running') ORDER BY message_id";
            Ok(self.db.read(sql, &[&channel.cast_signed()]).await?.iter().map(read_open).collect())
        })
    }

    fn withdraw(&self, message: u64) -> CatalogRead<'_, bool> {
        let (_, boot) = self.db.node();
        let gateway = self.shard_epoch();
        let withdraw = |(node, token): (String, Uuid)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[move_claim($3, ARRAY['queued'], 'dropped', $1, $4, $5)])";
            call!(sql, node, token, message.cast_signed(), boot, gateway)
        };
        let tell = notify_owner_of_claim(message, self.db.node.id.clone());
        self.db.write_with_result(Ok(None), vec![tell], withdraw, is_one)
    }

    fn hand_over(&self, agent: Uuid, id: u64, body: String) -> CatalogRead<'_, bool> {
        let sql = "WITH handed AS (
                 INSERT INTO discord_handed (id, node, body)
                 SELECT $2, h.owner_node, $3 FROM heads h JOIN nodes n ON n.id = h.owner_node AND NOT n.stopped
                     AND n.heartbeat > clock_timestamp() - make_interval(secs => $5)
                 WHERE h.agent_id = $1 AND h.owner_node <> $4
                 ON CONFLICT (id) DO NOTHING RETURNING node)
             SELECT pg_notify($6, node) FROM handed";
        Box::pin(async move {
            let (node, _) = self.db.node();
            let stale = STALE_AFTER.as_secs_f64();
            let hand = call!(sql, agent, id.cast_signed(), body, node, stale, WORK_CHANNEL.to_owned());
            Ok(!self.run(hand).await?.is_empty())
        })
    }

    fn take_handed(&self) -> CatalogRead<'_, Vec<String>> {
        let sql = "DELETE FROM discord_handed WHERE node = $1 OR handed_at < clock_timestamp() - interval '1 minute'
             RETURNING body, node = $1 AND handed_at > clock_timestamp() - interval '10 seconds'";
        Box::pin(async move {
            let (node, _) = self.db.node();
            let rows = self.run(call!(sql, node)).await?;
            Ok(rows.iter().filter(|row| row.get(1)).map(|row| row.get(0)).collect())
        })
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe_work(&self.db)
    }

    fn releases(&self) -> watch::Receiver<u64> {
        self.news.subscribe_releases(&self.db)
    }
}

impl DiscordLeases {
    /// Runs a statement that changes something no fence protects.
    async fn run(&self, call: Call) -> chorus_base::error::Result<Vec<Row>> {
        let client = self.db.readers.get().await?;
        run_alone(&client, self.db.readers.route(), call).await.map_err(|e| read_failed(&e))
    }
}
