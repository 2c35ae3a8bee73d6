//! Starts and stops the daemon: what runs in which order.

mod cluster_agents;
#[cfg(feature = "cluster")]
mod cluster_ports;
mod context_saves;
#[cfg(test)]
mod lock_race_tests;
#[cfg(feature = "cluster")]
mod postgres_store;
mod repair;
mod services;
#[cfg(feature = "cluster")]
mod session_bucket;
#[cfg(feature = "cluster")]
mod silent_nodes;
mod startup_maintenance;
#[cfg(feature = "cluster")]
mod store_copy;
#[cfg(feature = "cluster")]
mod store_setting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_config as config;
use chorus_config::Config;
use chorus_config::agent::AgentConfig;
#[cfg(feature = "discord")]
use chorus_discord::Discord;
use chorus_engine::agent::{eviction, idle_expiry};
use chorus_engine::lifecycle::instance_lock::InstanceLock;
use chorus_engine::lifecycle::instance_watch::InstanceWatch;
use chorus_engine::lifecycle::signals::{ReloadSignals, StopSignals};
use chorus_engine::lifecycle::socket::BoundSocket;
use chorus_engine::lifecycle::socket_activation::PassedSocket;
use chorus_engine::lifecycle::{
    detach, fingerprint_key, home_dir, instance_watch, log, signals, socket, systemd_notify, unclean_stop,
};
use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_engine::ops::agent::use_::CHOSEN_AGENT;
use chorus_engine::ops::config::reload;
use chorus_engine::ops::settings::ConfigReader;
use chorus_engine::tasks::RecoveredTasks;
use chorus_engine::{capture, search, semantic};
use chorus_proto::EventType;
use chorus_proto::paths::{HOME_SOCKET, InstancePaths};
use chorus_proto::pluralize::pluralize;
use chorus_redact::Redactor;
use chorus_runtime::SpawnTracked as _;
#[cfg(feature = "otlp")]
use chorus_traces as traces;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant as Moment, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::context_saves::{save_and_clear_all, save_contexts};
pub use self::repair::repair_home;
use self::services::make_services;
use self::startup_maintenance::{announce_recovered_tasks, run_maintenance};
#[cfg(feature = "cluster")]
pub(crate) use self::store_copy::{StoreUrl, copy_store};
#[cfg(not(feature = "discord"))]
use crate::discord_stub::Discord;
#[cfg(not(feature = "cluster"))]
use crate::server::Elsewhere;
use crate::server::Server;
#[cfg(feature = "cluster")]
use crate::server::accept_peers;
#[cfg(not(feature = "otlp"))]
use crate::traces_stub as traces;

/// The time that a stop waits until clients have read their last replies.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Share of the time for a stop in which running turns may end by themselves before their agents go to other nodes.
const TURNS_SHARE: f64 = 0.3;

/// Share of the time for a stop in which agents are moved to other nodes.
const HANDOVER_SHARE: f64 = 0.5;

/// Runs the daemon of `places` until it is stopped. Returns the reason if it could not start or had to end.
pub fn run(places: &InstancePaths, detached: bool) -> Result<()> {
    if detached {
        detach::start_session();
    }
    let config = load_config(places)?;
    let passed = PassedSocket::take()?;
    let expected = &places.socket;
    let socket = passed.as_ref().and_then(PassedSocket::path).unwrap_or_else(|| expected.clone());
    let places = &InstancePaths { socket, ..places.clone() };
    home_dir::prepare(&places.home)?;
    let lock = Arc::new(InstanceLock::acquire(&places.home)?);
    let redactor = build_redactor(places, &config);
    let log = log::start(&places.home, config.log_level, !detached, redactor.clone())?;
    let runtime = build_runtime()?;
    let ended = runtime.block_on(async {
        let config = (config, config_reader(places));
        let daemon = Daemon::start(places, config, Clock::system(), (&current_program()?, redactor)).await?;
        let bound = match passed {
            Some(passed) => passed.into_bound(expected),
            None => socket::bind(&places.socket)?,
        };
        daemon
            .serve((bound, expected, &lock), signals::listen(detach::has_terminal())?, || {
                detach::print_ready();
                if detached && let Ok(file) = log.file() {
                    detach::redirect_streams(&file);
                }
            })
            .await
    });
    if let Err(failure) = &ended {
        tracing::error!(%failure, "the daemon stopped");
    }
    // Do not wait for threads that block on a disk which no longer answers.
    runtime.shutdown_background();
    ended
}

/// Returns the function that reads the configuration again.
fn config_reader(places: &InstancePaths) -> ConfigReader {
    let file = places.config.clone();
    Arc::new(move || config::load(&file, |name| std::env::var_os(name)))
}

/// Runs a daemon within a program that supplies its clock and stop signals, such as a test. It leaves alone what
/// belongs to the whole process: signals, umask, log and environment. `program` is the path of a `chorusd`, which runs
/// again inside sandboxes. `ready` is called when the daemon accepts connections.
pub fn run_in_process(
    places: &InstancePaths,
    program: &Path,
    clock: Clock,
    stops: StopSignals,
    ready: impl FnOnce(),
) -> Result<()> {
    let config = config::load(&places.config, |_| None)?;
    home_dir::prepare(&places.home)?;
    let lock = Arc::new(InstanceLock::acquire(&places.home)?);
    let runtime = build_runtime()?;
    let ended = runtime.block_on(async {
        let redactor = build_redactor(places, &config);
        let file = places.config.clone();
        let read = Arc::new(move || config::load(&file, |_| None));
        let daemon = Daemon::start(places, (config, read), clock, (program, redactor)).await?;
        let signals = (stops, mpsc::channel(1).1);
        daemon.serve((socket::bind(&places.socket)?, &places.socket, &lock), signals, ready).await
    });
    runtime.shutdown_background();
    ended
}

/// Checks that the configuration can be used, as a start does first. Returns its file and the names of its providers.
pub(crate) fn check_config(places: &InstancePaths) -> Result<serde_json::Value> {
    let Config { file, providers, .. } = load_config(places)?;
    let providers: Vec<String> = providers.into_keys().collect();
    Ok(serde_json::json!({"config": file.path, "exists": file.exists, "providers": providers}))
}

fn load_config(places: &InstancePaths) -> Result<Config> {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    config::load(&places.config, |name| std::env::var_os(name))
}

fn current_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Error::io("cannot determine the path of this program", &e))
}

fn build_runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4)))
        .thread_name("chorusd")
        .enable_all()
        .build()
        .map_err(|e| Error::io("cannot start", &e))
}

/// Builds the redactor. It knows Discord's token, wherever that is stored, and learns the keys of providers as they are
/// read.
fn build_redactor(places: &InstancePaths, config: &Config) -> Arc<Redactor> {
    let home = places.home.clone();
    let redactor = Redactor::new(move || fingerprint_key::load_or_create_key(&home));
    // An unreadable token is reported when the Discord connection starts.
    if let Ok(Some(token)) = config.discord.read_token() {
        redactor.add_own_key(&token);
    }
    Arc::new(redactor)
}

struct Daemon {
    ops: Arc<Ops>,
    tasks: TaskTracker,
    /// Background tasks that the previous daemon left running.
    recovered_tasks: RecoveredTasks,
    /// Cancelled when storage can no longer be trusted.
    fatal: CancellationToken,
    fatal_error: Arc<OnceLock<Error>>,
    on_fatal: chorus_store::OnFatal,
}

impl Daemon {
    /// Opens the store and recovers the live contexts.
    fn start<'a>(
        places: &'a InstancePaths,
        (config, read): (Config, ConfigReader),
        clock: Clock,
        (program, redactor): (&'a Path, Arc<Redactor>),
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let started = Instant::now();
            let (fatal, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
            let on_fatal: chorus_store::OnFatal = {
                let (fatal, why) = (fatal.clone(), why.clone());
                Arc::new(move |failure| {
                    let _ = why.set(failure);
                    fatal.cancel();
                })
            };
            let tasks = TaskTracker::new();
            let (ops, live) =
                make_services(places, config, clock, (program, redactor), (&on_fatal, started), (&tasks, read)).await?;
            ops::cluster::publish_profile_hash(&ops.store, &ops.config.profiles).await?;
            ops.agent_resolver.claims.take_on_former().await?;
            let recovered = ops.tasks.recover().await?;
            load_agents(&ops).await?;
            // Before the scan of the directories: a directory that is moved back must be found by it.
            if let Err(failure) = ops::trash::recovery::recover_unfinished(&ops.trash).await {
                tracing::error!(%failure, "cannot complete interrupted moves into or out of the trash");
            }
            if ops.store.ownership.is_none() {
                ops.catalog_sync.sync_agents().await?;
            }
            // Before anything is written to the audit log: the anchor of its newest row is replaced by the next write.
            if let Err(failure) = ops.store.record_lost_audits(ops.clock.now()).await {
                tracing::warn!(%failure, "cannot check the audit log");
            }
            // An approval that cannot be closed now counts as denied nevertheless, since nobody waits for it.
            if let Err(failure) = ops.approvals.deny_left_open().await {
                tracing::warn!(%failure, "cannot deny the approvals that were pending before the start");
            }
            if !ops.config.resume_on_start {
                save_and_clear_all(&ops).await;
            }
            tracing::info!(
                version = ops::daemon::VERSION,
                pid = std::process::id(),
                home = %places.home.display(),
                socket = %places.socket.display(),
                agents = ops.agents.names().len(),
                live,
                took = ?started.elapsed(),
                "started"
            );
            Ok(Self { ops, tasks, recovered_tasks: recovered, fatal, fatal_error: why, on_fatal })
        })
    }

    /// Serves connections until a signal, a request or a storage failure ends the daemon, then stops in order. `asked`
    /// is the path at which the socket was requested; the socket may be bound at another.
    async fn serve(
        mut self,
        (bound, asked, lock): (BoundSocket, &Path, &Arc<InstanceLock>),
        (mut stops, mut reloads): (StopSignals, ReloadSignals),
        ready: impl FnOnce(),
    ) -> Result<()> {
        // Before the first message can arrive: otherwise these timers, which come from recovered state, would overwrite
        // the ones that a message sets.
        self.ops.registry.start_timers();
        let stop = CancellationToken::new();
        // Threads outside of the runtime end if this returns early, too.
        let _ended = stop.clone().drop_guard();
        #[cfg(feature = "cluster")]
        let cluster_ports::Ports { listener: peers, elsewhere } = cluster_ports::open(&self.ops, &stop).await?;
        #[cfg(not(feature = "cluster"))]
        let elsewhere = Elsewhere::default();
        let server = Arc::new(Server::new(self.ops.clone(), stop.clone(), elsewhere));
        #[cfg(feature = "cluster")]
        if let Some(peers) = peers {
            self.tasks.spawn_tracked(accept_peers(server.clone(), peers));
        }
        let (moved, sockets) = mpsc::channel(1);
        let places = instance_watch::SocketPaths {
            requested: asked.to_owned(),
            fallback: self.ops.home.join(HOME_SOCKET),
            current: self.ops.daemon.socket.clone(),
        };
        let watch = InstanceWatch::start(lock, &bound, places, moved, self.on_fatal.clone())?;
        // Before the first client, so that the counters lack nothing.
        #[cfg(feature = "metrics")]
        if let Some(listen) = self.ops.config.metrics_listen.clone() {
            self.tasks.spawn_tracked(chorus_metrics::start(self.ops.clone(), listen, stop.clone()));
        }
        // Before the first turn.
        let traces = traces::start(&self.ops);
        let listening = bound.listen()?;
        let accepting = {
            let server = server.clone();
            chorus_runtime::spawn(async move { server.accept(listening, sockets).await })
        };
        ready();
        systemd_notify::notify_ready(&pluralize(self.ops.agents.names().len() as u64, "agent"));
        if let Some(limit) = systemd_notify::watchdog_timeout() {
            let ops = self.ops.clone();
            self.tasks.spawn_tracked(systemd_notify::run_watchdog(limit, move || ops.store.journal.ping()));
        }
        self.tasks.spawn_tracked(idle_expiry::run(self.ops.registry.clone(), stop.clone()));
        self.tasks.spawn_tracked(eviction::run(self.ops.registry.clone(), stop.clone()));
        let ops = self.ops.clone();
        self.tasks.spawn_tracked(search::run(
            ops.search.clone(),
            ops.semantic.clone(),
            ops.store.clone(),
            ops.registry.clone(),
            ops.agents.clone(),
            ops.home.clone(),
            stop.clone(),
        ));
        let worker = semantic::run(self.ops.semantic.clone(), self.ops.search.clone(), stop.clone());
        self.tasks.spawn_tracked(worker);
        self.tasks.spawn_tracked(capture::run(self.ops.clone(), stop.clone()));
        self.tasks.spawn_tracked(self.ops.summaries.clone().run_timers());
        self.tasks.spawn_tracked(ops::schedule::run_timer(self.ops.clone(), stop.clone()));
        self.tasks.spawn_tracked(cluster_agents::run(self.ops.agent_resolver.claims.clone(), stop.clone()));
        self.tasks.spawn_tracked(run_maintenance(self.ops.clone(), stop.clone()));
        self.tasks.spawn_tracked(ops::tasks::running_tasks_sync::run(self.ops.clone(), stop.clone()));
        self.tasks.spawn_tracked(announce_recovered_tasks(self.ops.clone(), std::mem::take(&mut self.recovered_tasks)));
        let registry = self.ops.registry.clone();
        self.tasks.spawn_tracked(async move { registry.close_open_turns().await });
        let models = self.ops.models.clone();
        self.tasks.spawn_tracked(async move { models.discover().await });
        let (reloader, ended) = (self.ops.config_reloader.clone(), stop.clone());
        self.tasks.spawn_tracked(async move {
            while let Some(Some(())) = ended.run_until_cancelled(reloads.recv()).await {
                // It is logged, and an event.
                let _ = reload::reload_by(&reloader, "SIGHUP").await;
            }
        });
        let discord = Discord::start(&self.ops);
        tokio::select! {
            Some(signal) = stops.recv() => tracing::info!(signal, "stopping"),
            () = self.ops.daemon.stop.cancelled() => tracing::info!("stopping on request"),
            () = self.fatal.cancelled() => return Err(self.fatal_failure()),
        }
        systemd_notify::notify_stopping("saving every conversation");
        let deadline = Moment::now() + self.ops.defaults().stop_timeout;
        self.ops.registry.emit_event(EventType::DaemonStopping, None, None, json!({}));
        self.hand_over(&mut stops).await?;
        // The store needs time after Discord.
        let left = deadline.saturating_duration_since(Moment::now());
        let discord_until = Moment::now() + left.mul_f64(0.7);
        let discord = chorus_runtime::spawn(async move { discord.stop(discord_until).await });
        unclean_stop::set_marker(&self.ops.home);
        watch.stop();
        stop.cancel();
        // Not awaited: one busy agent must not delay the others.
        chorus_runtime::spawn({
            let registry = self.ops.registry.clone();
            async move { registry.end_turns().await }
        });
        self.ops.summaries.stop();
        let in_background = self.ops.tasks.clone();
        let ending = chorus_runtime::spawn({
            let ops = self.ops.clone();
            async move {
                let ended = ops.tasks.close().await;
                ops::tasks::running_tasks_sync::sync_changed(&ops).await;
                ended
            }
        });
        let orderly = async {
            let _ = accepting.await;
            // Pending replies get a moment to be sent. A client that does not read must not cost the contexts the time
            // to be saved.
            let _ = timeout_at(deadline.min(Moment::now() + DRAIN_TIMEOUT), server.drain()).await;
            let ended = timeout_at(deadline, ending).await.ok().and_then(Result::ok).unwrap_or_default();
            // Those that are still there when the daemon ends are killed.
            let servers = chorus_runtime::spawn({
                let mcp = self.ops.mcp.clone();
                async move { mcp.stop().await }
            });
            let saved = async {
                tokio::join!(in_background.notify_agents(ended), save_contexts(&self.ops));
                // A second pass, for contexts to which the end of a task has added a message since.
                if save_contexts(&self.ops).await {
                    unclean_stop::clear_marker(&self.ops.home);
                }
            };
            if timeout_at(deadline, saved).await.is_err() {
                tracing::warn!("not every context was saved in time; they are in the journal");
            }
            // Every turn has ended.
            let traces = traces.map(|traces| chorus_runtime::spawn(traces.stop(deadline)));
            let _ = timeout_at(deadline, discord).await;
            let _ = timeout_at(deadline, servers).await;
            self.ops.sessions.history_numbers.store(&self.ops.home);
            // The store needs the rest of the time to release what it has.
            let files_until = deadline - self.ops.defaults().stop_timeout.mul_f64(0.1);
            let _ = timeout_at(files_until, self.ops.agent_resolver.claims.store_file_edits(None, usize::MAX)).await;
            let closed = timeout_at(deadline, self.ops.store.close()).await;
            if let Ok(Err(failure)) = closed {
                tracing::warn!(%failure, "cannot store a copy of the catalog");
            }
            if let Some(traces) = traces {
                let _ = timeout_at(deadline, traces).await;
            }
        };
        tokio::select! {
            () = orderly => {}
            Some(signal) = stops.recv() => {
                tracing::warn!(signal, "stopped immediately; unsaved messages are in the journal");
                return Err(Error::stopping());
            }
            () = self.fatal.cancelled() => return Err(self.fatal_failure()),
        }
        tracing::info!("stopped");
        Ok(())
    }

    /// Moves the agents to other nodes of a cluster while this one still answers. Without another node, they stay.
    async fn hand_over(&self, stops: &mut StopSignals) -> Result<()> {
        if self.ops.store.ownership.is_none() {
            return Ok(());
        }
        let (begun, limit) = (Moment::now(), self.ops.defaults().stop_timeout);
        let mover = self.ops.agent_mover.clone();
        // In a task of its own: an agent that is being moved when the time is up is not left half way.
        let moving = chorus_runtime::spawn(async move { mover.move_all(begun + limit.mul_f64(TURNS_SHARE)).await });
        tokio::select! {
            moved = timeout_at(begun + limit.mul_f64(HANDOVER_SHARE), moving) => {
                match moved.map(|ended| ended.unwrap_or_else(|e| Err(Error::internal(e.to_string())))) {
                    Ok(Ok(moved)) => tracing::info!(agents = moved.agents, left = moved.left.len(), "moved agents to other nodes"),
                    Ok(Err(failure)) => tracing::info!(%failure, "agents are not moved"),
                    Err(_) => tracing::warn!("not every agent was moved in time"),
                }
                Ok(())
            }
            Some(signal) = stops.recv() => {
                tracing::warn!(signal, "stopped immediately; unsaved messages are in the journal");
                Err(Error::stopping())
            }
            () = self.fatal.cancelled() => Err(self.fatal_failure()),
        }
    }

    fn fatal_failure(&self) -> Error {
        self.fatal_error.get().cloned().unwrap_or_else(|| Error::internal("storage error"))
    }
}

/// Fills the agent index from the catalog.
async fn load_agents(ops: &Ops) -> Result<()> {
    let defaults = ops.defaults();
    // In a cluster they are in the index since they were taken on.
    let is_alone = ops.store.ownership.is_none();
    for row in if is_alone { ops.store.catalog.agents.list(false).await? } else { Vec::new() } {
        match AgentConfig::parse(&row.config, &defaults) {
            Ok(config) => {
                // A copy: what stays of the rows would keep the memory of all of them from being returned.
                let stamp = row.stamp.as_str().to_owned();
                let mut entry = ops::agent::agent_entry(&ops.home, &row.dir, &config, stamp);
                if config.name != row.name {
                    entry.settings =
                        Arc::new(chorus_agent_core::AgentSettings { name: row.name, ..(*entry.settings).clone() });
                }
                ops.agents.insert(entry);
            }
            Err(problem) => tracing::error!(agent = %row.name, problem, "invalid agent.json in the catalog"),
        }
    }
    let chosen = ops.store.catalog.settings.get(CHOSEN_AGENT).await?.and_then(|id| id.parse::<Uuid>().ok());
    ops.agents.select(chosen.filter(|id| !is_alone || ops.agents.by_id(*id).is_some()));
    Ok(())
}
