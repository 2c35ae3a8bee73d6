//! The composition root: makes each service once and hands it to those that use it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_config::{Config, SearchConfig};
use chorus_engine::agent::agent_index::AgentIndex;
use chorus_engine::agent::recall::PassageFinder;
use chorus_engine::agent::registry::Registry;
use chorus_engine::agent::summaries::{Summaries, SummaryServices};
use chorus_engine::approvals::Approvals;
use chorus_engine::capture::{CaptureService, DeletedConversations, UserPlaces};
use chorus_engine::lifecycle::socket;
use chorus_engine::ops::Ops;
use chorus_engine::ops::agent::{
    AgentClaims, AgentDescriber, AgentEditor, AgentExporter, AgentMoves, AgentResolver, FailedAdoptions, ImportAgents,
    OwnerHints,
};
use chorus_engine::ops::backup::Backups;
use chorus_engine::ops::catalog_sync::CatalogSync;
use chorus_engine::ops::cluster::{AgentMover, MoverState, PeerChecksCell};
use chorus_engine::ops::config::{ConfigReloader, hidden_paths};
use chorus_engine::ops::context::ContinuationStarter;
use chorus_engine::ops::context_meter::ContextMeter;
use chorus_engine::ops::daemon::DaemonState;
use chorus_engine::ops::schedule::Schedules;
use chorus_engine::ops::send::MessageSender;
use chorus_engine::ops::session::{SessionImporter, SessionReader, SessionTrash};
use chorus_engine::ops::settings::{ConfigReader, EffectiveConfig};
use chorus_engine::ops::trash::Trash;
use chorus_engine::search::{SearchService, SearchSettings};
use chorus_engine::semantic::SemanticService;
use chorus_engine::tools::{FileVersions, ToolHost, ToolServices};
use chorus_engine::traces::TraceFeed;
use chorus_engine::usage::UsageTracker;
use chorus_engine::{KeyedMutex, ops, tasks};
use chorus_llm::Models;
use chorus_mcp_client::McpServers;
use chorus_proto::paths::InstancePaths;
use chorus_redact::Redactor;
use chorus_sandbox::Sandbox;
use chorus_search::IndexOptions;
use chorus_store::{OnFatal, Store};
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Opens the store and makes the services on it. Returns their container and the number of live contexts.
pub(super) async fn make_services(
    places: &InstancePaths,
    config: Config,
    clock: Clock,
    (program, redactor): (&Path, Arc<Redactor>),
    (on_fatal, started): (&OnFatal, Instant),
    (tasks, read_config): (&TaskTracker, ConfigReader),
) -> Result<(Arc<Ops>, usize)> {
    let store = Arc::new(open_store(places, &config, &clock, on_fatal, &redactor).await?);
    let agents = Arc::new(AgentIndex::default());
    let heads = ops::agent::destroy::end_destroyed_contexts(&store, store.journal.live_contexts().await?).await?;
    ops::conversations::recovery::load(&store, &agents.conversations, &heads, clock.now()).await?;
    let (live, home) = (heads.len(), places.home.clone());
    let models = Arc::new(Models::new(&config, &home, clock.clone(), redactor.clone()));
    let usage = Arc::new(UsageTracker::new(store.clone(), clock.clone(), TimeZone::system()));
    let traces = Arc::new(TraceFeed::default());
    let approvals = Approvals::new(store.clone(), clock.clone(), config.approval_timeout, redactor.clone());
    let approvals = Arc::new(approvals);
    let background_tasks = tasks::Tasks::new(store.clone(), clock.clone());
    let sandbox = Arc::new(Sandbox::new(program, &home));
    sandbox.hide_paths(hidden_paths(&places.socket, &places.config, &config));
    let mcp = Arc::new(McpServers::new(&config.mcp, &home, sandbox.clone(), redactor.clone()));
    let file_writes = store.catalog.file_writes.clone();
    let last_write = file_writes.last_position().await?;
    let tools = ToolServices::new(
        store.clone(),
        models.clone(),
        clock.clone(),
        approvals.clone(),
        background_tasks.clone(),
        (sandbox.clone(), redactor.clone(), mcp.clone()),
        FileVersions::new(file_writes, agents.clone(), last_write),
    );
    let sessions_lock = Arc::<tokio::sync::RwLock<()>>::default();
    let summaries = Summaries::new(SummaryServices {
        store: store.clone(),
        models: models.clone(),
        usage: usage.clone(),
        traces: traces.clone(),
        redactor: redactor.clone(),
        agents: agents.clone(),
        clock: clock.clone(),
        home: home.clone(),
        sessions_lock: sessions_lock.clone(),
        tasks: tasks.clone(),
    });
    let registry =
        Registry::new(store.clone(), agents.clone(), home, summaries.clone(), tools.clone(), tasks.clone(), heads);
    let config = Arc::new(config);
    let effective_config =
        Arc::new(EffectiveConfig::load(store.catalog.settings.clone(), config.clone(), read_config).await?);
    let discord = Arc::new(ops::discord::DiscordHandle::new(config.discord.is_configured()));
    let context_meter = Arc::new(ContextMeter {
        registry: registry.clone(),
        memories: store.catalog.memories.clone(),
        models: models.clone(),
        usage: usage.clone(),
        counts: Default::default(),
    });
    let deleted = Arc::new(DeletedConversations::load(store.catalog.capture.clone()).await?);
    let capture =
        CaptureService::load(&store.catalog, deleted.clone(), UserPlaces::from_env(), &config.capture, clock.clone())
            .await?;
    let capture = Arc::new(capture);
    let peer_checks = PeerChecksCell::default();
    let claims = Arc::new(AgentClaims {
        store: store.clone(),
        index: agents.clone(),
        registry: registry.clone(),
        config: effective_config.clone(),
        home: places.home.clone(),
        locks: KeyedMutex::default(),
        owner_hints: OwnerHints::default(),
        moves: AgentMoves {
            store: store.clone(),
            tasks: background_tasks.clone(),
            approvals: approvals.clone(),
            clock: clock.clone(),
        },
        failed: FailedAdoptions::default(),
        peer_checks: peer_checks.clone(),
    });
    let agent_resolver = Arc::new(AgentResolver {
        index: agents.clone(),
        claims: claims.clone(),
        table: store.catalog.agents.clone(),
        home: places.home.clone(),
        config: effective_config.clone(),
        approvals: approvals.clone(),
        discord: discord.clone(),
        lock: tokio::sync::Mutex::default(),
        registry: registry.clone(),
        conversation_locks: KeyedMutex::default(),
        starting_conversations: Default::default(),
        capture: capture.clone(),
    });
    let sessions = Arc::new(SessionReader {
        table: store.catalog.sessions.clone(),
        agents: agent_resolver.clone(),
        store: store.clone(),
        registry: registry.clone(),
        history_numbers: ops::history_numbers::HistoryNumbers::take_stored(&places.home),
        home: places.home.clone(),
    });
    let search = Arc::new(SearchService::new(
        &places.home,
        search_settings(&config),
        store.catalog.sessions.changes(),
        registry.live_changes.clone(),
    ));
    let session_trash = Arc::new(SessionTrash {
        store: store.clone(),
        agents: agents.clone(),
        sessions: sessions.clone(),
        registry: registry.clone(),
        sessions_lock: sessions_lock.clone(),
        deleted: deleted.clone(),
        search: search.clone(),
        clock: clock.clone(),
        home: places.home.clone(),
    });
    let stop = CancellationToken::new();
    let continuation_starter = ContinuationStarter {
        store: store.clone(),
        sessions: sessions.clone(),
        registry: registry.clone(),
        sessions_lock: sessions_lock.clone(),
        clock: clock.clone(),
        stop: stop.clone(),
    };
    let trash = Trash {
        store: store.clone(),
        agents: agent_resolver.clone(),
        deleted: deleted.clone(),
        sessions_lock: sessions_lock.clone(),
        clock: clock.clone(),
        home: places.home.clone(),
    };
    let catalog_sync = Arc::new(CatalogSync {
        store: store.clone(),
        agents: agents.clone(),
        config: effective_config.clone(),
        home: places.home.clone(),
        clock: clock.clone(),
        started,
    });
    let agent_describer = Arc::new(AgentDescriber {
        sessions: store.catalog.sessions.clone(),
        registry: registry.clone(),
        approvals: approvals.clone(),
        usage: usage.clone(),
        context_meter: context_meter.clone(),
        config: effective_config.clone(),
        home: places.home.clone(),
        clock: clock.clone(),
        ownership: store.ownership.clone().filter(|_| config.cluster.listen.is_some()),
    });
    let agent_editor = Arc::new(AgentEditor {
        agents: agent_resolver.clone(),
        describer: agent_describer.clone(),
        registry: registry.clone(),
        models: models.clone(),
        store: store.clone(),
        config: effective_config.clone(),
        sessions_lock: sessions_lock.clone(),
        deleted: deleted.clone(),
        clock: clock.clone(),
    });
    let config_reloader = Arc::new(ConfigReloader {
        last_read: chorus_base::sync::Mutex::default(),
        effective: effective_config.clone(),
        agents: agent_resolver.clone(),
        models: models.clone(),
        approvals: approvals.clone(),
        registry: registry.clone(),
        sandbox: sandbox.clone(),
        store: store.clone(),
        clock: clock.clone(),
        socket: places.socket.clone(),
        tasks: tasks.clone(),
    });
    let agent_mover = Arc::new(AgentMover {
        claims: claims.clone(),
        editor: agent_editor.clone(),
        tasks: background_tasks.clone(),
        state: MoverState::default(),
    });
    let agent_exporter = AgentExporter {
        agents: agent_resolver.clone(),
        store: store.clone(),
        registry: registry.clone(),
        memories: store.catalog.memories.clone(),
        sandbox: sandbox.clone(),
        git_locks: tools.git_locks.clone(),
        sessions_lock: sessions_lock.clone(),
        clock: clock.clone(),
    };
    let session_importer = SessionImporter {
        store: store.clone(),
        registry: registry.clone(),
        agents: agents.clone(),
        sessions: sessions.clone(),
        redactor: redactor.clone(),
        sessions_lock: sessions_lock.clone(),
        clock: clock.clone(),
        home: places.home.clone(),
        conversation_locks: KeyedMutex::default(),
        deleted: deleted.clone(),
        import_agents: ImportAgents { editor: agent_editor.clone(), catalog_sync: catalog_sync.clone() },
    };
    let message_sender = MessageSender {
        agents: agent_resolver.clone(),
        registry: registry.clone(),
        store: store.clone(),
        models: models.clone(),
        usage: usage.clone(),
        config: config.clone(),
        clock: clock.clone(),
    };
    let backups = Arc::new(Backups::new(
        store.clone(),
        agent_resolver.clone(),
        sessions_lock.clone(),
        effective_config.clone(),
        clock.clone(),
    ));
    let semantic = Arc::new(SemanticService::new(&places.home, models.clone(), usage.clone(), clock.clone()));
    let transfers = match &store.ownership {
        Some(ownership) => ops::transfers::AllTransfers::of_process(ownership.node(), ownership.boot()),
        None => Default::default(),
    };
    let schedules = Arc::new(Schedules::new(
        store.catalog.schedules.clone(),
        agent_resolver.clone(),
        store.catalog.audit.clone(),
        models.clone(),
        (clock.clone(), TimeZone::system()),
    ));
    let started_at = clock.now();
    let ops = Arc::new(Ops {
        effective_config,
        config_reloader,
        capture,
        agent_resolver,
        agent_describer,
        agent_editor,
        agent_exporter,
        agent_mover,
        peer_checks,
        sessions,
        session_importer,
        session_trash,
        continuation_starter,
        trash,
        catalog_sync,
        message_sender,
        context_meter,
        schedules,
        search,
        semantic,
        store,
        registry,
        summaries,
        approvals,
        tasks: background_tasks,
        sandbox,
        mcp,
        git_locks: tools.git_locks.clone(),
        redactor,
        agents,
        models,
        usage,
        traces,
        clock,
        config,
        home: places.home.clone(),
        daemon: DaemonState {
            socket: socket::SocketPath::new(places.socket.clone()),
            started_at,
            started,
            connections: AtomicU64::new(0),
            stop,
        },
        sessions_lock,
        running_tasks_sync: ops::tasks::RunningTasksSync::default(),
        transfers: Arc::new(transfers),
        backups,
        session_overlaps: ops::session::diff::SessionOverlaps::default(),
        export_positions: ops::session::export_offsets::ExportPositions::default(),
        agent_message_limits: Arc::default(),
        discord,
    });
    let outside: Arc<dyn ToolHost> = ops.clone();
    let _ = tools.host.set(Arc::downgrade(&outside));
    let _ = ops.registry.passage_finder.set(Arc::downgrade(&(ops.clone() as Arc<dyn PassageFinder>)));
    ops.tasks.set_host(Arc::downgrade(&(ops.clone() as Arc<dyn tasks::TaskHost>)));
    Ok((ops, live))
}

/// Opens the store that the configuration names.
async fn open_store(
    places: &InstancePaths,
    config: &Config,
    clock: &Clock,
    on_fatal: &OnFatal,
    redactor: &Arc<Redactor>,
) -> Result<Store> {
    match config.store.kind {
        #[cfg(feature = "cluster")]
        chorus_config::StoreKind::Postgres => {
            super::postgres_store::open(config, (&places.home, clock), on_fatal, redactor).await
        }
        _ => Store::open(&places.home, config.durability(), on_fatal, clock.now(), redactor.clone()),
    }
}

fn search_settings(config: &Config) -> SearchSettings {
    let SearchConfig { index, index_tool_results, language } = config.search;
    let options = IndexOptions::new(language.as_str(), index_tool_results);
    SearchSettings { is_enabled: index, tool_results: index_tool_results, options }
}
