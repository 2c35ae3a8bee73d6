//! A daemon of a release whose agents had one conversation refuses the field `conversation`.

use chorus_tests::Home;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::fake_daemon::start_fake_daemon_with;
use serde_json::json;

use crate::home;
use crate::send::cli::{Calls, daemon, replies, started};

/// A daemon that knows nothing of conversations.
fn old_daemon(home: &Home) -> Calls {
    let refuses = |asked: &chorus_tests::fake_daemon::FakeRequest<'_>| asked.params.get("conversation").is_some();
    let refusal = "unknown field `conversation`, expected one of `agent`, `text`";
    daemon(
        home,
        move |mut asked| match refuses(&asked) {
            true => asked.send_error("invalid_params", refusal, "see the documentation"),
            false => {
                started(&mut asked);
                replies(&mut asked, "hello");
            }
        },
        move |mut asked| match (refuses(&asked), &*asked.method) {
            (true, _) => asked.send_error("invalid_params", refusal, "see the documentation"),
            (_, "context.append") => asked.send_result(json!({"appended": 1, "messages": 1})),
            (_, "context.show") => asked.send_result(
                json!({"agent_name": "atlas", "messages": [], "working_set": {}, "context": null, "next": null}),
            ),
            (_, method) => panic!("{method} was asked"),
        },
    )
}

#[test]
fn it_is_asked_again_without_the_field_and_only_once() {
    let home = home();
    let calls = old_daemon(&home);
    let appended = chorusctl(&home, ["context", "append", "hello"]);
    assert_eq!((appended.status, &*appended.stdout, &*appended.stderr), (0, "appended 1 message (1 total)\n", ""));
    assert_eq!(
        calls.of("context.append"),
        [json!({"conversation": "@", "text": "hello", "role": "user"}), json!({"text": "hello", "role": "user"})]
    );
    assert_eq!(chorusctl(&home, ["send", "hi"]).expect_success(), "hello\n");
    assert_eq!(calls.of("send").len(), 2);
    // One connection learns it once: the chat shows first, then sends.
    assert_eq!(chorusctl_with(&home, ["chat"], b"one\ntwo\n").expect_success(), "hello\nhello\n");
    assert_eq!((calls.of("send").len(), calls.of("context.show").len()), (4, 2));
}

#[test]
fn main_is_the_one_that_it_has_and_another_is_refused() {
    let home = home();
    let calls = old_daemon(&home);
    chorusctl(&home, ["-C", "main", "context", "append", "hello"]).expect_success();
    for args in [&["context", "append", "hello"][..], &["send", "hello"], &["show"]] {
        let refused = chorusctl(&home, [&["-C", "review"], args].concat());
        let said = refused.expect_failure_with_hint(1);
        assert!(said.contains("the daemon has no conversation \"review\": its version has one per agent"), "{said}");
        assert!(said.contains("hint: restart it: chorusctl daemon restart"), "{said}");
    }
    assert_eq!(calls.of("context.append").len(), 3, "nothing was sent to it without the name");
}

#[test]
fn another_refusal_is_reported_as_it_is() {
    let home = home();
    start_fake_daemon_with(&home, |mut asked| match &*asked.method {
        "hello" => asked.disconnect(),
        _ => asked.send_error("invalid_params", "`last` cannot be combined with `offset`", "use `last` alone"),
    });
    let refused = chorusctl(&home, ["show"]);
    assert!(refused.expect_failure(2).contains("cannot be combined"), "{refused:?}");
}
