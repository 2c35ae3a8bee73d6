//! The journal of one node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use chorus_base::error::{Error, Result};
use chorus_journal::{Claim, ContextRow, EventPublisher, JournalWrite, NewEvent};
use deadpool_postgres::Object;
use futures_util::future::join_all;
use tokio::sync::{Notify, RwLock};
use tokio::task::JoinHandle;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::OnFatal;
use crate::batch::JobRows;
use crate::calls::insert_event;
use crate::connection::{DatabaseUrl, Readers};
use crate::errors::{overtaken, read_failed};
use crate::event_log::{publish_missing, publish_stored};
use crate::migrations::migrate;
use crate::node::{Node, NodeName, notify_wanted, send_heartbeats};
use crate::ownership::{self, Grant, Grants};
use crate::param::Param;
use crate::remote_events::RemoteEvents;
use crate::rows::{CONTEXT_COLUMNS, count, read_context};
use crate::statement::{Call, call, read, read_once};
use crate::writer::Writer;

/// Agents that are released in one go at a stop.
const RELEASES_AT_ONCE: usize = 1_000;

/// The journal as one process of a cluster sees it: the contexts of the agents that it owns, and its own events.
#[derive(Debug)]
pub struct PostgresJournal {
    pub(crate) node: Arc<Node>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    pub(crate) publisher: EventPublisher,
    pub(crate) next_context: AtomicI64,
    pub(crate) remote_events: RemoteEvents,
    /// Held, exclusively, by claims of many agents, from their statement until the answer is recorded, and shared by those of one
    /// agent, which would else claim the same agent twice, in two epochs.
    pub(crate) claims: RwLock<()>,
    heartbeats: JoinHandle<()>,
}

impl PostgresJournal {
    /// Connects, brings the schema up to date, and starts the heartbeat of this process as the node `name`.
    /// `on_fatal` is called when it may write nothing more.
    ///
    /// # Errors
    /// Fails if the database cannot be reached, or has a newer schema.
    pub async fn open(url: DatabaseUrl, name: &NodeName, version: &str, on_fatal: OnFatal) -> Result<Self> {
        let wanted = Arc::<Notify>::default();
        let mut client = url.connect_and_listen(notify_wanted(&name.id, &wanted)).await?;
        url.check_version(&client).await?;
        migrate(&mut client).await?;
        let node = Node::start(&client, url.route(), name, version, wanted).await?;
        let query = "SELECT nextval('processes'), (SELECT event FROM writers WHERE node = $1)";
        let rows = read_once(&client, query, &[&node.id]).await.map_err(|e| read_failed(&e))?;
        let row = rows.first().ok_or_else(|| Error::internal("PostgreSQL returned no row"))?;
        let next_context = AtomicI64::new(row.get::<_, i64>(0) << 32);
        let publisher = EventPublisher::new(count(row, 1));
        let readers = url.reader_pool().await?;
        let grants = Arc::new(Grants::default());
        let publish = (readers.clone(), node.clone(), publisher.clone());
        let after_reconnect = Box::new(move || {
            let (readers, node, publisher) = publish.clone();
            Box::pin(async move { publish_missing(&readers, &node, &publisher).await }) as _
        });
        let writer =
            Writer::start(url.clone(), node.clone(), grants.clone(), on_fatal.clone(), after_reconnect).await?;
        let heartbeats =
            chorus_runtime::spawn(send_heartbeats(url.clone(), node.clone(), grants.clone(), client, on_fatal));
        Ok(Self {
            node,
            grants,
            writer,
            readers,
            publisher,
            next_context,
            remote_events: RemoteEvents::new(),
            claims: RwLock::default(),
            heartbeats,
        })
    }

    /// Claims an agent for this process.
    ///
    /// # Errors
    /// Fails if the database cannot be reached.
    pub async fn claim(&self, agent: Uuid) -> Result<Claim> {
        self.claim_as(agent, false).await
    }

    /// As [`PostgresJournal::claim`]; a node that drains claims it, too, if it is new.
    pub(crate) async fn claim_as(&self, agent: Uuid, is_new: bool) -> Result<Claim> {
        // Before the connection, which others may need meanwhile.
        let _no_other_claims_many = self.claims.read().await;
        let reader = self.reader().await?;
        ownership::claim(&reader, self.readers.route(), &self.node, &self.grants, (agent, is_new)).await
    }

    /// Lists the rows of the live contexts of an agent that this process owns, in the ownership that it has now.
    ///
    /// # Errors
    /// Fails with `busy` if this process does not own it, or if the database cannot be reached.
    pub async fn live_contexts_of(&self, agent: Uuid) -> Result<Vec<ContextRow>> {
        self.read_live_contexts(vec![self.grants.of_agent(agent)?]).await
    }

    /// Lists the rows of the live contexts of agents in these ownerships.
    pub(crate) async fn read_live_contexts(&self, grants: Vec<Grant>) -> Result<Vec<ContextRow>> {
        let sql = format!("SELECT {CONTEXT_COLUMNS} FROM contexts WHERE agent_id = ANY ($1) AND NOT ended ORDER BY id");
        let grants: HashMap<Uuid, Grant> = grants.into_iter().map(|grant| (grant.agent, grant)).collect();
        let agents: Vec<&Uuid> = grants.keys().collect();
        let rows = self.query(&sql, &[&agents]).await?;
        let contexts: Vec<ContextRow> = rows.iter().map(read_context).collect();
        for row in &contexts {
            if let Some(grant) = grants.get(&row.conversation.agent) {
                self.grants.add_context(row.context, *grant);
            }
        }
        Ok(contexts)
    }

    /// Asks the owner of an agent to release it to this process.
    ///
    /// # Errors
    /// Fails if the database cannot be reached.
    pub async fn want(&self, agent: Uuid) -> Result<()> {
        ownership::want(&**self.reader().await?, self.readers.route(), &self.node, agent).await
    }

    /// Gives an agent up after all writes so far. Returns the node that wants it, if one does.
    ///
    /// # Errors
    /// Fails with `busy` if this process does not own it.
    pub async fn release(&self, agent: Uuid) -> Result<Option<String>> {
        let grant = self.grants.of_agent(agent)?;
        let sql = "UPDATE heads SET owner_node = NULL, owner_boot = NULL,
                 released_by = CASE WHEN wanted_by IS NULL THEN $3 END
             WHERE agent_id = $1 AND epoch = $2 RETURNING wanted_by";
        let calls = vec![
            call!(sql, agent, grant.epoch, self.node.id.clone()),
            call!("SELECT pg_notify('released', $1)", agent.to_string()),
        ];
        let wanted_by = |rows: &JobRows| Ok(rows.first().and_then(|rows| rows.first()).and_then(|row| row.get(0)));
        let wanted_by = self.writer.submit(Ok(Some(grant)), calls, None, wanted_by, |_| ()).await;
        self.grants.remove(grant);
        wanted_by
    }

    /// Gives an agent up to another node after all writes so far, and tells that node.
    ///
    /// # Errors
    /// Fails with `busy` if this process does not own it.
    pub async fn hand_over(&self, agent: Uuid, to: String) -> Result<()> {
        let grant = self.grants.of_agent(agent)?;
        let sql = "UPDATE heads SET owner_node = NULL, owner_boot = NULL, wanted_by = $3, released_by = NULL
             WHERE agent_id = $1 AND epoch = $2";
        let calls = vec![call!(sql, agent, grant.epoch, to.clone()), call!("SELECT pg_notify('released', $1)", to)];
        let given = self.writer.submit(Ok(Some(grant)), calls, None, |_| Ok(()), |_| ()).await;
        self.grants.remove(grant);
        given
    }

    /// Releases all agents, and then ends the heartbeat: other nodes may claim what this one owned. Nothing may be written
    /// afterwards. A journal that is dropped instead keeps its agents until its heartbeat is stale.
    ///
    /// # Errors
    /// Fails if the database cannot be reached; others take the agents over once the heartbeat is stale.
    pub async fn close(&self) -> Result<()> {
        let mut failed = None;
        for part in self.grants.all().chunks(RELEASES_AT_ONCE) {
            let released = join_all(part.iter().map(|grant| self.release(grant.agent))).await;
            // An agent that another node has taken over needs no release.
            failed = failed.or(released.into_iter().filter_map(Result::err).find(|failure| *failure != overtaken()));
        }
        self.heartbeats.abort();
        self.node.stop(&**self.reader().await?, self.readers.route()).await?;
        failed.map_or(Ok(()), Err)
    }

    pub(crate) async fn reader(&self) -> Result<Object> {
        self.readers.get().await
    }

    pub(crate) async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>> {
        read(&*self.reader().await?, self.readers.route(), sql, params).await.map_err(|e| read_failed(&e))
    }

    /// Queues calls whose rows nobody needs.
    pub(crate) fn write(&self, grant: Result<Grant>, calls: Vec<Call>) -> JournalWrite<()> {
        self.writer.submit(grant.map(Some), calls, None, |_| Ok(()), |_| ())
    }

    /// Queues calls of which the last one inserts `event`.
    pub(crate) fn write_and_publish(
        &self,
        grant: Result<Grant>,
        mut calls: Vec<Call>,
        event: NewEvent,
    ) -> JournalWrite<()> {
        calls.push(insert_event(&self.node.id, &event));
        let publisher = self.publisher.clone();
        let publish = move |rows: &JobRows| publish_stored(&publisher, vec![event], rows.last().into_iter());
        self.writer.submit(grant.map(Some), calls, None, |_| Ok(()), publish)
    }
}

impl Drop for PostgresJournal {
    fn drop(&mut self) {
        self.heartbeats.abort();
    }
}
