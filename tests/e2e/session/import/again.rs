//! Importing a conversation again: it grows, is up to date, or becomes a revision.

use std::fs;
use std::path::PathBuf;

use chorus_proto::methods::import::{CommitResult, ImportFormat, ImportOutcome};
use chorus_proto::{Client, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::home;

const SESSION: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

/// A line of a Claude Code transcript: its number is its id and its minute.
fn line(n: u32, parent: Option<u32>, text: &str) -> Value {
    let kind = if n.is_multiple_of(2) { "user" } else { "assistant" };
    json!({
        "type": kind, "uuid": format!("u{n}"), "parentUuid": parent.map(|parent| format!("u{parent}")),
        "timestamp": format!("2025-06-14T10:{n:02}:00Z"), "isSidechain": false, "sessionId": SESSION, "version": "2.1.0",
        "cwd": "/home/mara/shop", "gitBranch": if n < 4 { "main" } else { "discounts" },
        "message": {"role": kind, "id": format!("msg_{n}"), "model": "claude-opus", "content": text},
    })
}

fn lines(texts: &[&str]) -> Vec<Value> {
    let numbered = (0..).zip(texts);
    numbered.map(|(n, text)| line(n, n.checked_sub(1), text)).collect()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn import(client: &mut Client, lines: &[Value]) -> CommitResult {
    import_transcript(client, "a", ImportFormat::Auto, &text(lines), 10_000).expect("imported")
}

/// The only conversation of a result.
fn only(result: &CommitResult) -> (&Session, ImportOutcome, u64) {
    assert_eq!((result.sessions.len(), result.conversations.len()), (1, 1), "{result:?}");
    (&result.sessions[0], result.conversations[0].outcome, result.conversations[0].added)
}

fn message_lines(session: &Session) -> Vec<String> {
    let file = fs::read_to_string(&session.file_path).expect("the session file");
    let messages = file.lines().skip_while(|line| !line.contains("\"messages\": [")).skip(1);
    messages.take_while(|line| line.starts_with("    ")).map(|line| line.trim_end_matches(',').to_owned()).collect()
}

fn written(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.temp_dir().join(name);
    fs::write(&path, text).expect("written");
    path
}

#[test]
fn a_conversation_grows_in_place_and_keeps_what_it_had() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let all =
        lines(&["why is checkout slow", "the cart is loaded twice", "fix it", "done", "and the discount", "added"]);
    let first = import(&mut client, &all[..2]);
    let (before, outcome, added) = only(&first);
    assert_eq!((outcome, added), (ImportOutcome::New, 2));
    let kept = message_lines(before);
    let mut more = all.clone();
    more.push(json!({"type": "custom-title", "customTitle": "Checkout is fast", "sessionId": SESSION}));
    let second = import(&mut client, &more);
    let (after, outcome, added) = only(&second);
    assert_eq!((outcome, added), (ImportOutcome::Grown, 4));
    assert_eq!((after.header.id, &after.header.session_id), (before.header.id, &before.header.session_id));
    assert_eq!((after.header.message_count, after.header.query_count), (6, 3));
    assert_eq!(after.header.description.as_deref(), Some("Checkout is fast"));
    assert_eq!(after.header.saved_at, before.header.saved_at);
    assert!(after.header.token_estimate > before.header.token_estimate);
    assert_ne!(after.header.summary, before.header.summary);
    assert_eq!(message_lines(after)[..2], kept, "the bytes of what was there stay");
    let source = after.header.source.as_ref().expect("a source");
    assert_eq!((&*source.program, &*source.conversation), ("claude-code", SESSION));
    assert_eq!(source.project.as_deref(), Some("/home/mara/shop"));
    assert_eq!((source.branch.as_deref(), source.revision), (Some("discounts"), 1));
    assert_eq!(source.ended_at.to_string(), "2025-06-14T10:05:00Z");
    // A copy that is older, or the same, changes nothing.
    let stamp = fs::metadata(&after.file_path).and_then(|file| file.modified()).expect("a time");
    for known in [&more[..], &all[..3], &all[..1]] {
        let result = import(&mut client, known);
        assert_eq!((only(&result).1, only(&result).2), (ImportOutcome::UpToDate, 0));
        assert_eq!(only(&result).0.header.message_count, 6);
    }
    assert_eq!(fs::metadata(&after.file_path).and_then(|file| file.modified()).expect("a time"), stamp);
    // What a restart reads is the same, with no warning that the file was changed.
    let (shown, messages) = client.get_session("a", SESSION);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (again, read) = client.get_session("a", SESSION);
    assert_eq!((client.history("a").len(), again, read.len()), (1, shown, messages.len()));
    let restored = client.restore("a", SESSION);
    assert_eq!((restored.messages, restored.warnings), (6, Vec::<String>::new()));
    // The search index follows.
    let search = || chorusctl(&home, ["search", "--agent", "a", "discount", "--json"]).expect_json();
    wait_until("the new message in the search index", DEADLINE, || {
        search()["hits"].as_array().is_some_and(|hits| !hits.is_empty()).then_some(())
    });
}

#[test]
fn a_reply_that_was_being_written_is_completed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut all = lines(&["list the files", "I look."]);
    let part = import(&mut client, &all);
    // The same reply, in another line of the transcript.
    let mut call = line(3, Some(1), "");
    call["message"]["id"] = json!("msg_1");
    call["message"]["content"] =
        json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]);
    all.push(call);
    let whole = import(&mut client, &all);
    let (session, outcome, _) = only(&whole);
    assert_eq!((session.header.id, outcome), (only(&part).0.header.id, ImportOutcome::Grown));
    let (_, messages) = client.get_session("a", SESSION);
    assert_eq!((messages.len(), &*messages[1].content, messages[1].tool_calls.len()), (2, "I look.", 1));
    assert_eq!(only(&import(&mut client, &all[..2])).1, ImportOutcome::UpToDate, "the part is known");
}

#[test]
fn a_reply_that_a_live_context_has_stays_as_it_is() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut all = lines(&["list the files", "I look."]);
    let part = import(&mut client, &all);
    client.restore("a", SESSION);
    let mut call = line(3, Some(1), "");
    call["message"]["id"] = json!("msg_1");
    call["message"]["content"] =
        json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]);
    all.push(call);
    let whole = import(&mut client, &all);
    let (session, outcome, _) = only(&whole);
    assert_eq!((session.header.parent_id, outcome), (Some(only(&part).0.header.id), ImportOutcome::Revision));
    let calls = |messages: &[chorus_proto::Message]| messages.iter().map(|one| one.tool_calls.len()).sum::<usize>();
    drop((client, daemon));
    let daemon = Daemon::start(&home);
    assert_eq!(calls(&daemon.client().messages("a")), 0);
    // The revision grows from now on.
    all.push(line(4, Some(3), "And now?"));
    let grown = import(&mut daemon.client(), &all);
    assert_eq!((only(&grown).0.header.id, only(&grown).1), (session.header.id, ImportOutcome::Grown));
}

#[test]
fn a_live_context_keeps_its_messages_when_the_session_that_it_begins_with_grows() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let all = lines(&["one", "two", "three", "four"]);
    import(&mut client, &all[..2]);
    client.restore("a", SESSION);
    client.append("a", "my own");
    assert_eq!(only(&import(&mut client, &all)).1, ImportOutcome::Grown);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["one", "two", "my own"]);
}

#[test]
fn a_changed_past_is_a_revision_beside_the_former_one() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let all = lines(&["one", "two", "three", "four"]);
    let result = import(&mut client, &all);
    let former = only(&result).0;
    let bytes = fs::read(&former.file_path).expect("the file");
    // A rewind: the conversation continues from the first reply.
    let mut rewound = all.clone();
    rewound.push(line(4, Some(1), "another three"));
    let result = import(&mut client, &rewound);
    let (revision, outcome, added) = only(&result);
    assert_eq!((outcome, added), (ImportOutcome::Revision, 3));
    assert_ne!(revision.header.id, former.header.id);
    assert_eq!(revision.header.parent_id, Some(former.header.id));
    assert_eq!(revision.header.source.as_ref().map(|source| source.revision), Some(2));
    assert_eq!(fs::read(&former.file_path).expect("the file"), bytes, "the former one stays");
    // Both are known now, and the one that goes on grows.
    assert_eq!(only(&import(&mut client, &all)).1, ImportOutcome::UpToDate);
    rewound.push(line(5, Some(4), "five"));
    let result = import(&mut client, &rewound);
    assert_eq!((only(&result).0.header.id, only(&result).1), (revision.header.id, ImportOutcome::Grown));
    assert_eq!(client.history("a").len(), 2);
}

#[test]
fn a_file_that_was_edited_by_hand_does_not_grow() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let all = lines(&["one", "two", "three"]);
    let result = import(&mut client, &all[..2]);
    let path = &only(&result).0.file_path;
    let edited = fs::read_to_string(path).expect("the file").replace("\"id\":\"u0\"", "\"id\":\"u9\"");
    fs::write(path, &edited).expect("written");
    let result = import(&mut client, &all);
    assert_eq!(only(&result).1, ImportOutcome::Revision);
    assert_eq!(fs::read_to_string(path).expect("the file"), edited);
}

#[test]
fn secrets_are_redacted_in_all_of_a_conversation_or_in_none() {
    const KEY: &str =
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789abcdef-AAAAAA";
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let first = format!("my key is {KEY}");
    let later = format!("again {KEY}");
    for (redact, session) in
        [(true, "11111111-1111-4111-8111-111111111111"), (false, "22222222-2222-4222-8222-222222222222")]
    {
        let all = text(&lines(&[&first, "ok", &later])).replace(SESSION, session);
        let part: String = all.lines().take(2).map(|line| format!("{line}\n")).collect();
        let file = written(&home, "talk.jsonl", &part);
        let file = file.to_str().expect("UTF-8");
        let args = |redact: bool| {
            let flag = redact.then_some("--redact");
            ["--agent", "a", "--json", "import", file].into_iter().chain(flag).collect::<Vec<_>>()
        };
        let part = chorusctl(&home, args(redact)).expect_json();
        assert_eq!(part["secrets_found"], 1, "{part}");
        fs::write(file, &all).expect("written");
        // The other mode is asked for: the conversation goes on as it began.
        let grown = chorusctl(&home, args(!redact)).expect_json();
        assert_eq!(
            (&grown["conversations"][0]["outcome"], &grown["secrets_found"]),
            (&json!("grown"), &json!(1)),
            "{grown}"
        );
        let held = fs::read_to_string(grown["sessions"][0]["file_path"].as_str().expect("a path")).expect("the file");
        let messages = held.split_once("\"messages\": [").expect("messages").1;
        assert!(!redact || !held.contains(KEY), "{held}");
        assert_eq!(messages.matches(KEY).count(), if redact { 0 } else { 2 });
        assert_eq!(chorusctl(&home, args(redact)).expect_json()["conversations"][0]["outcome"], "up_to_date");
    }
    assert_eq!(client.history("a").len(), 2);
}

/// Makes the sessions of these agents ones that an earlier version wrote: without `source`.
fn forget_sources(home: &Home, agents: &[&str]) {
    let catalog = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    let forget = "UPDATE sessions SET header = json_remove(header, '$.source'), source_program = NULL, \
                  source_conversation = NULL, project = NULL";
    assert_eq!(catalog.execute(forget, []).expect("updated"), agents.len());
    for agent in agents {
        for file in fs::read_dir(home.sessions_dir(agent)).expect("sessions") {
            let path = file.expect("an entry").path();
            let old = fs::read_to_string(&path).expect("the file");
            let old: String =
                old.lines().filter(|line| !line.starts_with("  \"source\"")).map(|line| format!("{line}\n")).collect();
            fs::write(&path, old).expect("written");
        }
    }
}

#[test]
fn what_an_earlier_version_imported_is_adopted() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let all = lines(&["one", "two", "three"]);
    let rollout = |id: &str, count: usize| -> String {
        let meta = json!({"timestamp": "2025-05-05T05:05:05Z", "type": "session_meta", "payload": {"id": id, "cwd": "/srv/api"}});
        let said = (0..count).map(|n| {
            json!({"timestamp": format!("2025-05-05T05:{n:02}:10Z"), "type": "response_item",
                   "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("codex {n}")}]}})
        });
        std::iter::once(meta).chain(said).map(|line| format!("{line}\n")).collect()
    };
    let transcript = written(&home, "talk.jsonl", &text(&all[..2]));
    // Its id is no UUID, so an earlier version gave it another one each time.
    let codex = written(&home, "rollout.jsonl", &rollout("not-a-uuid", 1));
    let files = [transcript.to_str().expect("UTF-8"), codex.to_str().expect("UTF-8")];
    chorusctl(&home, ["import", files[0], files[1]]).expect_success();
    daemon.terminate_in_place();
    forget_sources(&home, &["claude-code", "codex"]);
    let daemon = Daemon::start(&home);
    let sources = |home: &Home| -> Vec<Value> {
        let listed = chorusctl(home, ["history", "--json"]).expect_json();
        listed["sessions"].as_array().expect("a list").iter().map(|one| one["source"].clone()).collect()
    };
    assert_eq!(sources(&home), [Value::Null, Value::Null]);
    fs::write(&transcript, text(&all)).expect("written");
    let done = chorusctl(&home, ["import", files[0], files[1]]).expect_success();
    assert!(done.contains("added 1 message to 1 conversation from 2 files; 1 up to date"), "{done}");
    let adopted = sources(&home);
    assert_eq!(adopted.len(), 2, "nothing is doubled");
    let conversations: Vec<_> = adopted.iter().map(|source| source["conversation"].as_str()).collect();
    assert_eq!(conversations, [Some(SESSION), Some("not-a-uuid")], "newest first");
    fs::write(&codex, rollout("not-a-uuid", 2)).expect("written");
    let done = chorusctl(&home, ["import", files[1]]).expect_success();
    assert!(done.contains("added 1 message to 1 conversation from 1 file"), "{done}");
    drop(daemon);
}

#[test]
fn what_an_earlier_version_imported_is_adopted_without_times_too() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let all = [json!({"role": "user", "content": "good morning"}), json!({"role": "assistant", "content": "hi"})];
    let file = written(&home, "talk.jsonl", &text(&all[..1]));
    let import = ["import", file.to_str().expect("UTF-8")];
    chorusctl(&home, import).expect_success();
    daemon.terminate_in_place();
    forget_sources(&home, &["imported"]);
    let daemon = Daemon::start(&home);
    fs::write(&file, text(&all)).expect("written");
    let done = chorusctl(&home, import).expect_success();
    assert!(done.contains("added 1 message to 1 conversation from 1 file"), "{done}");
    drop(daemon);
}

#[test]
fn conversations_without_ids_are_known_by_how_they_begin() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let talk = |texts: &[&str]| -> String {
        let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
        let said = texts.iter().enumerate();
        said.map(|(at, text)| format!("{}\n", json!({"role": role(at), "content": text}))).collect()
    };
    let mut import = |texts: &[&str]| {
        let result = import_transcript(&mut client, "a", ImportFormat::Openai, &talk(texts), 10_000).expect("imported");
        (only(&result).0.header.id, only(&result).1)
    };
    let (first, outcome) = import(&["hello"]);
    assert_eq!(outcome, ImportOutcome::New);
    assert_eq!(import(&["hello", "hi", "how are you"]), (first, ImportOutcome::Grown));
    assert_eq!(import(&["hello", "hi"]), (first, ImportOutcome::UpToDate));
    let (other, outcome) = import(&["good morning", "hi"]);
    assert_eq!(outcome, ImportOutcome::New);
    assert_eq!(import(&["good morning", "hi", "bye"]), (other, ImportOutcome::Grown));
}

#[test]
fn side_chains_grow_with_their_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let side = |n: u32, parent: Option<u32>, text: &str| {
        let mut line = line(n, parent, text);
        line["isSidechain"] = json!(true);
        line["agentId"] = json!("abc123");
        line
    };
    let main = lines(&["look around", "I ask a subagent"]);
    let aside = [side(10, None, "find the tests"), side(11, Some(10), "in tests/"), side(12, Some(11), "how many")];
    // A subagent has a file of its own.
    assert_eq!(only(&import(&mut client, &aside[..2])).1, ImportOutcome::New);
    let parent = import(&mut client, &main);
    let grown = import(&mut client, &aside);
    let (session, outcome, added) = only(&grown);
    assert_eq!((outcome, added), (ImportOutcome::Grown, 1));
    assert_eq!(session.header.parent_id, Some(only(&parent).0.header.id));
    let source = session.header.source.as_ref().map(|source| source.conversation.clone());
    assert_eq!(source, Some(format!("{SESSION}/abc123")));
}
