//! The journal and the catalog in PostgreSQL, against a real server.

mod agent_files;
mod catalog;
mod chaos;
mod connecting;
mod contract;
mod faults;
mod guide_day;
mod nodes;
mod ownership;
mod pooler;
mod schema;
mod sessions;
mod store_copy;

use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_journal::{AppendRequest, Journal, JournalAppendOutcome, NewContextRow};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use chorus_store_postgres::{Claim, DatabaseUrl, NodeName, OnFatal, PostgresJournal};
use jiff::Timestamp;
use uuid::Uuid;

use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::Database;

use chorus_tests::postgres::Result;

/// Reasons why a process may write nothing more.
type Fatal = Arc<Mutex<Vec<String>>>;

fn on_fatal() -> (OnFatal, Fatal) {
    let fatal = Fatal::default();
    let seen = fatal.clone();
    (Arc::new(move |failure| seen.lock().push(failure.message)), fatal)
}

/// Opens the journal as a node, over the given port.
async fn open_at(database: &Database, port: u16, node: &str) -> Result<(PostgresJournal, Fatal)> {
    let (on_fatal, fatal) = on_fatal();
    let name = NodeName {
        id: node.to_owned(),
        address: format!("{node}.example.org:7700"),
        shares_workspaces: false,
        home: None,
    };
    let journal = PostgresJournal::open(DatabaseUrl::parse(&database.url_at(port))?, &name, "1.0.0", on_fatal).await?;
    Ok((journal, fatal))
}

async fn open(database: &Database, node: &str) -> Result<PostgresJournal> {
    Ok(open_at(database, database.port(), node).await?.0)
}

async fn claim(journal: &PostgresJournal, agent: Uuid) -> Result<i64> {
    match journal.claim(agent).await? {
        Claim::Granted { epoch } => Ok(epoch),
        Claim::OwnedBy(owner) => Err(format!("{agent} is owned by {owner:?}").into()),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap_or_default()
}

fn message(text: &str) -> Result<StoredMessage> {
    let json = format!(
        r#"{{"id":"00000000-0000-4000-8000-000000000001","role":"user","content":"{text}","timestamp":"2027-01-15T08:00:00Z"}}"#
    );
    Ok(StoredMessage::parse(json.into())?)
}

fn begin(agent: Uuid) -> NewContextRow {
    NewContextRow {
        conversation: ConversationKey::main(agent),
        started_at: at(0),
        idle_deadline_at: Some(at(60)),
        parent: None,
    }
}

fn request(agent: Uuid, context: ContextNo, first: u32, texts: &[String]) -> Result<AppendRequest> {
    Ok(AppendRequest {
        conversation: ConversationKey::main(agent),
        agent_name: "a".to_owned(),
        conversation_name: None,
        context,
        begin: begin(agent),
        first,
        messages: texts.iter().map(|text| message(text)).collect::<Result<_>>()?,
        at: at(1),
        deadline: Some(at(61)),
        key: None,
        mark: None,
    })
}

/// Appends one message and returns how many the context has.
async fn append(journal: &PostgresJournal, agent: Uuid, context: ContextNo, number: u32) -> Result<u64> {
    match journal.append(request(agent, context, number, &[format!("message {number}")])?).await? {
        JournalAppendOutcome::Added(result) => Ok(result.messages),
        other => Err(format!("{other:?}").into()),
    }
}

/// The texts of all messages of a context, in order.
async fn texts(journal: &PostgresJournal, context: ContextNo) -> Result<Vec<String>> {
    let (newest, cursor) = journal.newest_records(context).await?;
    let mut batches = match cursor {
        Some(cursor) => journal.records_before(context, cursor).await?,
        None => Vec::new(),
    };
    batches.push(newest);
    let texts = batches.into_iter().flatten().filter_map(|(_, record)| match record {
        chorus_journal::DecodedRecord::Message(message) => {
            let json: serde_json::Value = serde_json::from_slice(message.json()).unwrap_or_default();
            Some(json["content"].as_str().unwrap_or_default().to_owned())
        }
        _ => None,
    });
    Ok(texts.collect())
}

/// A node whose connections go through a proxy, with an agent that it owns.
struct ProxiedNode {
    database: Database,
    proxy: FaultProxy,
    journal: PostgresJournal,
    fatal: Fatal,
    agent: Uuid,
    context: ContextNo,
}

impl ProxiedNode {
    /// Starts one; `None` if PostgreSQL is not installed.
    async fn start() -> Result<Option<Self>> {
        let Some(database) = Database::create().await? else { return Ok(None) };
        let port = database.port();
        Self::start_at(database, port).await.map(Some)
    }

    /// Starts one that reaches the database over a port.
    async fn start_at(database: Database, port: u16) -> Result<Self> {
        let proxy = FaultProxy::start(port).await?;
        let (journal, fatal) = open_at(&database, proxy.port(), "a").await?;
        let agent = Uuid::new_v4();
        claim(&journal, agent).await?;
        let context = journal.reserve_context_no();
        Ok(Self { database, proxy, journal, fatal, agent, context })
    }
}
