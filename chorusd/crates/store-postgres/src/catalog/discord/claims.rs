//! Claims: messages from channels that were taken for processing. The holder of the gateway claims messages; the owner of
//! the agent works on them.

use chorus_base::error::Result;
use chorus_catalog::discord::{ClaimOutcome, ClaimTable, NewClaim, NewPost, OpenClaim};
use chorus_catalog::{CatalogRead, CatalogWrite};
use chorus_journal::{KEY_RETENTION_DAYS, to_nanos};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::channels::{advance_seen, advance_skipped};
use super::news::WORK_CHANNEL;
use super::posts::{self, PostColumns};
use super::{DiscordLease, PostgresDiscordTables, check_ids};
use crate::catalog::results::is_one;
use crate::statement::{Call, call};

impl ClaimTable for PostgresDiscordTables {
    fn claim(&self, new: NewClaim, most: u32, full: NewPost) -> CatalogWrite<ClaimOutcome> {
        let checked = check_ids([new.message, new.channel]);
        let new_agent = new.agent;
        let claim = |(node, token)| {
            call!(
                "SELECT keep_result($1, $2,
                     ARRAY[claim_message($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)])",
                node,
                token,
                new.message.cast_signed(),
                new.channel.cast_signed(),
                new.agent,
                new.request,
                to_nanos(new.at),
                new.contiguous,
                i64::from(most),
                full.channel_id.cast_signed(),
                full.about,
                full.body,
                full.nonce,
                full.notice_at.map(to_nanos),
            )
        };
        let tell = notify_owner(new_agent, self.db.node.id.clone());
        self.write_as_gateway(checked, vec![tell], claim, |outcome| match outcome.first() {
            Some(Some(1)) => ClaimOutcome::Queued,
            Some(Some(2)) => ClaimOutcome::QueueFull,
            _ => ClaimOutcome::AlreadyClaimed,
        })
    }

    fn skip_messages(&self, channel: u64, upto: u64, posts: Vec<NewPost>) -> CatalogWrite<()> {
        let calls = vec![advance_seen(channel, upto), advance_skipped(channel, upto), posts::enqueue(posts)];
        self.leases.write_gateway(check_ids([channel, upto]), calls)
    }

    fn prune(&self, now: Timestamp) -> CatalogWrite<()> {
        let before = to_nanos(now) - KEY_RETENTION_DAYS * 86_400 * 1_000_000_000;
        self.db.write(Ok(None), vec![call!("SELECT prune_claims($1)", before)])
    }

    fn mark_running(&self, message: u64) -> CatalogWrite<()> {
        let moved = self.move_claim(message, &["queued"], "running");
        Box::pin(async move { moved.await.map(drop) })
    }

    fn update_request(&self, message: u64, request: String) -> CatalogWrite<bool> {
        let update = |(node, token)| {
            let sql = "WITH changed AS (
                     UPDATE discord_claims SET request = $4 WHERE message_id = $3 AND state = 'queued' RETURNING 1)
                 SELECT keep_result($1, $2, ARRAY[(SELECT count(*) FROM changed)])";
            call!(sql, node, token, message.cast_signed(), request)
        };
        let tell = notify_owner_of_claim(message, self.db.node.id.clone());
        self.write_as_gateway(check_ids([message]), vec![tell], update, is_one)
    }

    fn finish(&self, message: u64, posts: Vec<NewPost>) -> CatalogWrite<bool> {
        let (_, boot) = self.db.node();
        let gateway = self.leases.shard_epoch();
        let PostColumns { channels, abouts, bodies, nonces, notices } = PostColumns::new(posts);
        let finish = |(node, token): (String, Uuid)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[finish_claim($3, $4, $5, $6, $7, $8, $1, $9, $10)])";
            let message = message.cast_signed();
            call!(sql, node, token, message, channels, abouts, bodies, nonces, notices, boot, gateway)
        };
        self.db.write_with_result(check_ids([message]).map(|()| None), Vec::new(), finish, is_one)
    }

    fn finish_unanswered(&self, message: u64) -> CatalogWrite<bool> {
        self.move_claim(message, &["queued", "running"], "dropped")
    }

    fn claimed_after(&self, channel: u64, after: u64) -> CatalogRead<'_, Vec<u64>> {
        Box::pin(async move {
            let sql =
                "SELECT message_id FROM discord_claims WHERE channel_id = $1 AND message_id > $2 ORDER BY message_id";
            let rows = self.db.read(sql, &[&channel.cast_signed(), &after.cast_signed()]).await?;
            Ok(rows.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect())
        })
    }

    fn list_open(&self) -> CatalogRead<'_, Vec<OpenClaim>> {
        Box::pin(async move {
            let sql = "SELECT message_id, channel_id, agent_id, request, state = 'running' FROM discord_claims
                 WHERE state IN ('queued', 'running') ORDER BY message_id";
            let rows = self.db.read(sql, &[]).await?;
            Ok(rows.iter().map(read_open).collect())
        })
    }
}

/// The call that tells the owner of an agent, if that is another node, that there is work for it.
fn notify_owner(agent: Uuid, node: String) -> Call {
    let sql = "SELECT pg_notify($3, owner_node) FROM heads WHERE agent_id = $1 AND owner_node <> $2";
    call!(sql, agent, node, WORK_CHANNEL.to_owned())
}

/// The call that tells the owner of a claim's agent, if that is another node, that the claim is another one now.
pub(super) fn notify_owner_of_claim(message: u64, node: String) -> Call {
    let sql = "SELECT pg_notify($3, h.owner_node) FROM discord_claims c JOIN heads h ON h.agent_id = c.agent_id
         WHERE c.message_id = $1 AND h.owner_node <> $2";
    call!(sql, message.cast_signed(), node, WORK_CHANNEL.to_owned())
}

/// Reads a row of open claims.
pub(super) fn read_open(row: &Row) -> OpenClaim {
    OpenClaim {
        message: row.get::<_, i64>(0).cast_unsigned(),
        channel: row.get::<_, i64>(1).cast_unsigned(),
        agent: row.get(2),
        request: row.get::<_, Option<String>>(3).unwrap_or_default(),
        running: row.get(4),
    }
}

impl PostgresDiscordTables {
    /// Changes the state of a claim that is in one of `from`; returns false if it is in none.
    fn move_claim(&self, message: u64, from: &[&str], to: &str) -> CatalogWrite<bool> {
        let (_, boot) = self.db.node();
        let gateway = self.leases.shard_epoch();
        let from: Vec<String> = from.iter().map(|state| (*state).to_owned()).collect();
        let change = |(node, token): (String, Uuid)| {
            let sql = "SELECT keep_result($1, $2, ARRAY[move_claim($3, $4, $5, $1, $6, $7)])";
            call!(sql, node, token, message.cast_signed(), from, to.to_owned(), boot, gateway)
        };
        self.db.write_with_result(check_ids([message]).map(|()| None), Vec::new(), change, is_one)
    }

    /// Queues calls that need a lease, the last of which keeps its result, if `checked` refuses none of its parameters.
    pub(super) fn write_as<T: Send + 'static>(
        &self,
        lease: DiscordLease,
        checked: Result<()>,
        mut calls: Vec<Call>,
        call: impl FnOnce((String, Uuid)) -> Call,
        decode: fn(&[Option<i64>]) -> T,
    ) -> CatalogWrite<T> {
        match checked.and_then(|()| self.leases.fence(lease)) {
            Ok((fence, epoch)) => {
                calls.insert(0, fence);
                let write = self.db.write_with_result(Ok(None), calls, call, decode);
                self.leases.watch(vec![(lease, epoch)], write)
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    /// Queues calls that need the gateway, the last of which keeps its result, if `checked` refuses none of their parameters.
    pub(super) fn write_as_gateway<T: Send + 'static>(
        &self,
        checked: Result<()>,
        mut calls: Vec<Call>,
        call: impl FnOnce((String, Uuid)) -> Call,
        decode: fn(&[Option<i64>]) -> T,
    ) -> CatalogWrite<T> {
        match checked.and_then(|()| self.leases.gateway_fence()) {
            Ok((fence, shards)) => {
                calls.insert(0, fence);
                self.leases.watch(shards, self.db.write_with_result(Ok(None), calls, call, decode))
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }
}
