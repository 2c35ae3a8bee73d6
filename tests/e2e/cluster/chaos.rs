//! Three nodes write for the same agents while their connections are cut, fall silent and come back, and nodes crash and
//! restart. Whatever happens: each acknowledged message is there once and in order, and nothing else is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chorus_base::sync::Mutex;
use chorus_journal::{Journal, JournalAppendOutcome};
use chorus_session::stored_message::ContextNo;
use chorus_store_postgres::{Claim, PostgresJournal, STALE_AFTER};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::{Database, Result};
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::wait::pause;
use futures_util::future::join_all;
use tokio::time::timeout;
use uuid::Uuid;

use super::{claim, open_at, request, texts};

const NODES: usize = 3;
const AGENTS: u64 = 24;

/// Pause of a client after it was refused, and of the faults between two.
const PAUSE: Duration = Duration::from_millis(50);

/// Time after which a client turns to another node.
const PATIENCE: Duration = Duration::from_secs(2);

struct Node {
    proxy: FaultProxy,
    journal: Mutex<Option<Arc<PostgresJournal>>>,
}

struct Cluster {
    database: Database,
    nodes: Vec<Node>,
    stop: AtomicBool,
    /// How often an agent got an owner, and how often a node refused a write.
    claims: AtomicU64,
    refusals: AtomicU64,
    /// How many of those were only late.
    late: AtomicU64,
}

/// An agent as its only client knows it.
struct Client {
    agent: Uuid,
    /// The messages that were acknowledged, or found by a new owner.
    acknowledged: Vec<String>,
    /// A message whose acknowledgement did not come.
    pending: Option<String>,
    /// Messages so far; no two have the same text.
    attempts: u32,
    rng: Rng,
}

fn node_name(number: usize) -> String {
    format!("node-{number}")
}

impl Cluster {
    async fn start(database: Database) -> Result<Arc<Self>> {
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let proxy = FaultProxy::start(database.port()).await?;
            let (journal, _) = open_at(&database, proxy.port(), &node_name(number)).await?;
            nodes.push(Node { proxy, journal: Mutex::new(Some(Arc::new(journal))) });
        }
        let (claims, refusals, late) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let stop = AtomicBool::new(false);
        Ok(Arc::new(Self { database, nodes, stop, claims, refusals, late }))
    }

    /// Asks a random node for the agent, and the owner that it names. `None` if neither serves.
    async fn find_owner(&self, client: &mut Client) -> Option<Arc<PostgresJournal>> {
        let mut number = usize::try_from(client.rng.below(NODES as u64)).unwrap_or(0);
        for _ in 0..2 {
            let journal = self.nodes.get(number)?.journal.lock().clone()?;
            match journal.claim(client.agent).await.ok()? {
                Claim::Granted { .. } => return Some(journal),
                Claim::OwnedBy(owner) => number = (0..NODES).find(|number| node_name(*number) == owner.node)?,
            }
        }
        None
    }

    /// Appends one message after the other, wherever the agent is.
    async fn run_client(&self, mut client: Client) -> Result<Client> {
        while !self.stop.load(Ordering::SeqCst) {
            let Some(journal) = self.find_owner(&mut client).await else {
                pause(PAUSE).await;
                continue;
            };
            // After the no-op, all that this node has sent for the agent before is carried out or refused.
            let read = async {
                journal.ping().await?;
                read_messages(&journal, client.agent).await
            };
            let Ok(Ok((context, found))) = timeout(PATIENCE, read).await else {
                pause(PAUSE).await;
                continue;
            };
            self.claims.fetch_add(1, Ordering::SeqCst);
            client.compare(found);
            self.serve(&journal, &mut client, context.unwrap_or_else(|| journal.reserve_context_no())).await?;
        }
        Ok(client)
    }

    /// Appends until a write is refused or takes too long, or the agent is given away.
    async fn serve(&self, journal: &PostgresJournal, client: &mut Client, context: ContextNo) -> Result {
        while !self.stop.load(Ordering::SeqCst) {
            client.attempts += 1;
            let text = format!("attempt {}", client.attempts);
            let number = u32::try_from(client.acknowledged.len())?;
            let append = journal.append(request(client.agent, context, number, std::slice::from_ref(&text))?);
            match timeout(PATIENCE, append).await {
                Ok(Ok(JournalAppendOutcome::Added(added))) => {
                    client.acknowledged.push(text);
                    assert_eq!(added.messages, u64::from(number) + 1);
                }
                // After a time-out it is still on its way: whoever reads next must have it, or never get it.
                refused => {
                    client.pending = Some(text);
                    self.refusals.fetch_add(1, Ordering::SeqCst);
                    self.late.fetch_add(u64::from(refused.is_err()), Ordering::SeqCst);
                    return Ok(());
                }
            }
            if client.rng.below(40) == 0 {
                // An error means that the outcome is unknown, or that the agent is gone already.
                let _ = timeout(PATIENCE, journal.release(client.agent)).await;
                return Ok(());
            }
        }
        Ok(())
    }

    async fn put_fault(&self, round: u64, rng: &mut Rng) -> Result {
        let number = usize::try_from(rng.below(NODES as u64))?;
        let node = self.nodes.get(number).ok_or("a node")?;
        match rng.below(6) {
            // Long enough for others to take its agents over.
            _ if round.is_multiple_of(50) => {
                node.proxy.fall_silent();
                pause(STALE_AFTER + PATIENCE).await;
                node.proxy.heal();
            }
            0 => node.proxy.cut(),
            1 | 2 => {
                node.proxy.cut_after_answer_bytes(i64::try_from(rng.below(400))?);
                pause(PAUSE * 4).await;
            }
            3 => {
                node.proxy.fall_silent();
                pause(Duration::from_millis(rng.below(4_000))).await;
                node.proxy.heal();
            }
            _ => {
                // As after `kill -9`: what the old process has sent may still arrive.
                let old = node.journal.lock().take();
                node.proxy.refuse();
                pause(Duration::from_millis(rng.below(1_000))).await;
                node.proxy.heal();
                let (journal, _) = open_at(&self.database, node.proxy.port(), &node_name(number)).await?;
                *node.journal.lock() = Some(Arc::new(journal));
                drop(old);
            }
        }
        pause(PAUSE).await;
        Ok(())
    }
}

impl Client {
    /// Compares what a new owner reads: what was acknowledged, and perhaps the message whose acknowledgement did not come.
    fn compare(&mut self, found: Vec<String>) {
        let pending = self.pending.take();
        let agent = self.agent;
        let mut wanted = std::mem::take(&mut self.acknowledged);
        wanted.extend(pending.filter(|_| found.len() > wanted.len()));
        assert_eq!(found, wanted, "{agent}");
        self.acknowledged = found;
    }
}

/// Reads the context of an agent that the node owns, if there is one.
async fn read_messages(journal: &PostgresJournal, agent: Uuid) -> Result<(Option<ContextNo>, Vec<String>)> {
    match journal.live_contexts_of(agent).await?.first() {
        Some(row) => Ok((Some(row.context), texts(journal, row.context).await?)),
        None => Ok((None, Vec::new())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_nodes_and_connections_lose_and_double_nothing() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let cluster = Cluster::start(database).await?;
    let clients = (0..AGENTS).map(|number| {
        let client = Client {
            agent: Uuid::new_v4(),
            acknowledged: Vec::new(),
            pending: None,
            attempts: 0,
            rng: Rng::new(number),
        };
        let cluster = cluster.clone();
        chorus_runtime::spawn(async move { cluster.run_client(client).await.map_err(|e| e.to_string()) })
    });
    let clients: Vec<_> = clients.collect();
    let mut rng = Rng::new(27);
    for round in 0..rounds_from_env("CHORUS_CLUSTER_ROUNDS", 12) {
        cluster.put_fault(round, &mut rng).await?;
    }
    for node in &cluster.nodes {
        node.proxy.heal();
    }
    cluster.stop.store(true, Ordering::SeqCst);
    let mut ended = Vec::new();
    for client in join_all(clients).await {
        ended.push(client??);
    }
    for node in &cluster.nodes {
        let journal = node.journal.lock().take().and_then(Arc::into_inner).ok_or("a node is gone")?;
        journal.close().await?;
    }
    let (checker, _) = open_at(&cluster.database, cluster.database.port(), "checker").await?;
    let mut total = 0;
    for mut client in ended {
        claim(&checker, client.agent).await?;
        client.compare(read_messages(&checker, client.agent).await?.1);
        total += client.acknowledged.len() as u64;
    }
    let sql = "SELECT count(*) FROM (SELECT node FROM events GROUP BY node HAVING max(seq) <> count(*)) AS gaps";
    let gaps: i64 = cluster.database.connect().await?.query_one(sql, &[]).await?.get(0);
    assert_eq!(gaps, 0, "the events of each node are numbered without gaps");
    let [claims, refusals, late] =
        [&cluster.claims, &cluster.refusals, &cluster.late].map(|count| count.load(Ordering::SeqCst));
    assert!(total > AGENTS && claims > 2 * AGENTS, "{total}, {claims}");
    assert!(refusals > late && late > 0, "{refusals}, {late}");
    Ok(())
}
