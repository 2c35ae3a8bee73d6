//! The operations: what is prepared, and what is repeated while `perf` takes samples.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use chorus_proto::methods::context::{Append, AppendParams, Restore, RestoreParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::bulk_data::{
    append_to_agents, create_agents, fill_context, text_of_kilobyte, time_save, wait_for_saves,
};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{median, time};
use chorus_tests::model_server::{BareClient, ModelServer};
use chorus_tests::process::cpu_time;
use chorus_tests::{Daemon, Home};

use crate::perf::{Recording, Sample};
use crate::stages::is_of_exit;

/// Messages of a context that is saved or restored.
const MESSAGES: usize = 10_000;

/// Agents of a home that is started, and contexts that expire together.
const AGENTS: usize = 10_000;
/// Agents with a context of some messages when a home is started.
const LIVE: usize = 2_000;
const LIVE_MESSAGES: usize = 50;

/// Clients that append at once, and appends of each in a round.
const CLIENTS: usize = 64;
const APPENDS_EACH: usize = 100;

/// Until everything is indexed.
const INDEXING: Duration = Duration::from_secs(120);

/// An operation that can be profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Append,
    /// Appends of many clients at once.
    Appends,
    Save,
    Restore,
    Status,
    Turn,
    Start,
    Expiry,
}

impl Operation {
    /// All, by name.
    pub const ALL: [(&str, Self); 8] = [
        ("append", Self::Append),
        ("appends", Self::Appends),
        ("save", Self::Save),
        ("restore", Self::Restore),
        ("status", Self::Status),
        ("turn", Self::Turn),
        ("start", Self::Start),
        ("expiry", Self::Expiry),
    ];

    /// Finds an operation by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, operation)| operation)
    }

    /// Number of repetitions.
    pub fn rounds(self) -> usize {
        match self {
            Self::Append => 5_000,
            Self::Appends => 20,
            Self::Save | Self::Restore => 40,
            Self::Status => 1_000,
            Self::Turn => 500,
            Self::Start => 21,
            Self::Expiry => AGENTS,
        }
    }
}

/// Times and samples of an operation.
#[derive(Debug)]
pub struct Measured {
    /// Median of its time on the clock, as its client sees it; of an expiry, the mean of the contexts.
    pub clock: Duration,
    /// Medians of the parts of that time that the machine needs without Chorus, with their names.
    pub floors: Vec<(&'static str, Duration)>,
    /// Processor time of the daemon for each, with that of threads that have ended.
    pub daemon: Duration,
    pub samples: Vec<Sample>,
}

/// Prepares and repeats `operation`.
pub fn measure(operation: Operation, home: &Home) -> Measured {
    match operation {
        Operation::Append => profile_append(home),
        Operation::Appends => profile_appends(home),
        Operation::Save | Operation::Restore => profile_session(operation, home),
        Operation::Status => profile_status(home),
        Operation::Turn => profile_turn(home),
        Operation::Start => profile_start(home),
        Operation::Expiry => profile_expiry(home),
    }
}

/// Repeats `work` without and then with `perf`, so that the times are not those of a program under observation.
fn repeat(
    operation: Operation,
    daemon: &Daemon,
    recording: &Recording,
    mut work: impl FnMut() -> Duration,
) -> Measured {
    let rounds = operation.rounds();
    for _ in 0..rounds.div_ceil(10) {
        work();
    }
    daemon.wait_until_calm(INDEXING);
    let before = cpu_time(daemon.pid);
    let times = (0..rounds).map(|_| work()).collect();
    // What is answered is indexed later.
    daemon.wait_until_calm(INDEXING);
    let daemon_time = (cpu_time(daemon.pid) - before) / u32::try_from(rounds).unwrap_or(1);
    let samples = recording.take(|| {
        (0..rounds).for_each(|_| _ = work());
        daemon.wait_until_calm(INDEXING);
    });
    Measured { clock: median(times), floors: Vec::new(), daemon: daemon_time, samples }
}

fn profile_append(home: &Home) -> Measured {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("a");
    let text = text_of_kilobyte();
    let recording = Recording::of_process(home, daemon.pid);
    let params = AppendParams { agent: Some("a".into()), text: Some(text.clone()), ..Default::default() };
    let measured = repeat(Operation::Append, &daemon, &recording, || {
        time(|| _ = client.call::<Append>(&params).expect("appended"))
    });
    Measured {
        floors: vec![
            ("write + fdatasync of the same bytes", time_synced_write(home.temp_dir(), text.as_bytes())),
            ("round trip of the same bytes through a socket", time_round_trip(text.as_bytes())),
        ],
        ..measured
    }
}

/// Rounds in which each of many clients appends; what is measured is one append of them.
fn profile_appends(home: &Home) -> Measured {
    let daemon = Daemon::start(home);
    let text = text_of_kilobyte();
    let mut clients: Vec<_> = (0..CLIENTS).map(|n| (daemon.client(), format!("agent-{n}"))).collect();
    for (client, agent) in &mut clients {
        client.init(agent);
    }
    let recording = Recording::of_process(home, daemon.pid);
    let measured = repeat(Operation::Appends, &daemon, &recording, || {
        time(|| {
            std::thread::scope(|scope| {
                for (client, agent) in &mut clients {
                    let text = &text;
                    scope.spawn(move || (0..APPENDS_EACH).for_each(|_| _ = client.append(agent, text)));
                }
            });
        })
    });
    let appends = u32::try_from(CLIENTS * APPENDS_EACH).unwrap_or(1);
    Measured { clock: measured.clock / appends, daemon: measured.daemon / appends, ..measured }
}

/// Median time of a plain write and sync.
fn time_synced_write(folder: &Path, bytes: &[u8]) -> Duration {
    let mut file = File::options().create(true).append(true).open(folder.join("floor.log")).expect("a file");
    let write = |_| {
        time(|| {
            file.write_all(bytes).expect("written");
            file.sync_data().expect("synced");
        })
    };
    median((0..1000).map(write).collect())
}

/// Median time of sending bytes to a thread that answers with a few.
fn time_round_trip(bytes: &[u8]) -> Duration {
    let (mut near, mut far) = UnixStream::pair().expect("sockets");
    let mut received = vec![0; bytes.len()];
    let echo = std::thread::spawn(move || {
        while far.read_exact(&mut received).is_ok() {
            far.write_all(&[0; 64]).expect("answered");
        }
    });
    let round = |_| {
        time(|| {
            near.write_all(bytes).expect("sent");
            near.read_exact(&mut [0; 64]).expect("an answer");
        })
    };
    let took = median((0..1000).map(round).collect());
    drop(near);
    echo.join().expect("the other side");
    took
}

fn profile_session(operation: Operation, home: &Home) -> Measured {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    fill_context(&mut client, "a", MESSAGES);
    let recording = Recording::of_process(home, daemon.pid);
    if operation == Operation::Save {
        return repeat(operation, &daemon, &recording, || time_save(&mut client, "a"));
    }
    let session = client.save("a", "to restore").header.id.to_string();
    let params = RestoreParams { agent: Some("a".into()), session, discard: true, ..Default::default() };
    repeat(operation, &daemon, &recording, || time(|| _ = client.call::<Restore>(&params).expect("restored")))
}

fn profile_status(home: &Home) -> Measured {
    let daemon = Daemon::start(home);
    daemon.client().init("a");
    daemon.client().append("a", "hello");
    let run = || {
        let mut command = home.command(home.bins.chorusctl);
        command.arg("status").stdin(Stdio::null()).stdout(Stdio::null());
        time(|| assert!(command.status().expect("it runs").success()))
    };
    let mut nothing = home.command("/bin/true");
    let empty = median((0..200).map(|_| time(|| _ = nothing.status().expect("it runs"))).collect());
    let recording = Recording::of_machine(home);
    let measured = repeat(Operation::Status, &daemon, &recording, run);
    let name = Path::new(home.bins.chorusctl).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The kernel keeps 15 bytes of a name.
    let is_client = |sample: &Sample| name.starts_with(&sample.thread) && sample.thread.len() >= name.len().min(15);
    let samples = measured.samples.into_iter().filter(is_client).collect();
    Measured { floors: vec![("a process that does nothing (/bin/true)", empty)], samples, ..measured }
}

fn profile_turn(home: &Home) -> Measured {
    let server = ModelServer::start();
    let daemon = Daemon::start_with(home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    server.anthropic().set_fallback(chorus_tests::model_server::Response::text(["Hello."]));
    let params = SendParams { agent: Some("a".into()), text: "Talk.".into(), ..Default::default() };
    let recording = Recording::of_process(home, daemon.pid);
    let mut bare = BareClient::connect(&server);
    let bare = median((0..200).map(|_| time(|| bare.request())).collect());
    let measured =
        repeat(Operation::Turn, &daemon, &recording, || time(|| _ = client.call::<Send>(&params).expect("a turn")));
    Measured { floors: vec![("the model's server, asked without Chorus", bare)], ..measured }
}

fn profile_start(home: &Home) -> Measured {
    create_agents(home, AGENTS);
    let daemon = Daemon::start(home);
    append_to_agents(&daemon, LIVE, LIVE_MESSAGES);
    daemon.kill9();
    // The time until the daemon is ready, its processor time until then, and its process.
    let start = || {
        let mut daemon = None;
        let took = time(|| daemon = Some(Daemon::start(home)));
        let daemon = daemon.expect("a daemon");
        let (pid, processor) = (daemon.pid, cpu_time(daemon.pid));
        daemon.kill9();
        (took, processor, pid)
    };
    start();
    let rounds = Operation::Start.rounds();
    let (times, processor): (Vec<_>, Vec<_>) = (0..rounds).map(|_| start()).map(|(took, cpu, _)| (took, cpu)).unzip();
    let mut samples = Recording::of_machine(home).take_some(|| (0..rounds).map(|_| start().2).collect());
    samples.retain(|sample| !is_of_exit(sample));
    let daemon = processor.iter().sum::<Duration>() / u32::try_from(rounds).unwrap_or(1);
    Measured { clock: median(times), floors: Vec::new(), daemon, samples }
}

fn profile_expiry(home: &Home) -> Measured {
    create_agents(home, AGENTS);
    // All contexts that have a message are due at the same time, four seconds after the start.
    let start = || {
        let daemon = Daemon::start_with(home, "[defaults]\nidle_timeout = \"1h\"\n");
        append_to_agents(&daemon, AGENTS, 1);
        daemon.kill9();
        rustix::fs::sync();
        Daemon::start_with(home, "[defaults]\nidle_timeout = \"4s\"\n")
    };
    let contexts = u32::try_from(AGENTS).unwrap_or(1);
    let daemon = start();
    let before = cpu_time(daemon.pid);
    let (first, done) = wait_for_saves(&mut daemon.client(), AGENTS);
    let (clock, processor) = ((done - first) / contexts, (cpu_time(daemon.pid) - before) / contexts);
    daemon.kill9();
    let daemon = start();
    let recording = Recording::of_process(home, daemon.pid);
    let samples = recording.take(|| _ = wait_for_saves(&mut daemon.client(), 2 * AGENTS));
    Measured { clock, floors: Vec::new(), daemon: processor, samples }
}
