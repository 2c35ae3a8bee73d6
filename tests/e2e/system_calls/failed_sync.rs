//! P4: a sync that fails is the end of trust: nothing is acknowledged after it, and the daemon ends.

use chorus_proto::methods::context::{Append, AppendParams, Clear, ClearParams, Save, SaveParams};
use chorus_proto::{CallError, Client};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::Rng;
use chorus_tests::strace::{Strace, is_permitted, threads, wait_until_quiet};
use chorus_tests::{Daemon, Home};

use super::home;
use super::state::{State, assert_catalog_fits_files, assert_databases_whole};
use super::{all, sample};

/// Syncs that are made to fail, counted in each thread.
const SYNCS: u32 = 50;

/// Number of the first request that is a save.
const FIRST_SAVE: u32 = 3;

/// The sentence that long messages repeat.
const FILLER: &str = "A message of a megabyte consists of lines. ";

/// As many of them unless all are asked for.
const SAMPLE: usize = 10;

/// What the agent must hold, and what it holds if the request that failed was carried out all the same.
#[derive(Debug, Clone, Default)]
struct Oracle {
    acked: State,
    under_way: State,
}

/// How a request failed.
struct Failure {
    /// Its number.
    request: u32,
    error: CallError,
}

/// Requests of an attempt. A sync fails long before, unless the thread whose sync would have failed has ended.
const MAX_REQUESTS: u32 = 400;

/// Attempts until a sync fails. On a busy machine the threads that strace has attached to may have ended.
const MAX_ATTEMPTS: usize = 10;

/// One request after the other until one fails; then a few more, none of which may be acknowledged. `None` if none fails.
fn work(client: &mut Client, acked: State) -> Option<(Oracle, Failure)> {
    let mut oracle = Oracle { acked, ..Oracle::default() };
    for n in 0..MAX_REQUESTS {
        let answer = step(client, n, &oracle.acked);
        match answer {
            (state, Ok(())) => oracle.acked = state,
            (state, Err(error)) => {
                oracle.under_way = state;
                for later in n + 1..n + 4 {
                    let (_, answer) = step(client, later, &oracle.acked);
                    assert!(answer.is_err(), "request {later} was acknowledged after request {n} failed");
                }
                return Some((oracle, Failure { request: n, error }));
            }
        }
    }
    None
}

/// Request `n`: mostly an append, now and then a save or a clear.
fn step(client: &mut Client, n: u32, before: &State) -> (State, Result<(), CallError>) {
    let agent = Some("a".to_owned());
    let mut after = before.clone();
    let answer = match n % 8 {
        FIRST_SAVE => {
            after = before.with_save();
            client.call::<Save>(&SaveParams { agent, ..Default::default() }).map(drop)
        }
        7 => {
            after.live.clear();
            client.call::<Clear>(&ClearParams { conversation: None, agent, save: false }).map(drop)
        }
        _ => {
            let text = format!("message {n}");
            after.live.push(text.clone());
            client.call::<Append>(&AppendParams { agent, text: Some(text), ..Default::default() }).map(drop)
        }
    };
    (after, answer)
}

/// The outcome of a sync that failed.
struct Outcome {
    /// The number of the request that failed.
    request: u32,
    /// True if it was said to be in doubt.
    is_in_doubt: bool,
}

/// Lets sync `number` of every thread fail, or only of those for blocking work.
fn fail_at(number: u32, blocking_only: bool) -> Outcome {
    fail_at_call("fsync,fdatasync", number, blocking_only, Vec::new())
}

/// The same for these system calls, once the agent has these messages.
fn fail_at_call(calls: &str, number: u32, blocking_only: bool, messages: Vec<String>) -> Outcome {
    let mut attempts = (0..MAX_ATTEMPTS).filter_map(|_| try_fail(calls, number, blocking_only, messages.clone()));
    attempts.next().expect("a sync fails")
}

/// `None` if none has failed, because the threads that are struck did nothing more.
fn try_fail(calls: &str, number: u32, blocking_only: bool, messages: Vec<String>) -> Option<Outcome> {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    messages.iter().for_each(|text| _ = client.append("a", text));
    wait_until_quiet(daemon.pid);
    let inject = format!("inject={calls}:error=EIO:when={number}");
    let struck: Vec<u32> = threads(daemon.pid)
        .into_iter()
        .filter(|(role, _)| !blocking_only || role == "blocking")
        .flat_map(|(_, threads)| threads)
        .collect();
    // One may have ended just now.
    let strace = Strace::attach(&home, &struck, &["-e", &format!("trace={calls}"), "-e", &inject])?;
    let (oracle, Failure { request, error }) = work(&mut client, State { live: messages, ..State::default() })?;
    let at = format!("sync {number}, answered with {error}");
    // A request that comes after the failure is certainly not kept, and is told so otherwise.
    let in_doubt = match &error {
        CallError::Rpc(error) => error.data.as_ref().and_then(|data| data.hint.as_ref()),
        _ => None,
    };
    let is_in_doubt =
        in_doubt.is_some_and(|hint| hint.contains("may have been saved") && hint.contains("same idempotency key"));
    let status = daemon.wait();
    assert!(status.code().is_some_and(|code| code != 0), "{at}: ended with {status}: {}", daemon.read_log());
    drop(strace);
    assert_restart(&home, &oracle, &at);
    Some(Outcome { request, is_in_doubt })
}

fn assert_restart(home: &Home, oracle: &Oracle, at: &str) {
    let daemon = Daemon::start(home);
    assert_catalog_fits_files(&daemon, home, "a");
    let found = State::of(&mut daemon.client(), "a");
    let allowed = [&oracle.acked, &oracle.under_way];
    assert!(allowed.contains(&&found), "{at}: found {}, {}", shorten(&found), shorten(&oracle));
    assert!(!daemon.read_log().contains("panicked"), "{at}: {}", daemon.read_log());
    assert!(daemon.terminate().success(), "{at}: the next stop");
    assert_databases_whole(home);
}

/// Shows a value without most of its long texts.
fn shorten(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").replace(FILLER, "…")
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_the_daemon_ends() {
    if !is_permitted(&home()) {
        return;
    }
    let numbers: Vec<u32> = (1..=SYNCS).collect();
    let most = if all() { numbers.len() } else { SAMPLE };
    let mut in_doubt = 0;
    for number in sample(&numbers, most, &mut Rng::new(4)) {
        in_doubt += u32::from(fail_at(number, false).is_in_doubt);
    }
    assert!(in_doubt > 0, "whoever asked when a sync failed does not know whether it was kept");
}

/// Syncs of session files and of their directory, which lie between those of the databases.
#[test]
fn a_failed_sync_of_a_session_file_ends_it_too() {
    if !is_permitted(&home()) {
        return;
    }
    for number in 1..=4 {
        fail_at(number, true);
    }
}

/// A large session file is synced while it is written, too: after 8 and 16 MiB.
#[test]
fn a_failed_sync_in_the_middle_of_a_session_file_ends_it_too() {
    if !is_permitted(&home()) {
        return;
    }
    let messages: Vec<String> = (0..18).map(|n| format!("{n} {}", FILLER.repeat((1 << 20) / FILLER.len()))).collect();
    for number in 1..=2 {
        // At its end it is synced by another system call.
        let outcome = fail_at_call("fdatasync", number, true, messages.clone());
        assert_eq!(outcome.request, FIRST_SAVE, "sync {number}");
    }
}

/// With `durability = "interval"` the sync comes after the answer; what follows it must not be trusted any more.
#[test]
fn a_sync_that_fails_in_the_background_ends_it_too() {
    let home = home();
    if !is_permitted(&home) {
        return;
    }
    let mut daemon = Daemon::start_with(&home, "durability = \"interval\"\nautosave_interval = \"300ms\"\n");
    let mut client = daemon.client();
    client.init("a");
    let all: Vec<u32> = threads(daemon.pid).into_values().flatten().collect();
    let calls = ["-f", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO"];
    let _strace = Strace::attach(&home, &all, &calls).expect("strace attaches");
    let append = AppendParams { agent: Some("a".into()), text: Some("one".into()), ..Default::default() };
    // Answered or not, but not for long.
    let _ = client.call::<Append>(&append);
    let status = daemon.wait();
    assert!(status.code().is_some_and(|code| code != 0), "ended with {status}: {}", daemon.read_log());
}
