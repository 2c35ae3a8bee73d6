//! P2: `kill -9` at each system call of a verb that changes a file below the home.

use std::os::unix::process::ExitStatusExt as _;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::is_running;
use chorus_tests::rng::Rng;
use chorus_tests::strace::{
    CallPoint, FILE_CHANGING_CALLS, Strace, call_points, is_permitted, threads, wait_until_quiet,
};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::operations::{Verb, copy, prepared};
use super::state::{GENERATED, State, assert_catalog_fits_files, assert_databases_whole};
use super::{all, sample};

/// Calls struck a verb unless all are asked for.
const SAMPLE: usize = 8;

/// Of a verb with thousands of writes, all are too many.
const MOST: usize = 80;

/// What a kill at a point came to.
enum Outcome {
    Killed,
    /// Threads share the work otherwise from run to run; the verb ended before the point was reached.
    NotReached,
}

/// Counts the points of `verb`.
fn count(home: &Home, verb: Verb) -> Vec<CallPoint> {
    let mut daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.set_timeout(Some(DEADLINE)).expect("a time-out");
    wait_until_quiet(daemon.pid);
    let threads = threads(daemon.pid);
    let trace = format!("trace={FILE_CHANGING_CALLS}");
    // Each thread by name, so that none is missed because it was attached to a moment later.
    let all: Vec<u32> = threads.values().flatten().copied().collect();
    let mut strace = Strace::attach(home, &all, &["-f", "-e", &trace]).expect("strace attaches");
    assert!(verb.ask(&mut daemon, &mut client), "{verb:?} was not done");
    // What goes on after the answer, such as trimming the journal, is counted too.
    wait_until_quiet(daemon.pid);
    daemon.kill9();
    strace.wait_for_exit();
    let home = std::fs::canonicalize(&home.path).expect("the home");
    call_points(&strace.read_output(), &threads, &home).into_iter().collect()
}

/// Kills the daemon at `point` of `verb`, starts it again, and compares.
fn kill_at(template: &Home, verb: Verb, point: &CallPoint, before: &State, bystander: &State) -> Outcome {
    let home = copy(template);
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until_quiet(daemon.pid);
    let threads = threads(daemon.pid);
    let Some(struck) = threads.get(&point.role) else { return Outcome::NotReached };
    let trace = format!("trace={}", point.call);
    let inject = format!("inject={}:signal=KILL:when={}", point.call, point.number);
    let strace = Strace::attach(&home, struck, &["-e", &trace, "-e", &inject]).expect("strace attaches");
    let acked = verb.ask(&mut daemon, &mut client);
    wait_until_quiet(daemon.pid);
    if is_running(daemon.pid) {
        return Outcome::NotReached;
    }
    let ended = daemon.wait();
    drop(strace);
    if ended.signal() != Some(9) {
        return Outcome::NotReached;
    }

    let at = format!("{verb:?} killed at {point:?}");
    let again = Daemon::start(&home);
    let mut client = again.client();
    // A stop that was cut short is made good by the next start.
    let cut_short = home.path.join("run/stopping");
    wait_until("what the stop left to be saved", DEADLINE, || (!cut_short.exists()).then_some(()));
    assert_catalog_fits_files(&again, &home, "a");
    let found = State::of(&mut client, "a");
    let mut allowed = verb.states(before);
    if acked {
        // The kill came after the answer.
        allowed.drain(..allowed.len() - 1);
    }
    assert!(allowed.contains(&found), "{at}: {} live, {} saved", found.live.len(), found.saved.len());
    assert_eq!(State::of(&mut client, "b"), *bystander, "{at}: another agent");
    // It works, and an orderly stop and start lose and double nothing, with or without a message in between.
    let mut live = found.live;
    if point.number.is_multiple_of(2) {
        client.append("a", "afterwards");
        live.push("afterwards".into());
    }
    assert!(again.terminate().success(), "{at}: the next stop");
    assert_databases_whole(&home);
    let last = Daemon::start(&home);
    let end = State::of(&mut last.client(), "a");
    assert_eq!(end.live, live, "{at}: after the next stop");
    // The words that a context opens with are no conversation.
    let said = live.iter().any(|text| text != GENERATED);
    assert!(!said || end.saved.contains(&live), "{at}: the stop did not save");
    assert!(end.saved.starts_with(&found.saved) && end.saved.len() <= found.saved.len() + 1, "{at}: {end:?}");
    let distinct: std::collections::BTreeSet<_> = end.saved.iter().collect();
    assert_eq!(distinct.len(), end.saved.len(), "{at}: a session was saved twice");
    assert!(!last.read_log().contains("panicked"), "{at}: {}", last.read_log());
    Outcome::Killed
}

/// Kills at `point`, or where commits fall together and there are fewer such calls than were counted, at the last one.
fn reached(template: &Home, verb: Verb, point: &CallPoint, before: &State, bystander: &State) -> bool {
    let mut point = point.clone();
    for attempt in 1..=6 {
        if matches!(kill_at(template, verb, &point, before, bystander), Outcome::Killed) {
            return true;
        }
        if attempt % 2 == 0 && point.number > 1 {
            point.number -= 1;
        }
    }
    false
}

fn strike(verbs: &[Verb]) {
    let (template, before, bystander) = prepared();
    if !is_permitted(&template) {
        return;
    }
    let mut rng = Rng::new(2);
    for verb in verbs {
        let points = count(&copy(&template), *verb);
        assert!(!points.is_empty(), "{verb:?} changes no file");
        let chosen = sample(&points, if all() { MOST } else { SAMPLE }, &mut rng);
        report(&format!("{verb:?}: {} calls, {} struck: {:?}", points.len(), chosen.len(), kinds(&points)));
        // Threads share the work otherwise than when it was counted: another call takes the place of one that was not reached.
        let others = points.iter().filter(|point| !chosen.contains(point));
        let (mut killed, mut missed) = (0, Vec::new());
        for point in chosen.iter().chain(others) {
            if killed == chosen.len() || missed.len() > chosen.len() {
                break;
            }
            if reached(&template, *verb, point, &before, &bystander) {
                killed += 1;
            } else {
                missed.push(point.clone());
            }
        }
        report(&format!("{verb:?}: {killed} kills, 0 violations, not reached: {missed:?}"));
        assert!(killed * 2 >= chosen.len(), "{verb:?}: {killed} kills, too many calls were not reached: {missed:?}");
    }
}

/// How many calls there are of each kind.
fn kinds(points: &[CallPoint]) -> std::collections::BTreeMap<&str, usize> {
    let mut kinds = std::collections::BTreeMap::new();
    for point in points {
        *kinds.entry(&*point.call).or_default() += 1;
    }
    kinds
}

#[expect(clippy::print_stderr, reason = "the numbers are what a full run is for")]
fn report(line: &str) {
    eprintln!("{line}");
}

#[test]
fn a_kill_at_any_call_of_an_append_a_clear_or_a_restore_loses_and_doubles_nothing() {
    strike(&[Verb::Append, Verb::LargeAppend, Verb::Clear, Verb::Restore]);
}

#[test]
fn a_kill_at_any_call_of_a_save_loses_and_doubles_nothing() {
    strike(&[Verb::Save, Verb::SaveAndClear]);
}

#[test]
fn a_kill_at_any_call_of_a_resume_or_a_compaction_loses_and_doubles_nothing() {
    strike(&[Verb::Resume, Verb::Compact]);
}

#[test]
fn a_kill_at_any_call_of_a_branch_or_a_merge_loses_and_doubles_nothing() {
    strike(&[Verb::Branch, Verb::Merge]);
}

#[test]
fn a_kill_at_any_call_of_a_shutdown_loses_and_doubles_nothing() {
    strike(&[Verb::Shutdown]);
}
