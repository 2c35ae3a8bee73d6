//! The verbs, from the command line and the socket.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::{AddParams, Remove, RemoveParams, Search, SearchParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use serde_json::json;

use super::{Memory as _, shared};
use crate::docs::generated::named;
use crate::home;

#[test]
fn the_command_line_adds_lists_finds_and_removes() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    fs::write(home.agent_dir("a").join("workspace/gates.md"), "oak").expect("a file");
    let said = chorusctl(&home, ["memory", "add", "The NORTH gate sticks.", "--path", "./gates.md"]).expect_success();
    let id = said.trim().strip_prefix("remembered as ").expect("an id").to_owned();
    assert_eq!(id.len(), 8, "{said}");
    let again =
        chorusctl(&home, ["memory", "add", "  The NORTH gate sticks.\n", "--path", "gates.md"]).expect_success();
    assert_eq!(again, format!("already remembered ({id})\n"));
    chorusctl_with(&home, ["memory", "add", "-"], b"Shearing is in May.\n\x1b[2J").expect_success();
    let list = chorusctl(&home, ["memory", "list"]).expect_success();
    assert!(list.contains("The NORTH gate sticks. (gates.md)") && list.contains("hand"), "{list}");
    assert!(!list.contains('\x1b') && !list.contains("SHOWN"), "{list}");
    fs::remove_file(home.agent_dir("a").join("workspace/gates.md")).expect("it goes");
    let list = chorusctl(&home, ["memory", "list"]).expect_success();
    assert!(list.contains("(gates.md, missing)"), "{list}");
    let found = chorusctl(&home, ["memory", "search", "north", "GATE"]).expect_success();
    assert!(found.contains(&id) && !found.contains("Shearing"), "{found}");
    chorusctl(&home, ["memory", "search", " "]).expect_failure(2);
    let json = chorusctl(&home, ["memory", "list", "--json"]).expect_json();
    assert_eq!((json["total"].as_u64(), json["shown"].as_u64()), (Some(2), Some(2)), "{json}");
    assert_eq!(json["entries"][1]["path_exists"], false);
    assert_eq!(chorusctl(&home, ["memory", "list", "--format", "jsonl"]).expect_success().lines().count(), 2);
    assert_eq!(named(&home, &["memory", "remove", &id[..3]]), std::slice::from_ref(&id));
    chorusctl(&home, ["memory", "remove", "no"]).expect_failure_with_hint(3);
    let said = chorusctl(&home, ["memory", "remove", &id[..4]]).expect_success();
    assert!(said.contains("removed") && said.contains(&format!("trash restore {id}")), "{said}");
    chorusctl(&home, ["memory", "remove", &id]).expect_failure_with_hint(3);
    assert!(chorusctl(&home, ["audit"]).expect_success().contains("owner removed a memory of "));
}

#[test]
fn notes_are_found_with_their_place_and_questions_by_their_telling_words() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.remember("a", "Deploys are on Tuesdays.");
    client.remember("a", "The office closes at six.");
    let docs = home.agent_dir("a").join("docs");
    fs::create_dir(docs.join("ops")).expect("a folder");
    fs::write(docs.join("ops/run.md"), "# Rollout\n\nNever from\na laptop; \x1b[2Jask Mara.\n").expect("a note");
    let run = |words: &[&str]| chorusctl(&home, [&["memory", "search"], words].concat());
    let found = run(&["laptop", "ROLLOUT"]);
    assert!(found.stdout.starts_with("docs/ops/run.md:4  Never from a laptop;"), "{}", found.stdout);
    assert!(!found.stdout.contains('\x1b') && !found.stdout.contains("office"), "{}", found.stdout);
    assert!(!found.stderr.contains("some of them"), "{}", found.stderr);
    let found = run(&["when", "do", "we", "deploy?"]);
    assert!(found.stdout.contains("Deploys are on Tuesdays.") && !found.stdout.contains("office"), "{}", found.stdout);
    assert!(found.stderr.contains("nothing has all these words"), "{}", found.stderr);
    let json = run(&["--json", "mara"]).expect_json();
    let passage = json!({"path": "docs/ops/run.md", "line": 4, "snippet": json["docs"][0]["snippet"], "marks": json["docs"][0]["marks"]});
    assert_eq!((&json["docs"], &json["total"]), (&json!([passage]), &json!(0)), "{json}");
    let jsonl = run(&["--format", "jsonl", "mara"]).expect_success();
    assert!(jsonl.lines().count() == 1 && jsonl.contains("docs/ops/run.md"), "{jsonl}");
    let nothing = run(&["penguin"]);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("chorusctl search"), "{}", nothing.stderr);
    // A note that is gone is not found.
    fs::remove_file(docs.join("ops/run.md")).expect("it goes");
    assert_eq!(run(&["laptop"]).expect_success(), "");
}

#[test]
fn what_a_project_shares_its_agents_know_and_nobody_else() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b", "c"] {
        client.init(agent);
    }
    assert_eq!(
        expect_error_kind(client.try_remember(shared("a", "x"))),
        ErrorKind::InvalidConfig,
        "it has no project yet"
    );
    client.works_on("a", "farm");
    client.works_on("b", " farm ");
    client.works_on("c", "mill");
    client.remember("a", "a's own");
    client.remember("b", "b's own");
    client.try_remember(shared("a", "of the farm")).expect("shared");
    assert!(!client.try_remember(shared("b", "of the farm")).expect("known").added);
    assert_eq!(client.known("a"), ["of the farm", "a's own"]);
    assert_eq!(client.known("b"), ["of the farm", "b's own"]);
    assert_eq!(client.known("c"), Vec::<String>::new());
    // It stays with the project, whoever leaves that.
    client.works_on("a", "mill");
    assert_eq!((client.known("a"), client.known("b").len()), (vec!["a's own".to_owned()], 2));
    client.works_on("a", "");
    client.works_on("c", "farm");
    assert_eq!(client.known("c"), ["of the farm"]);
    let entry = client.remembered("c").entries.remove(0);
    assert_eq!((entry.agent_name.as_str(), entry.project.as_deref()), ("a", Some("farm")));
    client.call::<Remove>(&RemoveParams { agent: Some("c".into()), id: entry.id.to_string() }).expect("removed");
    assert_eq!(client.known("b"), ["b's own"]);
}

#[test]
fn what_cannot_be_remembered_is_told_and_nothing_is_added() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for (text, path) in [("", None), (" \n", None), (&*"x".repeat(2049), None), ("a\0b", None)].into_iter().chain([
        ("x", Some("/etc/passwd")),
        ("x", Some("../b")),
        ("x", Some("a\nb")),
    ]) {
        let params =
            AddParams { agent: Some("a".into()), text: text.into(), path: path.map(Into::into), ..Default::default() };
        assert_eq!(expect_error_kind(client.try_remember(params)), ErrorKind::InvalidParams, "{text:.20?} {path:?}");
    }
    assert_eq!(client.remembered("a").total, 0);
    let params = SearchParams { agent: Some("a".into()), query: "x".into(), limit: None };
    assert_eq!(client.call::<Search>(&params).expect("a search").total, 0);
    client.remember("a", "the first");
    let database = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    let many = "INSERT INTO memory (uid, agent_id, agent_name, text, created_at, user, source)
        WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < 1000)
        SELECT randomblob(16), agent_id, agent_name, 'fact ' || n, created_at, user, source FROM number, memory";
    assert_eq!(database.execute(many, []).expect("rows"), 999);
    let params = AddParams { agent: Some("a".into()), text: "one more".into(), ..Default::default() };
    assert_eq!(expect_error_kind(client.try_remember(params)), ErrorKind::LimitReached);
    assert_eq!(
        chorusctl(&home, ["memory", "list", "--json"]).expect_json()["entries"].as_array().map(Vec::len),
        Some(1000)
    );
    assert_eq!(chorusctl(&home, ["memory", "list", "--format", "jsonl"]).expect_success().lines().count(), 1000);
    assert_eq!(
        chorusctl(&home, ["memory", "list", "--limit", "3", "--format", "jsonl"]).expect_success().lines().count(),
        3
    );
}

#[test]
fn secrets_are_counted_and_replaced_where_that_is_asked_for() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let key = format!("the key is ghp_{}", "9fQ2xLm7Rt4KpZ8vWc3BnY6sDh1JgT5aEuXo");
    let kept = chorusctl(&home, ["memory", "add", &key]);
    assert!(kept.stderr.contains("found 1 secret and kept it") && kept.stderr.contains("--redact"), "{}", kept.stderr);
    let replaced = chorusctl(&home, ["memory", "add", "--redact", &key]);
    assert!(replaced.stderr.contains("redacted 1 secret"), "{}", replaced.stderr);
    let known = client.known("a");
    assert!(known[1] == key && known[0].contains("[redacted:"), "{known:?}");
    // What was done is written down without it.
    assert!(!chorusctl(&home, ["audit", "--json"]).expect_success().contains("ghp_"));
}
