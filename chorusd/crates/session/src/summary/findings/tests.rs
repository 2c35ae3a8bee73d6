//! Tests of the rules for files, decisions and open tasks.

use chorus_proto::NewMessage;
use serde_json::json;

use super::*;

fn said(id: &str, role: Role, text: &str) -> Message {
    let new = NewMessage { id: Some(id.into()), ..NewMessage::text(role, text) };
    new.complete(String::new, jiff::Timestamp::UNIX_EPOCH)
}

fn texts(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.text.as_str()).collect()
}

fn stored(messages: &[Message]) -> Vec<StoredMessage> {
    StoredMessage::from_messages(messages).unwrap()
}

fn found(messages: &[Message]) -> Findings {
    collect_findings(&stored(messages), &WorkingSet::default(), FindingLimits::PER_COMPACTION)
}

#[test]
fn chinese_and_japanese_are_read_sentence_by_sentence() {
    let talk = [
        said("1", Role::User, "我们讨论了两个方案。我们决定保留旧的表。决定了吗？"),
        said("2", Role::Assistant, "PostgreSQLを使うことにしました。テストが残っています。いつ決定しますか。"),
        said("3", Role::User, "还需要写测试。今天天气很好。"),
    ];
    let found = found(&talk);
    assert_eq!(texts(&found.decisions), ["我们决定保留旧的表。", "PostgreSQLを使うことにしました。"]);
    assert_eq!(texts(&found.open_tasks), ["テストが残っています。", "还需要写测试。"]);
}

#[test]
fn a_message_is_searched_for_cues_once() {
    let messages = stored(&[said("1", Role::User, "We decided to keep src/a.rs. It is pending, we think.")]);
    let mut searches = 0;
    let mut search = |stored: &StoredMessage| {
        stored.finding_kinds(|stored| {
            searches += 1;
            detect_names(stored)
        })
    };
    let kinds = search(&messages[0]);
    assert!(kinds.files && kinds.decisions && kinds.tasks, "{kinds:?}");
    // Neither the same message nor a copy of it is searched again.
    assert_eq!([search(&messages[0]), search(&messages[0].clone())], [kinds, kinds]);
    assert_eq!(searches, 1);
    // What the search left with a message is used: nothing is found where it said that there is nothing.
    let messages = stored(&[said("1", Role::User, "We decided to keep src/a.rs.")]);
    messages[0].finding_kinds(|_| FindingKinds::default());
    let found = collect_findings(&messages, &WorkingSet::default(), FindingLimits::PER_COMPACTION);
    assert!(found.decisions.is_empty() && found.files_touched.is_empty(), "{found:?}");
    // A search of the rules leaves its result, too.
    let messages = stored(&[said("1", Role::User, "We decided to keep src/a.rs.")]);
    let _ = collect_findings(&messages, &WorkingSet::default(), FindingLimits::PER_COMPACTION);
    messages[0].finding_kinds(|_| panic!("it is searched again"));
}

#[test]
fn what_was_looked_at_once_says_the_same_again() {
    let talk = [said("1", Role::User, "We decided. It is pending in src/a.rs, we think."), said("2", Role::User, "x")];
    let stored = stored(&talk);
    let first = collect_findings(&stored, &WorkingSet::default(), FindingLimits::PER_COMPACTION);
    assert_eq!((first.open_tasks.len(), first.files_touched.len()), (1, 1));
    assert_eq!(collect_findings(&stored, &WorkingSet::default(), FindingLimits::PER_COMPACTION), first);
    let known =
        WorkingSet { open_tasks: first.open_tasks, files_touched: first.files_touched, ..WorkingSet::default() };
    assert_eq!(collect_findings(&stored, &known, FindingLimits::PER_COMPACTION), Findings::default());
}

#[test]
fn decisions_and_tasks_are_told_by_their_words_and_named_by_their_message() {
    let talk = [
        said("1", Role::User, "We decided to keep Postgres. Is it decided that we leave? I like it."),
        said(
            "2",
            Role::Assistant,
            "Good. The back-fill for March still needs a test.\n\n- [ ] write it\n- [x] decided already",
        ),
        said("3", Role::ToolResult, "We decided nothing here."),
        said("4", Role::User, "we decided to keep  Postgres! Don’t forget the index."),
    ];
    let found = found(&talk);
    assert_eq!(texts(&found.decisions), ["We decided to keep Postgres."]);
    assert_eq!(
        texts(&found.open_tasks),
        ["write it", "The back-fill for March still needs a test.", "Don’t forget the index."]
    );
    assert_eq!(found.decisions[0].message_id.as_deref(), Some("1"));
    assert_eq!(found.decisions[0].source, ItemSource::Rule);
    assert_eq!(found, self::found(&talk), "the same every time");
}

#[test]
fn files_come_from_calls_and_texts_and_no_fraction_is_one() {
    let call = json!({"role": "assistant", "content": "I open `src/main.rs:42`, and/or docs/a.md. See https://x.y/z.html, 1/2.",
        "tool_calls": [{"id": "c", "name": "view", "params": {"file_path": "lib/x y.rs", "n": 1, "file_text": "hello world", "profile": "standard", "command": "cat ./run.sh | wc"}}]});
    let new: NewMessage = serde_json::from_value(call).unwrap();
    let message = new.complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH);
    let found = found(&[message, said("2", Role::User, "Look at Cargo.toml and src/main.rs, e.g. version 1.2.")]);
    assert_eq!(texts(&found.files_touched), ["src/main.rs", "docs/a.md", "lib/x y.rs", "./run.sh", "Cargo.toml"]);
}

#[test]
fn there_are_a_hundred_statements_and_ten_files_at_most_and_none_that_is_known() {
    let many: Vec<Message> = (0..130)
        .map(|n| said(&n.to_string(), Role::User, &format!("We decided on plan {n}. See src/{n}.rs.")))
        .collect();
    let first = found(&many);
    assert_eq!((first.decisions.len(), first.files_touched.len()), (100, 10));
    assert_eq!(first.decisions[99].text, "We decided on plan 99.");
    let known = WorkingSet { decisions: first.decisions, ..WorkingSet::default() };
    let more = collect_findings(&stored(&many), &known, FindingLimits::PER_COMPACTION);
    assert_eq!(more.decisions[0].text, "We decided on plan 100.");
}

#[test]
fn odd_texts_do_no_harm() {
    for text in
        ["", "/", "//", "~", "./", "a/", "[ ]", "- [ ]", "todo", "é/é.é", "\u{0}decided\u{0} it now", "日本/語.md"]
    {
        let params = json!({"path": text});
        let call =
            json!({"role": "assistant", "content": text, "tool_calls": [{"id": "c", "name": "v", "params": params}]});
        let new: NewMessage = serde_json::from_value(call).unwrap();
        let _ = found(&[new.complete(String::new, jiff::Timestamp::UNIX_EPOCH)]);
    }
}

#[test]
fn items_have_no_markers_and_what_is_done_is_no_task() {
    let talk = [
        said("1", Role::User, "Noted: TODO write bench/crypto.md. Decision: we use ed25519 for the tokens."),
        said("2", Role::Assistant, "It is written. Nothing else to do. I wrote a script to do the rest."),
        said("3", Role::User, "- [ ] TODO: review the keys\n\nWrite bench/crypto.md is still pending."),
    ];
    let first = found(&talk);
    assert_eq!(texts(&first.decisions), ["we use ed25519 for the tokens."]);
    let tasks = ["write bench/crypto.md.", "review the keys", "Write bench/crypto.md is still pending."];
    assert_eq!(texts(&first.open_tasks), tasks);
    // An item of an earlier release still has its marker.
    let old = Item { text: "TODO write bench/crypto.md.".into(), ..first.open_tasks[0].clone() };
    let known = WorkingSet { open_tasks: vec![old], ..WorkingSet::default() };
    let again = collect_findings(&stored(&talk), &known, FindingLimits::PER_COMPACTION);
    assert_eq!(texts(&again.open_tasks), tasks[1..]);
}

/// What is found of `tests/fixtures/statements.txt`: of the decisions and of the to-dos under their own kind or the
/// other, and of the sentences that are neither.
#[test]
fn most_of_what_people_decide_or_leave_open_is_found_and_little_else() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/statements.txt");
    let file = std::fs::read_to_string(path).unwrap();
    let (mut found_of, mut all, mut missed) = ([0; 3], [0; 3], Vec::new());
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        let (kind, text) = line.split_once(' ').unwrap();
        let kind = "DTN".find(kind).unwrap();
        let found = found(&[said("1", Role::Assistant, &format!("I looked at it. {text} It is late."))]);
        let texts = [texts(&found.decisions), texts(&found.open_tasks)].concat();
        all[kind] += 1;
        let is_found = texts.contains(&strip_markers(text));
        found_of[kind] += usize::from(is_found);
        if is_found == (kind == 2) {
            missed.push(line);
        }
    }
    println!("found {found_of:?} of {all:?}; wrong: {missed:#?}");
    assert!(found_of[0] + found_of[1] >= 90 && found_of[2] <= 1, "{found_of:?} of {all:?}: {missed:#?}");
}
