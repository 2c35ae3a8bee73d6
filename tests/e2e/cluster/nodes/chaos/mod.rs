//! Nodes, connections, the database and the bucket fail while clients append, run turns, save and restore through all nodes.
//!
//! Each acknowledged message is there once, and those of one client are in the order of their acknowledgements. Each save has
//! what the context had. Each message in Discord is answered once. `CHORUS_CLUSTER_SECONDS` says how long faults last, `CHORUS_CLUSTER_SEED` which come.

mod clients;
mod discord;
mod faults;
mod oracle;
mod takeovers;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::ClientExt;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::http_fault_proxy::HttpFaultProxy;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::postgres::{Database, Server};
use chorus_tests::rng::{Rng, rounds_from_env, seed_from_env};
use chorus_tests::s3_server::TestBucket;
use chorus_tests::{Daemon, Home, skip, wait};
use tokio::runtime::Handle;

use super::{Cluster, change_bucket, start_all};

/// Seconds of faults; `CHORUS_CLUSTER_SECONDS` overrides it.
const SECONDS: u64 = 60;

/// From so many seconds on, more agents and clients take part, and faults last longer.
const LONG: u64 = 600;

/// Time in which a request is acknowledged through some node, whatever happens.
const PATIENCE: Duration = Duration::from_secs(180);

/// Time in which each request is acknowledged once nothing fails any more, with room for a busy machine.
const SETTLED: Duration = Duration::from_secs(45);

/// Requests that take longer are printed.
const SLOW: Duration = Duration::from_secs(12);

const NAMES: [&str; 3] = ["a", "b", "c"];

/// The proxies between a node and the others.
struct Proxies {
    database: FaultProxy,
    peers: FaultProxy,
    bucket: HttpFaultProxy,
}

/// How often something has happened.
#[derive(Debug, Default)]
struct Counts {
    appends: AtomicU64,
    turns: AtomicU64,
    interrupted: AtomicU64,
    saves: AtomicU64,
    restores: AtomicU64,
    failures: AtomicU64,
}

/// Three nodes, and everything that they use.
struct Chaos {
    homes: [Home; 3],
    proxies: [Proxies; 3],
    server: Arc<Server>,
    database: Database,
    models: ModelServer,
    /// The bot of all nodes.
    _discord: Option<FakeDiscord>,
    /// Agents that all clients append to.
    shared: Vec<String>,
    is_long: bool,
    over: AtomicBool,
    counts: Counts,
    /// Messages to shared agents that were acknowledged.
    acknowledged: Mutex<Vec<(String, String)>>,
    runtime: Handle,
    _cluster: Cluster,
}

fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or(0)
}

/// The texts of the test in any other text, such as `m3.17`.
fn texts_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').filter(|word| {
        let numbers = word.strip_prefix('m').and_then(|word| word.split_once('.'));
        numbers.is_some_and(|(writer, number)| writer.parse::<u64>().is_ok() && number.parse::<u64>().is_ok())
    })
}

impl Chaos {
    /// Prepares them; `None` if a program is not installed.
    async fn create(is_long: bool, discord: Option<FakeDiscord>) -> Option<Self> {
        let bucket = TestBucket::create()?;
        let Some(server) = Server::start().expect("a server") else {
            skip("PostgreSQL is not installed here");
            return None;
        };
        let database = Database::create_on(server.clone()).await.expect("a database");
        let cluster = Cluster::on(database.url());
        let models = ModelServer::start();
        models.anthropic().set_fallback(Response::text(["A summary."]));
        models.on_turn_request(|body| {
            let last = body["messages"].as_array().and_then(|messages| messages.last()).map(ToString::to_string);
            let text = last.as_deref().and_then(|last| texts_in(last).last()).unwrap_or("nothing");
            Response::text([format!("re {text}")])
        });
        let mut nodes = Vec::new();
        for name in NAMES {
            let to_database = FaultProxy::start(server.port()).await.expect("a proxy");
            // The checks after a long run take more than the half hour of the default.
            let bot = discord.as_ref().map(FakeDiscord::config_toml).unwrap_or_default();
            let config = format!("{}\n[defaults]\nidle_timeout = \"12h\"\n{bot}", models.config_toml());
            let home = cluster.node_at(name, &database.url_at(to_database.port()), &config);
            let to_bucket = HttpFaultProxy::start(bucket.port).await.expect("a proxy");
            let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
            let port = config.split("listen = \"127.0.0.1:").nth(1).and_then(|rest| rest.split('"').next());
            let port: u16 = port.and_then(|port| port.parse().ok()).expect("the port of the node");
            let peers = FaultProxy::start(port).await.expect("a proxy");
            let advertised = format!("advertise = \"127.0.0.1:{}\"", peers.port());
            home.write_config(&config.replace(&format!("advertise = \"127.0.0.1:{port}\""), &advertised));
            change_bucket(&home, &bucket.name, &to_bucket.endpoint());
            nodes.push((home, Proxies { database: to_database, peers, bucket: to_bucket }));
        }
        let (homes, proxies): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        let agents = if is_long { 100 } else { 12 };
        Some(Self {
            homes: homes.try_into().expect("three homes"),
            proxies: proxies.try_into().unwrap_or_else(|_| unreachable!("three nodes")),
            server,
            database,
            models,
            _discord: discord,
            shared: (0..agents).map(|n| format!("shared-{n}")).collect(),
            is_long,
            over: AtomicBool::new(false),
            counts: Counts::default(),
            acknowledged: Mutex::default(),
            runtime: Handle::current(),
            _cluster: cluster,
        })
    }

    /// Waits in a thread of a client.
    fn pause(&self, milliseconds: u64) {
        self.runtime.block_on(wait::pause(Duration::from_millis(milliseconds)));
    }

    /// Sends a request through any of these nodes until it is answered. The second value is true if an attempt before may have
    /// been carried out, or may be carried out later.
    #[expect(clippy::print_stdout, reason = "what took long belongs to a failure")]
    fn until_answered<T>(
        &self,
        what: &str,
        (rng, nodes): (&mut Rng, &[usize]),
        mut call: impl FnMut(&mut Client) -> Result<T, CallError>,
    ) -> (T, bool) {
        let (begun, mut is_uncertain, mut failures) = (Instant::now(), false, Vec::<(f32, String)>::new());
        loop {
            let node = nodes[pick(rng, nodes.len())];
            let failure = match Client::connect(&self.homes[node].socket()) {
                Ok(mut client) => {
                    client.set_timeout(Some(Duration::from_secs(20))).expect("a time-out");
                    match call(&mut client) {
                        Ok(answer) => {
                            if begun.elapsed() > SLOW {
                                failures.dedup_by_key(|(_, failure)| failure.clone());
                                println!("{what} took {:.1} s: {failures:#?}", begun.elapsed().as_secs_f32());
                            }
                            return (answer, is_uncertain);
                        }
                        Err(failure) => {
                            is_uncertain |=
                                !matches!(&failure, CallError::Rpc(error) if error.kind() == ErrorKind::Busy);
                            failure.to_string()
                        }
                    }
                }
                Err(failure) => failure.to_string(),
            };
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
            failures.push((begun.elapsed().as_secs_f32(), format!("{}: {failure}", NAMES[node])));
            assert!(begun.elapsed() < PATIENCE, "{what} was never answered, at last by node {node}: {failure}");
            self.pause(50);
        }
    }
}

/// Lets nodes fail for some seconds, and heals everything. Returns what happened.
async fn put_faults(
    chaos: &Arc<Chaos>,
    mut daemons: [Option<Daemon>; 3],
    (seconds, seed): (u64, u64),
) -> ([Option<Daemon>; 3], String, takeovers::Takeovers) {
    let (shared, until) = (chaos.clone(), Instant::now() + Duration::from_secs(seconds));
    let driver = std::thread::spawn(move || {
        let mut driver = faults::Driver::new(&shared, &mut daemons, seed);
        driver.run(until);
        let (report, takeovers) = (driver.report(), driver.takeovers);
        (daemons, report, takeovers)
    });
    chorus_runtime::spawn_blocking(move || driver.join().expect("the faults")).await.expect("a thread")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn failures_of_everything_lose_and_double_nothing() {
    let seconds = rounds_from_env("CHORUS_CLUSTER_SECONDS", SECONDS);
    let seed = seed_from_env("CHORUS_CLUSTER_SEED", 27);
    println!("{seconds} s with the seed {seed}");
    let Some(chaos) = Chaos::create(seconds >= LONG, None).await else { return };
    let chaos = Arc::new(chaos);
    let daemons = start_all(&chaos.homes).map(Some);
    let mut client = daemons[0].as_ref().expect("a daemon").client();
    for (daemon, names) in daemons.iter().flatten().zip(chaos.shared.chunks(chaos.shared.len().div_ceil(3))) {
        let mut client = daemon.client();
        names.iter().for_each(|name| ClientExt::init(&mut client, name));
    }
    let clients: Vec<_> = (0..if chaos.is_long { 16 } else { 6 })
        .map(|writer| {
            let mut worker = clients::Worker::create(&chaos, seed, writer, &mut client);
            std::thread::spawn(move || {
                worker.run();
                worker.agents
            })
        })
        .collect();
    drop(client);
    let (mut daemons, report, mut takeovers) = put_faults(&chaos, daemons, (seconds, seed)).await;
    let healed = Instant::now();
    chaos.over.store(true, Ordering::Relaxed);
    let owned: Vec<_> = chorus_runtime::spawn_blocking(move || {
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect::<Vec<_>>()
    })
    .await
    .expect("a thread");
    let settled = healed.elapsed();
    println!("the last request of each client was answered {} ms after the last fault", settled.as_millis());
    daemons.iter_mut().flatten().for_each(Daemon::assert_alive);
    let counts = &chaos.counts;
    println!("faults: {report}");
    println!("{counts:?}; turns asked of the model: {}", chaos.models.forget_requests());
    println!("{}", takeovers.describe());
    let chaos_of_check = chaos.clone();
    let exact =
        chorus_runtime::spawn_blocking(move || oracle::check(&chaos_of_check, &owned)).await.expect("the checks");
    println!("{exact}");
    assert!(counts.appends.load(Ordering::Relaxed) > 20, "{counts:?}");
    assert!(settled < SETTLED, "a request was answered {settled:?} after the last fault");
    drop(daemons);
}
