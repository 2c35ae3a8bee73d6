//! The composition root: the one file that names every part, and the order of start and stop.

mod repair;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use chorus_proto::paths::{HOME_SOCKET, Places};
use chorus_proto::{EventType, Trigger};
use futures_util::StreamExt as _;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant as Moment, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use self::repair::repair;
use crate::agent::directory::Directory;
use crate::agent::event::Verb;
use crate::agent::registry::Registry;
use crate::agent::summaries::Summaries;
use crate::agent::{idle, rest};
use crate::clock::Clock;
use crate::config::agent::AgentConfig;
use crate::config::{self, Config, DurabilityMode};
use crate::discord::Discord;
use crate::failure::{Failure, Result};
use crate::lifecycle::{
    detach, fingerprint, home, leftover, lock::InstanceLock, log, passed::Passed, service, signals, signals::Stops,
    socket, socket::Bound, watch, watch::Watch,
};
use crate::llm::Models;
use crate::memory;
use crate::ops::agent::use_::CHOSEN;
use crate::ops::settings::InForce;
use crate::ops::{self, Ops};
use crate::redact::Redactor;
use crate::server::Server;
use crate::store::Store;
use crate::tasks::{self, Recovered};
use crate::tools::{Outside, World};
use crate::usage::Usage;

/// Contexts that are saved at once when the daemon stops.
const SAVES: usize = 16;

/// How long a stop waits for answers to be taken.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Runs the daemon of `places` until it is stopped.
///
/// # Errors
/// Why it could not start, or had to end.
pub fn run(places: &Places, detached: bool) -> Result<()> {
    if detached {
        detach::leave_session();
    }
    let config = configure(places)?;
    let passed = Passed::take()?;
    let expected = &places.socket;
    let socket = passed.as_ref().and_then(Passed::path).unwrap_or_else(|| expected.clone());
    let places = &Places { socket, ..places.clone() };
    home::prepare(&places.home)?;
    let lock = Arc::new(InstanceLock::take(&places.home)?);
    let redactor = redactor(places, &config);
    let log = log::start(&places.home, config.log_level, !detached, redactor.clone())?;
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let daemon = Daemon::start(places, config, Clock::system(), (&own_program()?, redactor)).await?;
        let bound = match passed {
            Some(passed) => passed.bound(expected),
            None => socket::bind(&places.socket)?,
        };
        daemon
            .serve((bound, expected, &lock), signals::stops()?, || {
                detach::say_ready();
                if detached && let Ok(file) = log.file() {
                    detach::release_streams(&file);
                }
            })
            .await
    });
    if let Err(failure) = &ended {
        tracing::error!(%failure, "the daemon ends");
    }
    // Threads that block on a disk which no longer answers are not waited for.
    runtime.shutdown_background();
    ended
}

/// Runs a daemon inside a program that has a clock for it and says when it stops. What belongs to the whole process is
/// left as it is: signals, umask, log, the environment. `program` is a `chorusd`, which runs again inside sandboxes; `ready`
/// is called when connections are taken.
///
/// # Errors
/// As [`run`].
pub fn run_with(places: &Places, program: &Path, clock: Clock, stops: Stops, ready: impl FnOnce()) -> Result<()> {
    let config = config::load(&places.config, |_| None)?;
    home::prepare(&places.home)?;
    let lock = Arc::new(InstanceLock::take(&places.home)?);
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let redactor = redactor(places, &config);
        let daemon = Daemon::start(places, config, clock, (program, redactor)).await?;
        daemon.serve((socket::bind(&places.socket)?, &places.socket, &lock), stops, ready).await
    });
    runtime.shutdown_background();
    ended
}

fn configure(places: &Places) -> Result<Config> {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    config::load(&places.config, |name| std::env::var_os(name))
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Failure::io("cannot tell which program this is", &e))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4)))
        .thread_name("chorusd")
        .enable_all()
        .build()
        .map_err(|e| Failure::io("cannot start", &e))
}

/// What takes secrets out. It knows Discord's token, wherever that is, and learns the keys of providers as they are read.
fn redactor(places: &Places, config: &Config) -> Arc<Redactor> {
    let home = places.home.clone();
    let redactor = Redactor::new(move || fingerprint::key(&home));
    // What is no token Discord's part complains of.
    if let Ok(Some(token)) = config.discord.read_token() {
        redactor.learn(&token);
    }
    Arc::new(redactor)
}

struct Daemon {
    ops: Arc<Ops>,
    tasks: TaskTracker,
    /// Commands in the background that the daemon before left.
    recovered: Recovered,
    /// Set when storage can no longer be trusted.
    fatal: CancellationToken,
    why: Arc<OnceLock<Failure>>,
    on_fatal: crate::store::OnFatal,
}

impl Daemon {
    /// Opens the store and recovers what was live.
    async fn start(
        places: &Places,
        config: Config,
        clock: Clock,
        (program, redactor): (&Path, Arc<Redactor>),
    ) -> Result<Self> {
        let started = Instant::now();
        let (fatal, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let on_fatal: crate::store::OnFatal = {
            let (fatal, why) = (fatal.clone(), why.clone());
            Arc::new(move |failure| {
                let _ = why.set(failure);
                fatal.cancel();
            })
        };
        let store = Arc::new(Store::open(&places.home, config.durability(), &on_fatal, clock.now())?);
        let directory = Arc::new(Directory::default());
        let tasks = TaskTracker::new();
        let heads = ops::agent::destroy::end_left(&store, store.journal.heads().await?).await?;
        let (live, home) = (heads.len(), places.home.clone());
        store.catalog.redact(redactor.clone());
        let models = Arc::new(Models::new(&config, &home, clock.clone()).redacting(redactor));
        let usage = Arc::new(Usage::new(store.clone(), clock.clone(), TimeZone::system()));
        let places_of = (program, &*home);
        let world = World::new(store.clone(), models.clone(), clock.clone(), config.approval_timeout, places_of);
        world.sandbox.hide(out_of_reach(places, &config));
        let sessions_lock = Arc::<tokio::sync::RwLock<()>>::default();
        let summaries = Summaries::new(
            store.clone(),
            models.clone(),
            usage.clone(),
            directory.clone(),
            clock.clone(),
            (home.clone(), sessions_lock.clone()),
            tasks.clone(),
        );
        let registry = Registry::new(store.clone(), directory.clone(), home, summaries, world, tasks.clone(), heads);
        let in_force = InForce::load(&store, &config).await?;
        let discord = ops::discord::Discord::new(config.discord.is_wanted());
        let ops = Arc::new(Ops {
            in_force,
            store,
            registry,
            directory,
            models,
            usage,
            started_at: clock.now(),
            clock,
            config,
            home: places.home.clone(),
            socket: socket::Address::new(places.socket.clone()),
            started,
            connections: AtomicU64::new(0),
            stop: CancellationToken::new(),
            agents_lock: tokio::sync::Mutex::new(()),
            sessions_lock,
            shown: ops::shown::Shown::default(),
            listed: ops::tasks::Listed::default(),
            transcripts: ops::spools::Spools::default(),
            agents_in: ops::spools::Spools::default(),
            agents_out: ops::spools::Spools::default(),
            backups: ops::backup::Backups::default(),
            commons: ops::session::diff::Commons::default(),
            checkpoints: ops::session::checkpoints::Checkpoints::default(),
            relay: Arc::default(),
            discord,
        });
        let outside: Arc<dyn Outside> = ops.clone();
        let _ = ops.registry.world.outside.set(Arc::downgrade(&outside));
        let in_background = &ops.registry.world.tasks;
        in_background.connect(Arc::downgrade(&(ops.clone() as Arc<dyn tasks::Outside>)));
        let recovered = in_background.recover().await?;
        load_agents(&ops).await?;
        // Before the directories are looked through: what goes back to its place is one of them.
        if let Err(failure) = ops::trash::settle::unfinished(&ops).await {
            tracing::error!(%failure, "moves into or out of the trash that were cut short are not settled");
        }
        ops::scan::agents(&ops).await?;
        // Before anything is written into the log: the note of its newest row goes with the next.
        if let Err(failure) = ops.store.note_lost_audits(ops.clock.now()).await {
            tracing::warn!(%failure, "cannot tell whether the audit log is whole");
        }
        // What cannot be written now is denied all the same: nobody waits for it.
        if let Err(failure) = ops.registry.world.approvals.close_left_open().await {
            tracing::warn!(%failure, "what was asked before the start cannot be closed");
        }
        if !ops.config.resume_on_start {
            put_away_all(&ops).await;
        }
        tracing::info!(
            version = ops::status::VERSION,
            pid = std::process::id(),
            home = %places.home.display(),
            socket = %places.socket.display(),
            agents = ops.directory.names().len(),
            live,
            took = ?started.elapsed(),
            "started"
        );
        Ok(Self { ops, tasks, recovered, fatal, why, on_fatal })
    }

    /// Takes connections until a word, a request or a fault ends it, then stops in order. The socket is bound, and was asked for
    /// at a path that may be another.
    async fn serve(
        mut self,
        (bound, asked, lock): (Bound, &Path, &Arc<InstanceLock>),
        mut stops: Stops,
        ready: impl FnOnce(),
    ) -> Result<()> {
        // Before the first message can come: what it sets must not be set again from what was found.
        self.ops.registry.arm();
        let stop = CancellationToken::new();
        let server = Arc::new(Server::new(self.ops.clone(), stop.clone()));
        let (moved, sockets) = mpsc::channel(1);
        let places = watch::Places {
            asked: asked.to_owned(),
            fallback: self.ops.home.join(HOME_SOCKET),
            address: self.ops.socket.clone(),
        };
        let watch = Watch::start(lock, &bound, places, moved, self.on_fatal.clone())?;
        let listening = bound.listen()?;
        let accepting = {
            let server = server.clone();
            tokio::spawn(async move { server.accept(listening, sockets).await })
        };
        ready();
        service::ready(&format!("{} agents", self.ops.directory.names().len()));
        if let Some(limit) = service::watchdog() {
            let ops = self.ops.clone();
            self.tasks.spawn(service::feed(limit, move || ops.store.journal.pulse()));
        }
        self.tasks.spawn(idle::run(self.ops.registry.clone(), stop.clone()));
        self.tasks.spawn(rest::run(self.ops.registry.clone(), stop.clone()));
        self.tasks.spawn(self.ops.registry.summaries.clone().keep_time());
        self.tasks.spawn(maintain(self.ops.clone(), stop.clone()));
        self.tasks.spawn(ops::tasks::listed::keep(self.ops.clone(), stop.clone()));
        self.tasks.spawn(take_up(self.ops.clone(), std::mem::take(&mut self.recovered)));
        let registry = self.ops.registry.clone();
        self.tasks.spawn(async move { registry.close_turns().await });
        let models = self.ops.models.clone();
        self.tasks.spawn(async move { models.discover().await });
        let discord = Discord::start(&self.ops);
        tokio::select! {
            Some(signal) = stops.recv() => tracing::info!(signal, "stopping"),
            () = self.ops.stop.cancelled() => tracing::info!("stopping on request"),
            () = self.fatal.cancelled() => return Err(self.failure()),
        }
        service::stopping("saving every conversation");
        let deadline = Moment::now() + self.ops.config.stop_timeout;
        self.ops.registry.tell(EventType::DaemonStopping, None, json!({}));
        // The store must have time left.
        let discord_until = Moment::now() + self.ops.config.stop_timeout.mul_f64(0.7);
        let discord = tokio::spawn(async move { discord.stop(discord_until).await });
        leftover::note(&self.ops.home);
        watch.stopping();
        stop.cancel();
        // Not waited for: an agent that is busy holds up nobody.
        tokio::spawn({
            let registry = self.ops.registry.clone();
            async move { registry.end_turns().await }
        });
        self.ops.registry.summaries.stop();
        let in_background = self.ops.registry.world.tasks.clone();
        let ending = tokio::spawn({
            let ops = self.ops.clone();
            async move {
                let ended = ops.registry.world.tasks.close().await;
                ops::tasks::listed::settle(&ops).await;
                ended
            }
        });
        let orderly = async {
            let _ = accepting.await;
            // Answers that are under way get a moment; a client that takes none must not cost the saves their time.
            let _ = timeout_at(deadline.min(Moment::now() + LAST_ANSWERS), server.drain()).await;
            let ended = timeout_at(deadline, ending).await.ok().and_then(Result::ok).unwrap_or_default();
            let saved = async {
                tokio::join!(in_background.tell(ended), save_all(&self.ops));
                // Who had nothing to save has something since it heard of its task.
                if save_all(&self.ops).await {
                    leftover::clear(&self.ops.home);
                }
            };
            if timeout_at(deadline, saved).await.is_err() {
                tracing::warn!("not every context was saved in time; the journal has them all");
            }
            let _ = timeout_at(deadline, discord).await;
            let closed = timeout_at(deadline, self.ops.store.close()).await;
            if let Ok(Err(failure)) = closed {
                tracing::warn!(%failure, "no copy of the catalog was kept");
            }
        };
        tokio::select! {
            () = orderly => {}
            Some(signal) = stops.recv() => {
                tracing::warn!(signal, "ended at once; the journal has what was not saved");
                return Err(Failure::stopping());
            }
            () = self.fatal.cancelled() => return Err(self.failure()),
        }
        tracing::info!("stopped");
        Ok(())
    }

    fn failure(&self) -> Failure {
        self.why.get().cloned().unwrap_or_else(|| Failure::internal("storage failed"))
    }
}

/// What commands do not see wherever it lies: the socket, the configuration, files with keys.
fn out_of_reach(places: &Places, config: &Config) -> Vec<PathBuf> {
    let keys = config.providers.values().filter_map(|provider| provider.key.file()).map(Path::to_owned);
    let token = config.discord.token.file().map(Path::to_owned);
    [places.socket.clone(), places.config.clone()].into_iter().chain(keys).chain(token).collect()
}

/// Fills the directory from the catalog.
async fn load_agents(ops: &Ops) -> Result<()> {
    for row in ops.store.catalog.agents(false).await? {
        match AgentConfig::parse(&row.config, &ops.defaults()) {
            Ok(config) => {
                let mut entry = ops::agent::entry(&ops.home, &row.dir, &config, row.stamp);
                if config.name != row.name {
                    entry.facts = Arc::new(crate::agent::Facts { name: row.name, ..(*entry.facts).clone() });
                }
                ops.directory.put(entry);
            }
            Err(problem) => tracing::error!(agent = %row.name, problem, "the catalog's agent.json cannot be used"),
        }
    }
    let chosen = ops.store.catalog.setting(CHOSEN).await?.and_then(|id| id.parse::<Uuid>().ok());
    ops.directory.choose(chosen.filter(|id| ops.directory.by_id(*id).is_some()));
    Ok(())
}

/// Saves every context that has unsaved messages; they stay live in the journal. What cannot be saved now is noted, and
/// saved at the next start; false: there is such.
async fn save_all(ops: &Ops) -> bool {
    let unsaved = ops.registry.unsaved();
    let count = unsaved.len();
    let failed = Mutex::new(0_usize);
    futures_util::stream::iter(unsaved)
        .for_each_concurrent(SAVES, |agent| {
            let failed = &failed;
            async move {
                let verb = Verb::PutAway { trigger: Trigger::Shutdown, end: false };
                if let Err(failure) = ops.registry.ask(agent, verb).await {
                    tracing::warn!(%agent, %failure, "a context was not saved; the journal has it");
                    *failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
                }
            }
        })
        .await;
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if count > 0 {
        tracing::info!(saved = count - failed, failed, "contexts saved");
    }
    failed == 0
}

/// Lets agents start idle: saves and ends every context.
async fn put_away_all(ops: &Ops) {
    for agent in ops.registry.live() {
        let verb = Verb::PutAway { trigger: Trigger::Shutdown, end: true };
        if let Err(failure) = ops.registry.ask(agent, verb).await {
            tracing::warn!(%agent, %failure, "a context was not put away; it stays live");
        }
    }
}

/// Tells of the commands in the background that the daemon before left.
async fn take_up(ops: Arc<Ops>, recovered: Recovered) {
    if let Err(failure) = ops::tasks::listed::look_over(&ops).await {
        tracing::warn!(%failure, "cannot tell which agents list tasks that do not run");
    }
    ops.registry.world.tasks.tell_of(recovered).await;
}

/// What is done beside the requests.
async fn maintain(ops: Arc<Ops>, stop: CancellationToken) {
    let store = &ops.store;
    if let Err(failure) = ops::trash::settle::all(&ops).await {
        tracing::warn!(%failure, "cannot look through the trash");
    }
    let trimmed = async { store.journal.trim(store.journal.ended().await?).await };
    if let Err(failure) = trimmed.await {
        tracing::warn!(%failure, "cannot trim the journal");
    }
    if let Err(failure) = store.journal.forget_keys(ops.clock.now()).await {
        tracing::warn!(%failure, "cannot forget old keys");
    }
    if let Err(failure) = store.catalog.forget_claims(ops.clock.now()).await {
        tracing::warn!(%failure, "cannot forget old messages of channels");
    }
    match store.catalog.forget_due().await {
        Ok(false) => {}
        Ok(true) => ops::session::purge::forget(&ops).await,
        Err(failure) => tracing::warn!(%failure, "cannot tell whether something is to be forgotten"),
    }
    for entry in ops.directory.all() {
        ops::scan::if_possible(&ops, &entry.facts).await;
    }
    memory::give_back(store);
    // After the scan: it finds what the stop wrote and did not come to list.
    if leftover::is_there(&ops.home) {
        tracing::info!("the last stop did not save everything");
        if save_all(&ops).await {
            leftover::clear(&ops.home);
        }
    }
    tokio::spawn(ops.registry.summaries.clone().fill_in());
    // After the scan, too: what it finds counts as used now.
    tokio::spawn(ops::session::expire::daily(ops.clone(), stop));
    if ops.config.durability == DurabilityMode::Interval {
        let mut interval = tokio::time::interval(ops.config.autosave_interval);
        loop {
            interval.tick().await;
            if let Err(failure) = store.judged(store.journal.flush().await) {
                tracing::error!(%failure, "the journal cannot be brought to the disk");
            }
        }
    }
}
