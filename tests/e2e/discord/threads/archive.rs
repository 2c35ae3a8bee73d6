//! A thread that is archived is saved and closed, and comes back when it is opened.

use std::fs;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::super::channels::ChannelFixture;
use super::{ThreadFixture, answer_to, answers};
use crate::sandbox::PROFILES;
use crate::tools::git::git;

#[test]
fn an_archived_thread_is_saved_and_closed_and_goes_on_when_it_is_opened() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    threads.talk(&thread, "Our colour?", "Blue.");
    let posts = thread.messages().len();
    thread.archive();
    let closed = threads.closed(&thread);
    assert!(closed.last_session.is_some(), "{closed:?}");
    threads.settle();
    assert!(thread.is_archived() && thread.messages().len() == posts, "a post would have opened it");
    thread.unarchive();
    threads.says(&thread, &["Our colour?", "Blue."]);
    threads.talk(&thread, "Which was it?", "Blue, as I said.");
    assert!(threads.requests().last().is_some_and(|request| request.contains("Our colour?")));
    // A message opens it as well.
    thread.archive();
    threads.closed(&thread);
    threads.talk(&thread, "And now?", "Still blue.");
    let texts = ["Our colour?", "Blue.", "Which was it?", "Blue, as I said.", "And now?", "Still blue."];
    assert_eq!(threads.texts(&thread), texts);
    assert_eq!(threads.main_texts(), ["Is that all?", "Settled."]);
}

#[test]
fn a_thread_that_is_archived_while_the_daemon_is_down_is_closed_at_the_start() {
    let mut threads = ThreadFixture::new();
    let (quiet, written) = (threads.thread("quiet"), threads.thread("written"));
    threads.talk(&quiet, "Our colour?", "Blue.");
    threads.talk(&written, "Our number?", "Seven.");
    threads.fixture.kill();
    threads.fixture.discord.forget_sessions();
    quiet.archive();
    written.archive();
    let posts = quiet.messages().len();
    threads.say("Seven, still.");
    let asked = written.say(&threads.mara, "Which was it?");
    threads.fixture.start();
    assert_eq!(answer_to(&written, asked).content, "Seven, still.");
    assert_eq!(threads.texts(&written), ["Our number?", "Seven.", "Which was it?", "Seven, still."]);
    threads.closed(&quiet);
    threads.settle();
    assert!(quiet.is_archived() && quiet.messages().len() == posts, "nothing is told there");
    threads.fixture.stop();
    threads.fixture.start();
    threads.settle();
    assert!(quiet.is_archived() && quiet.messages().len() == posts, "nor of a stop or a start");
    threads.talk(&quiet, "Which was it?", "Blue.");
    assert_eq!(threads.texts(&quiet), ["Our colour?", "Blue.", "Which was it?", "Blue."]);
}

#[test]
fn a_git_worktree_that_had_to_stay_is_removed_later() {
    let mut threads = ThreadFixture::of(ChannelFixture::with("", PROFILES, ""));
    for (key, value) in [("permissions", "any"), ("workspace", "worktree")] {
        let params = ConfigParams { name: "maps".into(), key: Some(key.into()), value: Some(value.into()) };
        threads.fixture.client().call::<Config>(&params).expect("agent.config");
    }
    let thread = threads.thread("colours");
    let run = |threads: &ThreadFixture, params: serde_json::Value| {
        threads.answer(Response::tool_call("c1", "bash", &params));
        threads.talk(&thread, "Our colour?", "Blue.");
    };
    let worktrees = threads.fixture.home.agent_dir("maps").join("worktrees");
    let count = || fs::read_dir(&worktrees).map_or(0, Iterator::count);
    let wait_until_kept = |threads: &ThreadFixture, why: &str| {
        let log = || threads.fixture.daemon.as_ref().expect("a daemon").read_log();
        let is_kept = |line: &str| line.contains("a worktree stays") && line.contains(why);
        wait_until("the worktree to be kept", DEADLINE, || log().lines().any(is_kept).then_some(()));
        assert_eq!(count(), 1);
    };
    // As long as a task uses it.
    run(&threads, json!({"command": "sleep 600", "background": true}));
    thread.archive();
    wait_until_kept(&threads, "background task");
    chorusctl(&threads.fixture.home, ["--agent", "maps", "tasks", "stop", "t1"]).expect_success();
    wait_until("the worktree to be removed", DEADLINE, || (count() == 0).then_some(()));
    // After an error, with the next connection; as after a crash before it was removed.
    thread.unarchive();
    run(
        &threads,
        json!({"command": "git init -q inner; git -C inner -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"}),
    );
    thread.archive();
    wait_until_kept(&threads, "nested repository");
    let dir = fs::read_dir(&worktrees).expect("a directory").flatten().next().expect("a worktree").path();
    git(&dir, &["rm", "-q", "--cached", "inner"]);
    fs::remove_dir_all(dir.join("inner")).expect("removed");
    threads.fixture.stop();
    assert_eq!(count(), 1);
    threads.fixture.discord.forget_sessions();
    threads.fixture.start();
    wait_until("the worktree to be removed", DEADLINE, || (count() == 0).then_some(()));
}

#[test]
fn what_was_written_before_a_thread_was_archived_while_the_daemon_was_down_is_answered() {
    for forgotten in [false, true] {
        let mut threads = ThreadFixture::new();
        let (open, closed) = (threads.thread("open"), threads.thread("closed"));
        threads.talk(&open, "zero", "Zero.");
        threads.talk(&closed, "null", "Null.");
        closed.archive();
        threads.closed(&closed);
        threads.fixture.stop();
        if forgotten {
            threads.fixture.discord.forget_sessions();
        }
        threads.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
        let new = threads.thread("new");
        let asked = [&open, &closed, &new].map(|thread| thread.say(&threads.mara, "Are you there?"));
        [&open, &closed, &new].iter().for_each(|thread| thread.archive());
        threads.fixture.start();
        for (thread, message) in [&open, &closed, &new].into_iter().zip(asked) {
            assert_eq!(answer_to(thread, message).content, "Yes.");
        }
        // It may have been closed for a moment, until Chorus learns that its answer opened the thread.
        threads.says(&open, &["zero", "Zero.", "Are you there?", "Yes."]);
        threads.says(&closed, &["null", "Null.", "Are you there?", "Yes."]);
        threads.says(&new, &["Are you there?", "Yes."]);
        assert_eq!((answers(&open).len(), answers(&closed).len(), answers(&new).len()), (2, 2, 1));
    }
}

#[test]
fn a_thread_that_is_archived_while_a_turn_runs_gets_its_answer_and_stays_open() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    threads.answer(Response::text(["Blue."]).gate("go"));
    let asked = thread.say(&threads.mara, "Our colour?");
    threads.fixture.server.wait_for_gate("go");
    thread.archive();
    threads.settle();
    threads.fixture.server.open_gate("go");
    assert_eq!(answer_to(&thread, asked).content, "Blue.");
    // Discord opens a thread in which something is posted.
    wait_until("the thread to be open", DEADLINE, || (!thread.is_archived()).then_some(()));
    threads.talk(&thread, "Sure?", "Yes.");
    assert_eq!(threads.texts(&thread), ["Our colour?", "Blue.", "Sure?", "Yes."]);
    assert_eq!(answers(&thread).len(), 2);
}
