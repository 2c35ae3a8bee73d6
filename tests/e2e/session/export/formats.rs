//! One session, in each form.

use std::fs;

use chorus_proto::{Message, NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::{Daemon, Home};

use crate::home;

fn talk() -> Vec<NewMessage> {
    // As text: a parsed number would forget its digits.
    let call = r#"{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","name":"view","params":
        {"path":"a.py","ratio":1.10,"deep":[1,{"b":"```\n"}]}}]}"#
        .replace("\n        ", "");
    let result = r###"{"role":"tool_result","content":"## User\nline\n","tool_call_id":"c1","name":"view"}"###;
    let read = |text: &str| serde_json::from_str(text).expect("a message");
    vec![NewMessage::text(Role::User, "Look at a.py, please."), read(&call), read(result)]
}

/// A daemon whose agent `a` has had the talk and saved it.
fn talked(home: &Home) -> (Daemon, Session) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("a");
    client.append_all("a", talk());
    let saved = client.save("a", "A look");
    (daemon, saved)
}

#[test]
fn json_is_the_file_itself() {
    let home = home();
    let (_daemon, saved) = talked(&home);
    let file = fs::read_to_string(&saved.file_path).expect("the file");
    assert_eq!(chorusctl(&home, ["session", "export", "latest"]).expect_success(), file);
    let copy = home.temp_dir().join("copy.json");
    let to = copy.to_str().expect("a path");
    let said = chorusctl(&home, ["session", "export", "latest", "--output", to]).expect_success();
    assert_eq!(said, format!("exported {} (3 messages) to {to}\n", saved.header.session_id));
    let again = chorusctl(&home, ["session", "export", "latest", "--output", to]).expect_success();
    assert_eq!(again, format!("already up to date: {to}\n"));
    assert_eq!(fs::read_to_string(&copy).expect("the copy"), file);
}

/// A file that somebody reformatted, or one of schema 1, leaves as one of schema 2.
#[test]
fn what_is_not_as_chorus_writes_it_is_written_anew() {
    let home = home();
    let (_daemon, saved) = talked(&home);
    let file = fs::read_to_string(&saved.file_path).expect("the file");
    let value: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    fs::write(&saved.file_path, serde_json::to_string_pretty(&value).expect("JSON")).expect("reformatted");
    let exported = chorusctl(&home, ["session", "export", "latest"]).expect_success();
    assert!(exported.starts_with("{\n  \"schema\": 2,\n"), "{exported}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&exported).expect("JSON"), value);
}

#[test]
fn jsonl_is_a_message_a_line() {
    let home = home();
    let (_daemon, _) = talked(&home);
    let lines = chorusctl(&home, ["session", "export", "latest", "--as", "jsonl"]).expect_success();
    let read: Vec<Message> = lines.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    let texts: Vec<_> = read.iter().map(|message| &*message.content).collect();
    assert_eq!(texts, ["Look at a.py, please.", "Let me look.", "## User\nline\n"]);
    assert!(lines.contains("\"ratio\":1.10"), "digits stay: {lines}");
}

#[test]
fn markdown_is_for_reading() {
    let home = home();
    let (_daemon, saved) = talked(&home);
    let text = chorusctl(&home, ["session", "export", "latest", "--as", "md"]).expect_success();
    // As `import --from` names it.
    let named = chorusctl(&home, ["session", "export", "latest", "--as", "markdown"]).expect_success();
    assert_eq!(named, text);
    chorusctl_with(&home, ["import", "--from", "md", "-"], text.as_bytes()).expect_success();
    let at = chorus_tests::export_checks::format_time(saved.header.started_at);
    assert!(text.starts_with("# A look\n"), "{text}");
    for due in [
        &format!("\n**Session ID:** {}\n", saved.header.session_id),
        &format!("\n**UUID:** {}\n", saved.header.id),
        &format!("\n**Date:** {}\n", saved.header.started_at),
        "\n**Agent:** a\n",
        "\n**Total Queries:** 1\n",
        &format!("\n---\n\n## Query 1 ({at})\n\n**You:** Look at a.py, please.\n\n**a:** Let me look.\n\n"),
        "\n**Tool call (view):**\n\n````json call\n{\"path\":\"a.py\",\"ratio\":1.10,\"deep\":[1,{\"b\":\"```\\n\"}]}\n````\n",
        "\n\n**Tool result (view):**\n\n```text content\n## User\nline\n\n```\n",
        "\n---\n\n<!-- SESSION_SUMMARY_START -->\n**Background Context:** Initial session.\n\n**Current Session Summary:** ",
        "\n<!-- SESSION_SUMMARY_END -->\n\n<!-- chorus data\n{",
        "\"calls\":[[\"c1\",\"view\"]]",
    ] {
        assert!(text.contains(due), "{due:?} is not in:\n{text}");
    }
    let named = home.temp_dir().join("look.md");
    chorusctl(&home, ["export", "latest", "--output", named.to_str().expect("a path")]).expect_success();
    assert_eq!(fs::read_to_string(named).expect("a file"), text, "the name says in which format");
    let plain = chorusctl(&home, ["export", "latest", "--as", "md", "--plain"]).expect_success();
    let (visible, data) = text.split_once("\n<!-- chorus data\n").expect("a block");
    assert_eq!(plain, visible);
    assert!(data.ends_with("}}\n-->\n") && data.lines().count() == 5, "{data}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "x");
    client.save("a", "one");
    chorusctl(&home, ["session", "export"]).expect_failure_with_hint(2);
    chorusctl(&home, ["session", "export", "latest", "latest"]).expect_failure_with_hint(2);
    chorusctl(&home, ["session", "export", "nothing-like-it"]).expect_failure_with_hint(3);
    chorusctl(&home, ["session", "export", "latest", "--as", "pdf"]).expect_failure(2);
    chorusctl(&home, ["session", "export", "latest", "--as", "html", "--plain"]).expect_failure_with_hint(2);
    let output = home.temp_dir().join("out");
    let to = output.to_str().expect("a path");
    chorusctl(&home, ["session", "export", "--since", "soon", "--output", to]).expect_failure_with_hint(2);
    chorusctl(&home, ["session", "export", "latest", "--output", "/proc/nowhere/x.json"]).expect_failure(3);
    assert!(!output.exists(), "nothing is made for nothing");
}

/// The name of the output says a format, and if it is a file.
#[test]
fn an_output_whose_name_says_something_else_is_refused() {
    let home = home();
    let (_daemon, saved) = talked(&home);
    let id = &*saved.header.session_id;
    let at = |name: &str| home.temp_dir().join(name).to_str().expect("a path").to_owned();
    let refused = |args: &[&str]| {
        let said = chorusctl(&home, args);
        assert_eq!(said.status, 2, "{said:?}");
        said.stderr
    };
    let several = refused(&["export", id, "latest", "--as", "md", "--output", &at("one.md")]);
    assert!(several.contains("several conversations need a directory"), "{several}");
    assert!(several.contains(&format!("--output {}/\n", at("one"))), "{several}");
    let all = refused(&["export", "--output", &at("all.html"), "--since", "7d"]);
    assert!(all.contains("several conversations need a directory"), "{all}");
    let unknown = refused(&["export", id, "--output", &at("a.xyz")]);
    assert!(unknown.contains(".xyz names no format") && unknown.contains("--as md"), "{unknown}");
    let project = refused(&["export", id, "--as", "html", "--project", "/srv"]);
    assert!(project.contains("does not select conversations"), "{project}");
    for name in ["one.md", "all.html", "a.xyz"] {
        assert!(!std::path::Path::new(&at(name)).exists(), "{name}");
    }
    // A format that is named is written to any file, and a slash makes any name that of a directory.
    chorusctl(&home, ["export", id, "--as", "md", "--output", &at("a.xyz")]).expect_success();
    chorusctl(&home, ["export", id, "latest", "--as", "md", "--output", &format!("{}/", at("v1.md"))]).expect_success();
    assert!(std::path::Path::new(&at("v1.md")).is_dir());
    chorusctl(&home, ["export", id, "--output", &at("plain")]).expect_success();
}

#[test]
fn a_file_that_is_given_alone_gets_the_live_conversation_and_is_never_replaced() {
    let home = home();
    let (daemon, saved) = talked(&home);
    daemon.client().append("a", "Something new.");
    let read = |name: &str| fs::read_to_string(home.temp_dir().join(name)).expect("the file");
    let path = |name: &str| home.temp_dir().join(name).to_str().expect("a path").to_owned();
    let live = chorusctl(&home, ["export", &path("live.md")]).expect_success();
    assert_eq!(live, format!("exported the live conversation (4 messages) to {}\n", path("live.md")));
    assert!(read("live.md").contains("Something new."));
    let again = chorusctl(&home, ["export", "latest", &path("live.md")]);
    assert_eq!(again.status, 2, "{again:?}");
    assert!(again.stderr.contains("exists") && again.stderr.contains("--output"), "{again:?}");
    assert!(read("live.md").contains("Something new."), "the file stays");
    chorusctl(&home, ["export", "latest", &path("saved.html")]).expect_success();
    assert!(read("saved.html").contains("<html") && !read("saved.html").contains("Something new."));
    let to = path("live.md");
    let replaced = chorusctl(&home, ["export", "--output", &to]).expect_success();
    assert_eq!(replaced, format!("already up to date: {to}\n"));
    let replaced = chorusctl(&home, ["export", &saved.header.session_id, "--output", &to]).expect_success();
    assert!(replaced.contains("(3 messages)") && !read("live.md").contains("Something new."), "{replaced}");
}
