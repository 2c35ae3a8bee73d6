//! Bench: appends to the journal in PostgreSQL, compared with bare inserts of the same bytes by the same driver on the same
//! server, which runs on this machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_journal::{AppendRequest, Journal as _, NewContextRow};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use chorus_store_postgres::{Claim, DatabaseUrl, NodeName, PostgresJournal};
use chorus_tests::measure::{Measurement, median, print_report, use_realtime_scheduler};
use chorus_tests::postgres::{Database, Result};
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

/// Appends of one client.
const ROUNDS: u32 = 1000;
/// Appends with the fence, and as many without.
const FENCE_ROUNDS: u32 = 3000;
const CLIENTS: usize = 64;
/// Rounds of many clients, and what each client appends in a round.
const RATE_ROUNDS: usize = 9;
const APPENDS_PER_CLIENT: u32 = 20;

/// A connection that inserts rows of the size of a record.
struct Bare {
    client: Client,
    insert: Statement,
    require_epoch: Statement,
    agent: Uuid,
    number: i64,
}

impl Bare {
    async fn connect(database: &Database) -> Result<Self> {
        let client = database.connect().await?;
        let table =
            "CREATE TABLE IF NOT EXISTS bare (agent uuid, number bigint, body bytea, PRIMARY KEY (agent, number))";
        // Several may find no table at once.
        if client.batch_execute(table).await.is_err() {
            client.batch_execute(table).await?;
        }
        let insert = client.prepare("INSERT INTO bare VALUES ($1, $2, $3)").await?;
        let require_epoch = client.prepare("SELECT require_epoch($1, $2)").await?;
        Ok(Self { client, insert, require_epoch, agent: Uuid::new_v4(), number: 0 })
    }

    /// One statement is a transaction of its own.
    async fn insert(&mut self, body: &[u8]) -> Result<Duration> {
        let begun = Instant::now();
        self.client.execute(&self.insert, &[&self.agent, &self.number, &body]).await?;
        self.number += 1;
        Ok(begun.elapsed())
    }

    /// The insert in a transaction, behind the fence if there is an agent.
    async fn insert_in_transaction(&mut self, body: &[u8], fence: Option<Uuid>) -> Result<Duration> {
        let begun = Instant::now();
        let fenced = async {
            match fence {
                Some(agent) => self.client.execute(&self.require_epoch, &[&agent, &1_i64]).await,
                None => Ok(0),
            }
        };
        let params: [&(dyn ToSql + Sync); 3] = [&self.agent, &self.number, &body];
        let (begin, fenced, inserted, committed) = tokio::join!(
            self.client.batch_execute("BEGIN"),
            fenced,
            self.client.execute(&self.insert, &params),
            self.client.batch_execute("COMMIT"),
        );
        begin.and(fenced.map(drop)).and(inserted.map(drop)).and(committed)?;
        self.number += 1;
        Ok(begun.elapsed())
    }
}

/// Appends messages of 1 KB to one context.
struct Appender {
    journal: Arc<PostgresJournal>,
    agent: Uuid,
    context: ContextNo,
    message: StoredMessage,
    number: u32,
}

impl Appender {
    async fn new(journal: &Arc<PostgresJournal>, json: &str) -> Result<Self> {
        let agent = Uuid::new_v4();
        let Claim::Granted { .. } = journal.claim(agent).await? else { return Err("the agent is owned".into()) };
        let message = StoredMessage::parse(json.to_owned().into())?;
        let context = journal.reserve_context_no();
        Ok(Self { journal: journal.clone(), agent, context, message, number: 0 })
    }

    async fn append(&mut self) -> Result<Duration> {
        let now = Timestamp::now();
        let conversation = ConversationKey::main(self.agent);
        let begin = NewContextRow { conversation, started_at: now, idle_deadline_at: None, parent: None };
        let request = AppendRequest {
            conversation,
            agent_name: "agent".into(),
            conversation_name: None,
            context: self.context,
            begin,
            first: self.number,
            messages: vec![self.message.clone()],
            at: now,
            deadline: Some(now),
            key: None,
            mark: None,
        };
        let begun = Instant::now();
        self.journal.append(request).await?;
        self.number += 1;
        Ok(begun.elapsed())
    }
}

async fn one_client(bare: &mut Bare, appender: &mut Appender, body: &[u8]) -> Result {
    let (mut floor, mut ours, mut plain, mut fenced) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + ROUNDS / 10 {
        let times = (
            bare.insert(body).await?,
            appender.append().await?,
            bare.insert_in_transaction(body, None).await?,
            bare.insert_in_transaction(body, Some(appender.agent)).await?,
        );
        if round >= ROUNDS / 10 {
            floor.push(times.0);
            ours.push(times.1);
            plain.push(times.2);
            fenced.push(times.3);
        }
    }
    let report = |name: &str, floor: Vec<Duration>, ours: Vec<Duration>, target| {
        print_report(Measurement { name: name.into(), floor: median(floor), ours: median(ours), target });
    };
    report("append of 1 KB, to a bare insert", floor, ours, 1.15);
    report("an insert with the fence as a statement, to one without", plain, fenced, 1.02);
    Ok(())
}

/// Calls of the function that appends one message, by a connection of their own.
struct DirectAppends {
    client: Client,
    statement: Statement,
    agent: Uuid,
    node: String,
    number: i64,
}

impl DirectAppends {
    /// Registers a node of its own, which calls `function`.
    async fn connect(database: &Database, function: &str) -> Result<Self> {
        let client = database.connect().await?;
        let (agent, context) = (Uuid::new_v4(), i64::from(u32::MAX));
        let rows = format!(
            "INSERT INTO nodes (id, boot, address, version, heartbeat, stopped)
                 VALUES ('{function}', 1, '', '1', clock_timestamp(), false);
             INSERT INTO writers VALUES ('{function}', 1, 1, 0, 0);
             INSERT INTO heads (agent_id, owner_node, owner_boot, epoch) VALUES ('{agent}', '{function}', 1, 1);
             INSERT INTO contexts (id, agent_id, started_at, last_activity_at)
                 SELECT count(*) + {context}, '{agent}', 0, 0 FROM nodes"
        );
        client.batch_execute(&rows).await?;
        let sql = format!(
            "SELECT * FROM {function}($1, 1, 1, $2, $3, 1, (SELECT id FROM contexts WHERE agent_id = $3), $4, $5, 0, 1024, 0,
                 NULL, 'agent', NULL)"
        );
        let statement = client.prepare(&sql).await?;
        Ok(Self { client, statement, agent, node: function.to_owned(), number: 0 })
    }

    async fn append(&mut self, body: &[u8]) -> Result<Duration> {
        let params: [&(dyn ToSql + Sync); 5] = [&self.node, &(self.number + 1), &self.agent, &self.number, &body];
        let begun = Instant::now();
        self.client.query(&self.statement, &params).await?;
        self.number += 1;
        Ok(begun.elapsed())
    }
}

/// The part of an append that is the fence: the function that appends, over the same without it.
async fn fence(database: &Database, body: &[u8]) -> Result {
    let client = database.connect().await?;
    let source = client.query_one("SELECT pg_get_functiondef('append_one'::regproc)", &[]).await?;
    let source = source.get::<_, String>(0).replace("append_one", "append_unfenced");
    let (before, fence) = source.split_once("    PERFORM FROM heads").ok_or("the function has no fence")?;
    let (_, after) = fence.split_once("END IF;").ok_or("the fence has no end")?;
    client.batch_execute(&format!("{before}{after}")).await?;
    let mut with = DirectAppends::connect(database, "append_one").await?;
    let mut without = DirectAppends::connect(database, "append_unfenced").await?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for round in 0..FENCE_ROUNDS + FENCE_ROUNDS / 10 {
        let times = (without.append(body).await?, with.append(body).await?);
        if round >= FENCE_ROUNDS / 10 {
            floor.push(times.0);
            ours.push(times.1);
        }
    }
    let name = "an append in the database, to one without the fence".to_owned();
    print_report(Measurement { name, floor: median(floor), ours: median(ours), target: 1.02 });
    Ok(())
}

async fn many_clients(database: &Database, journal: &Arc<PostgresJournal>, json: &str) -> Result {
    let (mut bare, mut appenders) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        bare.push(Bare::connect(database).await?);
        appenders.push(Appender::new(journal, json).await?);
    }
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=RATE_ROUNDS {
        let begun = Instant::now();
        let inserts = bare.iter_mut().map(|client| async {
            for _ in 0..APPENDS_PER_CLIENT {
                client.insert(json.as_bytes()).await?;
            }
            Result::Ok(())
        });
        join_all(inserts).await.into_iter().collect::<Result>()?;
        let inserted = begun.elapsed();
        let begun = Instant::now();
        let appends = appenders.iter_mut().map(|client| async {
            for _ in 0..APPENDS_PER_CLIENT {
                client.append().await?;
            }
            Result::Ok(())
        });
        join_all(appends).await.into_iter().collect::<Result>()?;
        if round > 0 {
            floor.push(inserted);
            ours.push(begun.elapsed());
        }
    }
    let name = format!("{CLIENTS} clients, {APPENDS_PER_CLIENT} appends each");
    print_report(Measurement { name, floor: median(floor), ours: median(ours), target: 1.4 });
    Ok(())
}

async fn run() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let name = NodeName { id: "bench".into(), address: "localhost:1".into(), shares_workspaces: false, home: None };
    let on_fatal: chorus_store_postgres::OnFatal = Arc::new(print_report);
    let url = DatabaseUrl::parse(&database.url_at(database.port()))?;
    let journal = Arc::new(PostgresJournal::open(url, &name, "1.0.0", on_fatal).await?);
    let json =
        format!(r#"{{"id":"0","role":"user","content":"{}","timestamp":"2027-01-15T08:00:00Z"}}"#, "x".repeat(1024));
    let (mut bare, mut appender) = (Bare::connect(&database).await?, Appender::new(&journal, &json).await?);
    one_client(&mut bare, &mut appender, json.as_bytes()).await?;
    fence(&database, json.as_bytes()).await?;
    many_clients(&database, &journal, &json).await
}

fn main() -> Result {
    use_realtime_scheduler();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}
