//! The progress of the index in `status`.

use chorus_tests::Home;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::start_fake_daemon_with;
use serde_json::{Value, json};

use crate::home;

/// A daemon whose status has this index.
fn with_index(home: &Home, index: Value) {
    let path = format!("{}/../proto/golden/v1/status.result.search.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_slice(&std::fs::read(path).expect("a golden file")).expect("JSON");
    let mut status = golden["result"].clone();
    status["search"] = index;
    start_fake_daemon_with(home, move |mut asked| match &*asked.method {
        "hello" => asked.disconnect(),
        _ => asked.send_result(status.clone()),
    });
}

#[test]
fn it_is_shown_while_it_is_not_complete() {
    let (part, few, last, all) = (home(), home(), home(), home());
    with_index(&part, json!({"complete": false, "indexed": 964, "total": 1205, "messages": 70}));
    let text = chorusctl(&part, ["status"]).expect_success();
    assert!(text.contains("\nsearch index 80 % (964 of 1,205 conversations)\n"), "{text}");
    // Most of a small home is missing.
    with_index(&few, json!({"complete": false, "indexed": 6, "total": 51, "messages": 70}));
    let text = chorusctl(&few, ["status"]).expect_success();
    assert!(text.contains("\nsearch index 11 % (6 of 51 conversations)\n"), "{text}");
    // Something was said just now, in one of four conversations.
    with_index(&last, json!({"complete": false, "indexed": 3, "total": 4, "messages": 70}));
    let text = chorusctl(&last, ["status"]).expect_success();
    assert!(!text.contains("search"), "{text}");
    with_index(&all, json!({"complete": true, "indexed": 1205, "total": 1205, "messages": 70}));
    let text = chorusctl(&all, ["status"]).expect_success();
    assert!(!text.contains("search"), "{text}");
    assert_eq!(chorusctl(&all, ["status", "--json"]).expect_json()["search"]["indexed"], 1205);
}
