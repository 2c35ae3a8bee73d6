//! The order and filters of imported conversations: by their own time, project and program.

use std::fs;
use std::path::Path;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A Claude Code transcript of two messages in `project`.
fn transcript(session: &str, day: &str, project: &Path, text: &str) -> String {
    let line = |kind: &str, uuid: &str, parent: Option<&str>, time: &str, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session, "cwd": project, "gitBranch": "main",
               "timestamp": format!("{day}T{time}Z"),
               "message": {"role": kind, "id": format!("msg-{uuid}"), "model": "claude-opus", "content": text}})
    };
    let question = line("user", "q", None, "10:00:00", text);
    let answer = line("assistant", "a", Some("q"), "11:30:00", "Let me see.");
    format!("{question}\n{answer}\n")
}

fn titles(home: &Home, args: &[&str]) -> Vec<String> {
    let listed = chorusctl(home, ["history", "--json"].iter().chain(args)).expect_json();
    let sessions = listed["sessions"].as_array().expect("a list");
    sessions.iter().map(|one| one["description"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Two projects with a conversation each, imported in the order of their names, and a rollout of Codex.
fn imported() -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start(&home);
    let dir = home.temp_dir().join("transcripts");
    let (shop, api) = (home.temp_dir().join("shop"), home.temp_dir().join("shop/api"));
    fs::create_dir_all(&dir).expect("a directory");
    fs::create_dir_all(&api).expect("a directory");
    let (shop, api) = (fs::canonicalize(shop).expect("a path"), fs::canonicalize(api).expect("a path"));
    let older = transcript("11111111-1111-4111-8111-111111111111", "2025-03-01", &api, "Why is the api slow");
    let newer = transcript("22222222-2222-4222-8222-222222222222", "2025-04-01", &shop, "Paint the shop");
    let codex = format!(
        "{}\n{}\n",
        json!({"timestamp": "2025-03-15T08:00:00Z", "type": "session_meta",
               "payload": {"id": "33333333-3333-4333-8333-333333333333", "cwd": "/srv/else", "git": {"branch": "topic"}}}),
        json!({"timestamp": "2025-03-15T08:00:01Z", "type": "response_item",
               "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Count the beans"}]}}),
    );
    for (name, text) in [("1.jsonl", &newer), ("2.jsonl", &codex), ("3.jsonl", &older)] {
        fs::write(dir.join(name), text).expect("written");
        chorusctl(&home, ["import", dir.join(name).to_str().expect("UTF-8")]).expect_success();
    }
    (home, daemon)
}

#[test]
fn conversations_are_ordered_by_when_they_ended_and_named_after_their_day() {
    let (home, _daemon) = imported();
    assert_eq!(titles(&home, &[]), ["Paint the shop", "Count the beans", "Why is the api slow"]);
    let listed = chorusctl(&home, ["history"]).expect_success();
    assert!(listed.contains("2025-04-01 11:30"), "{listed}");
    let latest = chorusctl(&home, ["show", "latest"]).expect_success();
    assert!(latest.starts_with("2025-04-01_"), "{latest}");
    for (since, due) in [("2025-03-15", 2), ("2025-04-02", 0)] {
        assert_eq!(titles(&home, &["--since", since]).len(), due, "{since}");
        let before = titles(&home, &["--until", since]).len();
        assert_eq!(before + due, titles(&home, &[]).len(), "each is before or after {since}");
    }
    // A rebuild of the catalog finds the same order in the files.
    let before = chorusctl(&home, ["history", "--json"]).expect_json();
    chorusctl(&home, ["doctor", "--rebuild"]).expect_success();
    let after = chorusctl(&home, ["history", "--json"]).expect_json();
    assert_eq!(after, before);
    assert_eq!(titles(&home, &["--source", "codex"]), ["Count the beans"]);
}

#[test]
fn an_agents_own_latest_stays_what_it_saved() {
    let (home, daemon) = imported();
    let mut client = daemon.client();
    client.init("mine");
    client.append("mine", "my own words");
    client.save("mine", "own");
    let dir = home.temp_dir().join("transcripts");
    chorusctl(&home, ["--agent", "mine", "import", dir.join("1.jsonl").to_str().expect("UTF-8")]).expect_success();
    let (latest, _) = client.get_session("mine", "latest");
    assert_eq!(latest.header.description.as_deref(), Some("own"));
    assert_eq!(client.history("mine").len(), 2);
}

#[test]
fn projects_and_programs_are_filters() {
    let (home, daemon) = imported();
    let shop = home.temp_dir().join("shop");
    let of = |dir: &Path, args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.current_dir(dir).args(args);
        ctl::run_command(command, b"")
    };
    let listed = |dir: &Path, project: &str| -> Vec<Value> {
        let listed = of(dir, &["history", "--json", "--project", project]).expect_json();
        listed["sessions"].as_array().expect("a list").iter().map(|one| one["description"].clone()).collect()
    };
    assert_eq!(listed(&shop, "."), ["Paint the shop", "Why is the api slow"]);
    assert_eq!(listed(&shop.join("api"), "."), ["Why is the api slow"]);
    assert_eq!(listed(&shop.join("api"), ".."), ["Paint the shop", "Why is the api slow"]);
    assert_eq!(listed(&shop, "/srv/else"), ["Count the beans"]);
    assert_eq!(listed(&shop, "/srv/els"), [Value::Null; 0]);
    // By the name that the column shows, too.
    assert_eq!(listed(&shop, "api"), ["Why is the api slow"]);
    assert_eq!(listed(&shop, "else"), ["Count the beans"]);
    assert_eq!(listed(&shop, "ls"), [Value::Null; 0]);
    for verb in [&["history"][..], &["search", "shop"]] {
        let wrong = chorusctl(&home, verb.iter().chain(&["--source", "claude-cod"]));
        assert!(wrong.expect_failure_with_hint(2).contains("did you mean `claude-code`?"), "{wrong:?}");
        let wrong = chorusctl(&home, verb.iter().chain(&["--source", "nonsense"]));
        assert!(wrong.expect_failure_with_hint(2).contains("sources here: claude-code, codex"), "{wrong:?}");
    }
    assert_eq!(titles(&home, &["--source", "claude-code"]).len(), 2);
    assert_eq!(titles(&home, &["--source", "goose"]).len(), 0);
    let wide = of(&shop, &["history", "--project", "."]).expect_success();
    assert!(wide.contains("PROJECT") && wide.contains("  api  "), "{wide}");
    let long = of(&shop, &["history", "--source", "codex", "--long"]).expect_success();
    assert!(long.contains("/srv/else") && long.contains("branch topic"), "{long}");
    // Search takes the same project.
    wait_until("the search index", DEADLINE, || {
        let found = chorusctl(&home, ["search", "shop OR slow", "--all-agents", "--json"]).expect_json();
        (found["index"]["complete"] == true).then_some(())
    });
    for (words, dir, found) in [("paint", &*shop, true), ("paint", &*shop.join("api"), false), ("slow", &*shop, true)] {
        let hits = of(dir, &["search", words, "--project", ".", "--json"]).expect_json();
        assert_eq!(hits["hits"].as_array().is_some_and(|hits| !hits.is_empty()), found, "{words}: {hits}");
    }
    let codex = of(&shop, &["search", "beans", "--source", "codex", "--json"]).expect_json();
    assert_eq!(codex["hits"].as_array().map(Vec::len), Some(1), "{codex}");
    drop(daemon);
}

#[test]
fn the_tree_shows_imported_conversations_by_their_own_time() {
    let (home, daemon) = imported();
    let tree = |args: &[&str]| {
        let listed = chorusctl(&home, args.iter().chain(&["session", "tree", "--json"])).expect_json();
        let sessions = listed["sessions"].as_array().expect("a list").iter();
        sessions.map(|one| (one["description"].clone(), one["ended_at"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(tree(&[]).len(), 3);
    let mut client = daemon.client();
    client.init("mine");
    client.append("mine", "my own words");
    client.save("mine", "own");
    let all = tree(&[]);
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.contains(&(json!("Paint the shop"), json!("2025-04-01T11:30:00Z"))), "{all:?}");
    assert!(all.contains(&(json!("own"), Value::Null)), "{all:?}");
    assert_eq!(tree(&["--agent", "mine"]).len(), 1);
    let drawn = chorusctl(&home, ["session", "tree", "--all"]).expect_success();
    let line = drawn.lines().find(|line| line.contains("Paint the shop")).expect("a line");
    assert!(line.contains("months ago"), "{drawn}");
}

#[test]
fn show_and_exports_name_the_program_and_the_model() {
    let (home, _daemon) = imported();
    let shown = chorusctl(&home, ["show", "latest"]).expect_success();
    let dir = fs::canonicalize(home.temp_dir().join("shop")).expect("a path");
    for due in ["claude-code 22222222-2222-4222-8222-222222222222", dir.to_str().expect("UTF-8"), "claude-opus", "main"]
    {
        assert!(shown.contains(due), "{due}: {shown}");
    }
    let page = chorusctl(&home, ["export", "latest", "--as", "html"]).expect_success();
    assert!(page.contains("<p class=\"line\">claude-opus · claude-code · 2025-04-01 10:00 UTC"), "{page}");
    assert!(page.contains("<span class=\"who\">claude-code</span> <span class=\"model\">claude-opus</span>"), "{page}");
    let text = chorusctl(&home, ["export", "latest", "--as", "md"]).expect_success();
    assert!(
        text.contains("**Imported From:** claude-code: 22222222-2222-4222-8222-222222222222\n**Model:** claude-opus\n")
    );
    assert!(!text.contains("**Agent:**"), "{text}");
}

#[test]
fn an_agent_takes_an_imported_conversation_into_its_hands() {
    let (home, daemon) = imported();
    let mut client = daemon.client();
    client.init("mine");
    let id = "11111111-1111-4111-8111-111111111111";
    chorusctl(&home, ["restore", "--agent", "mine", id]).expect_success();
    assert_eq!(client.message_texts("mine"), ["Why is the api slow", "Let me see."]);
    client.append("mine", "go on");
    let saved = client.save("mine", "taken over");
    assert_eq!((saved.header.source, saved.header.parent_id.map(|id| id.to_string())), (None, Some(id.to_owned())));
    // The imported one stays, and goes on growing by itself.
    let listed = chorusctl(&home, ["history", "--agent", "claude-code", "--json"]).expect_json();
    assert_eq!(listed["total"], 2, "{listed}");
}

#[test]
fn a_directory_of_files_takes_one_line_and_is_not_read_again() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let dir = home.temp_dir().join("many");
    fs::create_dir_all(&dir).expect("a directory");
    let file = |n: u32| dir.join(format!("{n}.jsonl"));
    let written = |n: u32, text: &str| {
        let session = format!("00000000-0000-4000-8000-0000000000{n:02}");
        fs::write(file(n), transcript(&session, "2025-05-01", Path::new("/p"), text)).expect("written");
    };
    (0..63).for_each(|n| written(n, &format!("question {n}")));
    let path = dir.to_str().expect("UTF-8");
    let first = chorusctl(&home, ["import", path]);
    assert_eq!(first.stdout, "imported 63 conversations (126 messages) from 63 files\n", "{first:?}");
    assert_eq!(first.stderr.lines().count(), 1, "{first:?}");
    // A file that is not read any more cannot be reported as broken: it only looks as it did.
    let modified = fs::metadata(file(7)).and_then(|file| file.modified()).expect("a time");
    let broken = "x".repeat(fs::read(file(7)).expect("the file").len());
    fs::write(file(7), broken).expect("written");
    let same = fs::File::options().write(true).open(file(7)).expect("the file");
    same.set_modified(modified).expect("the time it had");
    let again = chorusctl(&home, ["import", path]);
    assert_eq!((again.status, &*again.stdout), (0, "63 conversations up to date\n"), "{again:?}");
}
