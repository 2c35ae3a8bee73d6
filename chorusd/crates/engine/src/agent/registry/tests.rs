//! Tests of eviction and of agents whose task has died.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicI64;

use chorus_base::{Durability, Ticks, new_id};
use chorus_clock::TimeSource;
use chorus_config::Config;
use chorus_llm::Models;
use chorus_mcp_client::McpServers;
use chorus_proto::{NewMessage, Role};
use chorus_redact::Redactor;
use chorus_sandbox::Sandbox;
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;
use jiff::tz::TimeZone;

use super::*;
use crate::agent::eviction::EVICT_AFTER;
use crate::agent::summaries::SummaryServices;
use crate::approvals::Approvals;
use crate::tasks::Tasks;
use crate::tools::FileVersions;
use crate::usage::UsageTracker;

async fn append(registry: &Arc<Registry>, settings: &Arc<AgentSettings>, text: &str) -> Result<u64> {
    let message = NewMessage::text(Role::User, text).complete(|| new_id().to_string(), registry.clock.now());
    let append = command::append(vec![StoredMessage::new(&message).unwrap()], None);
    Ok(registry.ask_with_settings(ConversationKey::main(settings.id), settings.clone(), append).await?.messages)
}

/// Creates a registry in `home`, and an agent.
fn test_registry(home: &Path, clock: Clock) -> (Arc<Registry>, Arc<AgentSettings>) {
    std::fs::create_dir(home.join(chorus_store::DB_DIR)).unwrap();
    let on_fatal: chorus_store::OnFatal = Arc::new(|failure| panic!("{failure}"));
    let redactor = Arc::new(Redactor::new(|| [0; 32]));
    let store =
        Arc::new(Store::open(home, Durability::Always, &on_fatal, Timestamp::UNIX_EPOCH, redactor.clone()).unwrap());
    let (id, dir) = (Uuid::new_v4(), home.to_owned());
    let (agents, tasks) = (Arc::<AgentIndex>::default(), TaskTracker::new());
    let usage = Arc::new(UsageTracker::new(store.clone(), clock.clone(), TimeZone::UTC));
    let models = Arc::new(Models::new(&Config::default(), home, clock.clone(), redactor.clone()));
    let approvals = Arc::new(Approvals::new(store.clone(), clock.clone(), Duration::ZERO, redactor.clone()));
    let sandbox = Arc::new(Sandbox::new(home, home));
    let tools = ToolServices::new(
        store.clone(),
        models.clone(),
        clock.clone(),
        approvals,
        Tasks::new(store.clone(), clock.clone()),
        (
            sandbox.clone(),
            redactor.clone(),
            Arc::new(McpServers::new(&BTreeMap::new(), home, sandbox, redactor.clone())),
        ),
        FileVersions::new(store.catalog.file_writes.clone(), agents.clone(), 0),
    );
    let summaries = Summaries::new(SummaryServices {
        store: store.clone(),
        models,
        usage,
        traces: Arc::default(),
        redactor,
        agents: agents.clone(),
        clock,
        home: dir.clone(),
        sessions_lock: Arc::default(),
        tasks: tasks.clone(),
    });
    let registry = Registry::new(store, agents, dir.clone(), summaries, tools, tasks, Vec::new());
    (registry, Arc::new(AgentSettings { id, name: "a".into(), dir, ..AgentSettings::default() }))
}

/// A clock that the test sets.
struct ManualTime(Arc<AtomicI64>);

impl TimeSource for ManualTime {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn ticks(&self) -> Ticks {
        Ticks(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Ticks) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_context_left_alone_leaves_memory_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let time = Arc::new(AtomicI64::new(0));
    let (registry, settings) = test_registry(home.path(), Clock::new(ManualTime(time.clone())));
    let rest = async || {
        registry.ask(ConversationKey::main(settings.id), command::evict()).await.unwrap();
        // The actor replies before it retires.
        tokio::task::yield_now().await;
        !registry.inner.lock().actors.contains_key(&ConversationKey::main(settings.id))
    };
    assert_eq!(append(&registry, &settings, "one").await, Ok(1));
    assert!(!rest().await);
    let later = i64::try_from(EVICT_AFTER.as_nanos()).unwrap();
    time.store(later - 1, Ordering::Relaxed);
    assert!(!rest().await);
    assert_eq!(append(&registry, &settings, "two").await, Ok(2));
    time.store(later * 2 - 2, Ordering::Relaxed);
    assert!(!rest().await, "it was touched meanwhile");
    time.store(later * 2 - 1, Ordering::Relaxed);
    assert!(rest().await);
    assert_eq!(registry.context_info(ConversationKey::main(settings.id)).unwrap().messages, 2);
    assert_eq!(append(&registry, &settings, "three").await, Ok(3));
}

#[tokio::test]
async fn a_context_is_read_without_an_actor_unless_it_has_one() {
    let home = tempfile::tempdir().unwrap();
    let time = Arc::new(AtomicI64::new(0));
    let (registry, settings) = test_registry(home.path(), Clock::new(ManualTime(time.clone())));
    let main = ConversationKey::main(settings.id);
    assert!(registry.read_unloaded(main).await.is_none(), "there is none");
    append(&registry, &settings, "one").await.unwrap();
    append(&registry, &settings, "two").await.unwrap();
    assert!(registry.read_unloaded(main).await.is_none(), "it is in memory");
    time.store(i64::try_from(EVICT_AFTER.as_nanos()).unwrap(), Ordering::Relaxed);
    registry.ask(main, command::evict()).await.unwrap();
    tokio::task::yield_now().await;
    let texts = registry.read_unloaded(main).await.unwrap();
    let texts: Vec<String> = texts.iter().map(|message| message.to_message().unwrap().content).collect();
    assert_eq!(texts, ["one", "two"]);
    assert!(!registry.inner.lock().actors.contains_key(&main));
    // If the journal has others than the head says, the actor has to be asked.
    let mut head = registry.inner.lock().live.get(main).cloned().unwrap();
    head.totals.messages += 1;
    registry.inner.lock().live.insert(head);
    assert!(registry.read_unloaded(main).await.is_none());
}

#[tokio::test]
async fn an_agent_whose_task_has_died_goes_on_from_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let (registry, settings) = test_registry(home.path(), Clock::system());
    let id = settings.id;
    assert_eq!(append(&registry, &settings, "before").await, Ok(1));
    // The head in memory may be older than the journal.
    registry.inner.lock().live.remove(ConversationKey::main(id));
    let (dead, mailbox) = mpsc::channel(1);
    drop(mailbox);
    registry.inner.lock().actors.insert(ConversationKey::main(id), dead);
    let both = tokio::join!(append(&registry, &settings, "one"), append(&registry, &settings, "two"));
    assert_eq!(
        (both.0.unwrap() + both.1.unwrap(), registry.context_info(ConversationKey::main(id)).unwrap().messages),
        (5, 3)
    );
}
