//! Transcripts longer than a frame move in pages.

use chorus_proto::ErrorKind;
use chorus_proto::methods::context::{Append, AppendParams, Show, ShowParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use serde_json::json;

use crate::home;

#[test]
fn a_context_longer_than_a_frame_is_shown_in_pages() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"1MiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    let text = |n: usize| format!("{n} {}", "x".repeat(200_000));
    for n in 0..30 {
        client.append("a", &text(n));
    }
    let whole: Vec<_> = (0..30).map(text).collect();
    let first = client.call::<Show>(&ShowParams { agent: Some("a".into()), ..Default::default() }).expect("a page");
    assert!(first.next.is_some(), "6 MB came in one frame of at most 1 MiB");
    assert!(client.message_texts("a") == whole);
    client.save("a", "long");
    let (session, messages) = client.get_session("a", "latest");
    assert_eq!(session.header.message_count, 30);
    assert!(messages.into_iter().map(|m| m.content).eq(whole));
}

#[test]
fn a_reply_never_exceeds_the_frame_even_where_one_message_fills_it() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"256KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    for escaped in ["x".repeat(245_000), "\u{1}".repeat(40_000), "y".to_owned()] {
        client.append("a", &escaped);
    }
    // Fits as a request, but not as an answer with more around it: refused before it is kept.
    let params = AppendParams { agent: Some("a".into()), text: Some("z".repeat(261_000)), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Append>(&params)), ErrorKind::FrameTooLong);
    assert_eq!(client.message_texts("a").len(), 3);
    client.save("a", "wide");
    assert_eq!(client.get_session("a", "latest").1.len(), 3);
}

#[test]
fn an_imported_message_that_no_frame_holds_has_a_stand_in_and_is_exported_whole() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"2MiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    let long = "z".repeat(3_000_000);
    let list = serde_json::json!([{"role": "user", "content": "before"}, {"role": "assistant", "content": long},
        {"role": "user", "content": "after"}]);
    let file = home.temp_dir().join("long.json");
    std::fs::write(&file, list.to_string()).expect("a transcript");
    chorusctl(&home, ["--agent", "a", "session", "import", file.to_str().expect("a plain path")]).expect_success();
    client.restore("a", "latest");
    let shown =
        [client.message_texts("a"), client.get_session("a", "latest").1.into_iter().map(|m| m.content).collect()];
    for texts in shown {
        assert_eq!((texts.len(), &*texts[0], &*texts[2]), (3, "before", "after"));
        assert!(texts[1].contains("export the session"), "{}", texts[1]);
    }
    assert!(chorusctl(&home, ["session", "show", "latest"]).expect_success().contains("export the session"));
    assert!(chorusctl(&home, ["session", "export", "latest"]).expect_success().contains(&long));
}

/// A client that repeats until `next` is null comes to an end.
#[test]
fn a_page_without_messages_is_the_last_one() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.append("a", "two");
    client.save("a", "both");
    chorusctl(&home, ["notes", "add", "a fact"]).expect_success();
    let mut raw = daemon.raw_connection();
    for (method, params, list) in [
        ("context.show", json!({"agent": "a", "limit": 0}), "messages"),
        ("context.show", json!({"agent": "a", "offset": 1, "limit": 0}), "messages"),
        ("session.get", json!({"agent": "a", "session": "latest", "limit": 0}), "messages"),
        ("session.diff", json!({"agent": "a", "a": "latest", "b": "@", "limit": 0}), "lines"),
        ("session.tree", json!({"agent": "a", "limit": 0}), "sessions"),
        ("notes.list", json!({"agent": "a", "limit": 0}), "notes"),
        ("memory.list", json!({"agent": "a", "limit": 0}), "entries"),
    ] {
        let answer = raw.call(method, params);
        let result = &answer["result"];
        assert!(result[list].as_array().is_some_and(Vec::is_empty) && result["next"].is_null(), "{method}: {answer}");
    }
    for (method, params) in [
        ("context.history", json!({"agent": "a", "limit": 0})),
        ("conversations.list", json!({"agent": "a", "limit": 0})),
        ("approvals.list", json!({"limit": 0})),
        ("tasks.list", json!({"agent": "a", "limit": 0})),
        ("events.list", json!({"limit": 0})),
    ] {
        let answer = raw.call(method, params);
        assert_eq!(answer["error"]["data"]["kind"], "invalid_params", "{method}: {answer}");
    }
}
