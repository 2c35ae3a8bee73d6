//! Turns without a reply, and what the command makes of them.

use chorus_tests::ctl::chorusctl;
use serde_json::{Value, json};

use super::{FakeRequest, daemon, started, talks, text};
use crate::home;

fn agent() -> Value {
    json!({
        "id": "5b0c9a52-3c1e-4c0e-9d53-0a7a4a3f6d10", "name": "atlas", "status": "active", "state": "idle",
        "model": null, "permissions": "standard", "created_at": "2026-02-20T08:00:00Z", "channel_id": null,
        "guild_id": null, "path": "/a", "context": null, "last_session": null
    })
}

#[test]
fn each_kind_of_failure_has_its_status_and_its_hint() {
    for (kind, status) in
        [("model_unavailable", 1), ("interrupted", 1), ("limit_reached", 6), ("busy", 7), ("no_agent", 3)]
    {
        let home = home();
        // Without an agent chorusctl looks whether there is any: here there are some.
        let turn = move |mut asked: FakeRequest<'_>| asked.send_error(kind, "it did not work", "do this");
        daemon(&home, turn, |mut asked| asked.send_result(json!({"agents": [agent()], "chosen": null})));
        for args in [&["send", "x"][..], &["send", "x", "--no-stream"]] {
            let said = chorusctl(&home, args.iter().copied());
            assert_eq!(said.expect_failure_with_hint(status), "error: it did not work\nhint: do this\n", "{kind}");
        }
        let said = chorusctl(&home, ["--json", "send", "x"]);
        assert_eq!(said.status, status);
        let told = format!(r#"{{"error":{{"kind":"{kind}","message":"it did not work","hint":"do this"}}}}"#);
        assert_eq!(said.stderr, told + "\n");
    }
}

#[test]
fn what_came_before_a_failure_is_shown_and_its_line_ended() {
    let home = home();
    talks(&home, |mut asked| {
        started(&mut asked);
        text(&mut asked, "Half");
        asked.send_error("model_unavailable", "the stream broke off", "send it again");
    });
    let said = chorusctl(&home, ["send", "x"]);
    let told = "error: the stream broke off\nhint: send it again\n";
    assert_eq!((said.status, &*said.stdout, &*said.stderr), (1, "Half\n", told));
}

#[test]
fn a_daemon_that_goes_away_is_told() {
    let home = home();
    talks(&home, |mut asked| {
        started(&mut asked);
        asked.disconnect();
    });
    let said = chorusctl(&home, ["send", "x"]);
    let said = said.expect_failure_with_hint(1);
    assert!(said.contains("lost connection") && said.contains("chorusctl show"), "{said}");
}

#[test]
fn a_timeout_that_was_asked_for_holds_however_much_comes() {
    let home = home();
    talks(&home, |mut asked| {
        started(&mut asked);
        while asked.is_client_connected() {
            text(&mut asked, "on ");
        }
    });
    let said = chorusctl(&home, ["--timeout", "300ms", "send", "x"]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stdout.starts_with("on ") && said.stderr.contains("the turn continues"), "{said:?}");
}
