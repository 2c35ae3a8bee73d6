//! Faults, one after the other, in an order that the seed decides.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::http_fault_proxy::HttpFault;
use chorus_tests::rng::Rng;
use chorus_tests::{Daemon, process};
use rustix::process::Signal;

use super::takeovers::{self, Takeovers};
use super::{Chaos, NAMES, pick};

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    /// Neither the database nor another node reaches it.
    CutOff,
    Stop,
    Pause,
    Database(Cable),
    Peers(Cable),
    Bucket,
    RestartServer(&'static str),
    ResetConnections,
}

/// The kinds of faults of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cable {
    Silent,
    LosesRequests,
    LosesAnswers,
    Slow,
    Cut,
}

/// Each kind once, some twice.
const DECK: [Fault; 17] = [
    Fault::Kill,
    Fault::Kill,
    Fault::CutOff,
    Fault::Stop,
    Fault::Pause,
    Fault::Database(Cable::Silent),
    Fault::Database(Cable::LosesRequests),
    Fault::Database(Cable::LosesAnswers),
    Fault::Database(Cable::Slow),
    Fault::Database(Cable::Cut),
    Fault::Peers(Cable::Silent),
    Fault::Peers(Cable::LosesAnswers),
    Fault::Peers(Cable::Slow),
    Fault::Bucket,
    Fault::RestartServer("fast"),
    Fault::RestartServer("immediate"),
    Fault::ResetConnections,
];

/// Puts faults into the nodes.
pub(super) struct Driver<'a> {
    chaos: &'a Arc<Chaos>,
    daemons: &'a mut [Option<Daemon>; 3],
    rng: Rng,
    done: Vec<Fault>,
    pub(super) takeovers: Takeovers,
}

impl<'a> Driver<'a> {
    pub(super) fn new(chaos: &'a Arc<Chaos>, daemons: &'a mut [Option<Daemon>; 3], seed: u64) -> Self {
        Self { chaos, daemons, rng: Rng::new(seed), done: Vec::new(), takeovers: Takeovers::default() }
    }

    /// Puts faults until the time is over, and heals everything.
    #[expect(clippy::print_stdout, reason = "what happened belongs to a failure")]
    pub(super) fn run(&mut self, until: Instant) {
        let (begun, mut deck) = (Instant::now(), Vec::new());
        // A short run has those of which times are measured, and the one that makes saves slow.
        let mut first = [Fault::CutOff, Fault::Kill, Fault::Bucket].into_iter();
        while Instant::now() < until {
            if deck.is_empty() {
                deck.extend(DECK);
                self.chaos.models.forget_requests();
            }
            let fault = first.next().unwrap_or_else(|| deck.swap_remove(pick(&mut self.rng, deck.len())));
            let victim = pick(&mut self.rng, 3);
            println!("{:6.1} s: {fault:?} of {}", begun.elapsed().as_secs_f32(), NAMES[victim]);
            self.put(fault, victim);
            self.done.push(fault);
            self.expect_alive();
            self.chaos.pause(200 + self.rng.below(800));
        }
    }

    /// How often each fault was there.
    pub(super) fn report(&self) -> String {
        let mut report = format!("{}", self.done.len());
        let mut kinds = DECK.to_vec();
        kinds.dedup();
        for kind in kinds {
            let count = self.done.iter().filter(|done| **done == kind).count();
            let _ = write!(report, ", {kind:?} {count}");
        }
        report
    }

    /// No node has ended by itself.
    fn expect_alive(&self) {
        for (daemon, home) in self.daemons.iter().flatten().zip(&self.chaos.homes) {
            assert!(process::is_running(daemon.pid), "{}: {}", home.path.display(), daemon.read_log());
        }
    }

    /// A time up to which something lasts, in milliseconds; longer in the long form.
    fn pause_up_to(&mut self, short: u64, long: u64) {
        let time = self.rng.below(if self.chaos.is_long { long } else { short });
        self.chaos.pause(time);
    }

    fn put(&mut self, fault: Fault, victim: usize) {
        match fault {
            Fault::Kill => self.kill(victim),
            Fault::CutOff => self.cut_off(victim),
            Fault::Stop => {
                let stopped = self.daemons[victim].take().expect("a daemon").terminate();
                assert!(stopped.success(), "{stopped}");
                self.start(victim);
            }
            Fault::Pause => {
                let pid = self.daemons[victim].as_ref().expect("a daemon").pid;
                process::signal(pid, Signal::STOP);
                if self.chaos.is_long && self.rng.below(2) == 0 {
                    self.chaos.pause(30_000);
                } else {
                    self.chaos.pause(if self.rng.below(2) == 0 { 10_000 } else { 2_000 });
                    self.pause_up_to(2_000, 20_000);
                }
                process::signal(pid, Signal::CONT);
            }
            Fault::Database(cable) => self.put_cable(cable, |chaos| &chaos.proxies[victim].database),
            Fault::Peers(cable) => self.put_cable(cable, |chaos| &chaos.proxies[victim].peers),
            Fault::Bucket => {
                let faults = [
                    HttpFault::Status(500),
                    HttpFault::SlowDown(1),
                    HttpFault::LoseAnswer,
                    HttpFault::HalfBody,
                    HttpFault::Silence,
                ];
                for _ in 0..20 {
                    let method = if self.rng.below(3) == 0 { "GET" } else { "PUT" };
                    let fault = faults[pick(&mut self.rng, faults.len())];
                    self.chaos.proxies.iter().for_each(|node| node.bucket.fail(method, &[fault]));
                }
                self.pause_up_to(4_000, 12_000);
                self.chaos.proxies.iter().for_each(|node| node.bucket.heal());
            }
            Fault::RestartServer(mode) => {
                self.chaos.server.control(&["stop", "-m", mode]).expect("the server stops");
                self.pause_up_to(1_000, 8_000);
                self.chaos.server.control(&["start"]).expect("the server starts");
            }
            Fault::ResetConnections => {
                let chaos = self.chaos.clone();
                self.chaos.runtime.block_on(async move {
                    let client = chaos.database.connect().await.expect("a connection");
                    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                               WHERE pid <> pg_backend_pid() AND datname = current_database()";
                    client.batch_execute(sql).await.expect("connections to end");
                });
            }
        }
    }

    fn start(&mut self, node: usize) {
        self.daemons[node] = Some(Daemon::start(&self.chaos.homes[node]));
    }

    /// Kills a node, and asks the others for some of its agents.
    fn kill(&mut self, victim: usize) {
        let others = [(victim + 1) % 3, (victim + 2) % 3];
        let agents = takeovers::agents_of(self.chaos, victim, others[0]);
        self.daemons[victim].take().expect("a daemon").kill9();
        if self.rng.below(4) == 0 {
            // It is back before another may take anything over.
            self.pause_up_to(1_000, 4_000);
        } else {
            let kill = (self.done.len() as u64, Instant::now());
            let times = takeovers::measure(self.chaos, agents, others, kill);
            self.takeovers.killed.extend(times);
            self.pause_up_to(1_000, 8_000);
        }
        self.start(victim);
    }

    /// Cuts the cables of a node, and asks the others for some of its agents.
    fn cut_off(&mut self, victim: usize) {
        let others = [(victim + 1) % 3, (victim + 2) % 3];
        let agents = takeovers::agents_of(self.chaos, victim, others[0]);
        let chaos = self.chaos.clone();
        let cables = [&chaos.proxies[victim].database, &chaos.proxies[victim].peers];
        cables.iter().for_each(|cable| cable.fall_silent());
        let cut = (self.done.len() as u64, Instant::now());
        let times = takeovers::measure(self.chaos, agents, others, cut);
        self.takeovers.cut_off.extend(times);
        self.pause_up_to(1_000, 8_000);
        cables.iter().for_each(|cable| cable.heal());
    }

    fn put_cable(&mut self, cable: Cable, proxy: impl Fn(&Chaos) -> &FaultProxy) {
        let chaos = self.chaos.clone();
        let proxy = proxy(&chaos);
        match cable {
            Cable::Silent => proxy.fall_silent(),
            Cable::LosesRequests => proxy.lose_requests(),
            Cable::LosesAnswers => proxy.lose_answers(),
            Cable::Slow => proxy.delay(Duration::from_millis(20 + self.rng.below(200))),
            Cable::Cut => {
                for _ in 0..10 {
                    let bytes = i64::try_from(self.rng.below(4_000)).unwrap_or(0);
                    if self.rng.below(2) == 0 {
                        proxy.cut_after_answer_bytes(bytes);
                    } else {
                        proxy.cut_after_request_bytes(bytes);
                    }
                    self.chaos.pause(self.rng.clone().below(300));
                }
            }
        }
        if cable != Cable::Cut {
            // Some are longer than a heartbeat may be old.
            self.pause_up_to(4_000, 15_000);
            if self.rng.below(3) == 0 {
                self.chaos.pause(8_500);
            }
        }
        proxy.heal();
    }
}
