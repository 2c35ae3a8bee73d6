//! `context save` where the summary comes after the answer.

use std::sync::{Arc, Mutex};

use chorus_tests::Home;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::{FakeReply, start_fake_daemon};
use serde_json::{Value, json};

use crate::home;

const ID: &str = "c2f4a7be-51b3-4a43-8e55-6f6a0e6d9a21";

fn golden(name: &str) -> Value {
    let path = format!("{}/../proto/golden/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a golden file");
    serde_json::from_str::<Value>(&text).expect("JSON")["result"].clone()
}

fn session(summary: Option<&str>) -> Value {
    let mut session = golden("context.save.result.pending")["session"].clone();
    session["summary"] = json!(summary);
    json!({"session": session, "messages": [], "next": null, "summary_pending": summary.is_none()})
}

fn event(kind: &str, id: &str) -> (&'static str, Value) {
    let data = json!({"id": id, "summary": "We moved the cents.", "source": "llm"});
    ("event", json!({"seq": 7, "time": "2026-02-27T18:30:00Z", "type": kind, "agent": "data-team", "data": data}))
}

/// A daemon that summarises after its answer: `news` is what a listener hears. Returns the methods that were called.
fn late(
    home: &Home,
    first: Option<&'static str>,
    news: Vec<(&'static str, Value)>,
    gone: bool,
) -> Arc<Mutex<Vec<String>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (called, mut asked) = (calls.clone(), 0);
    start_fake_daemon(home, move |method, _| {
        called.lock().expect("the calls").push(method.to_owned());
        match method {
            "context.save" => golden("context.save.result.pending").into(),
            "events.subscribe" => {
                FakeReply { result: json!({"seq": 6}), notifications: news.clone(), disconnect: gone }
            }
            "session.get" => {
                asked += 1;
                session(if asked == 1 { first } else { Some("We moved the cents.") }).into()
            }
            _ => json!({}).into(),
        }
    });
    calls
}

#[test]
fn it_waits_for_the_summary_of_this_session_and_shows_it() {
    let news = || {
        let other = ID.replace('c', "d");
        vec![event("context.saved", ID), event("summary.ready", &other), event("summary.ready", ID)]
    };
    let (one, two) = (home(), home());
    late(&one, None, news(), false);
    let text = chorusctl(&one, ["context", "save"]).expect_success();
    assert!(text.contains("We moved the cents."), "{text}");
    late(&two, None, news(), false);
    let saved = chorusctl(&two, ["--json", "context", "save"]).expect_json();
    assert_eq!((&saved["session"]["summary"], &saved["cleared"]), (&json!("We moved the cents."), &json!(false)));
    assert!(saved.get("summary_pending").is_none(), "{saved}");
}

#[test]
fn one_that_came_meanwhile_is_not_waited_for() {
    let home = home();
    late(&home, Some("We moved the cents."), Vec::new(), false);
    assert!(chorusctl(&home, ["context", "save"]).expect_success().contains("We moved the cents."));
}

#[test]
fn with_no_wait_the_answer_is_shown_as_it_came() {
    let home = home();
    let calls = late(&home, None, Vec::new(), false);
    let saved = chorusctl(&home, ["--json", "context", "save", "--no-wait"]).expect_json();
    assert_eq!(saved, golden("context.save.result.pending"));
    assert!(!calls.lock().expect("the calls").iter().any(|call| call == "events.subscribe"));
}

#[test]
fn a_daemon_that_goes_away_meanwhile_is_no_failure_of_the_save() {
    let home = home();
    late(&home, None, Vec::new(), true);
    let output = chorusctl(&home, ["context", "save"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.contains("saved ") && output.stderr.contains("not ready yet"), "{output:?}");
}
