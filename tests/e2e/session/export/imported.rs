//! A conversation that was imported, restored into an agent and continued there.

use std::sync::atomic::{AtomicU32, Ordering};

use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use crate::home;

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

const ROLLOUT: &str = r#"{"timestamp":"2025-11-02T23:50:00Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-11-02T23:49:59Z","cwd":"/w","instructions":null}}
{"timestamp":"2025-11-02T23:50:01Z","type":"turn_context","payload":{"cwd":"/w","approval_policy":"on-request","model":"gpt-5-codex","summary":"auto"}}
{"timestamp":"2025-11-02T23:50:02Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]}}
{"timestamp":"2025-11-02T23:50:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"There is a.py."}]}}
{"timestamp":"2025-11-03T00:10:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Anything else?"}]}}
{"timestamp":"2025-11-03T00:10:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Only that."}]}}
"#;

/// A daemon whose agent `shop` continued an imported conversation and saved it.
fn continued(home: &Home) -> (Daemon, ModelServer) {
    let server = ModelServer::start();
    server.anthropic().set_fallback(Response::text(["Mended."]));
    let daemon = Daemon::start_with(home, &server.config_toml());
    let mut client = daemon.client();
    client.init("shop");
    chorusctl_with(home, ["import", "-"], ROLLOUT.as_bytes()).expect_success();
    client.restore("shop", ID);
    let params = SendParams { agent: Some("shop".into()), text: "Mend it.".into(), ..Default::default() };
    assert_eq!(client.call::<Send>(&params).expect("a turn").reply, "Mended.");
    client.save("shop", "Mending");
    (daemon, server)
}

fn export(home: &Home, form: &str) -> String {
    chorusctl(home, ["--agent", "shop", "export", "mending", "--as", form]).expect_success()
}

/// Imports a file and returns its messages as JSONL.
fn import_again(home: &Home, text: &str) -> String {
    static AGENTS: AtomicU32 = AtomicU32::new(0);
    // An agent that has no copy of the conversation yet.
    let agent = format!("copies-{}", AGENTS.fetch_add(1, Ordering::Relaxed));
    chorusctl(home, ["agent", "init", &agent]).expect_success();
    let args = ["--agent", &agent, "--json", "import", "--from", "markdown", "-"];
    let read: Value =
        serde_json::from_str(&chorusctl_with(home, args, text.as_bytes()).expect_success()).expect("JSON");
    let id = read["sessions"][0]["id"].as_str().expect("an id");
    chorusctl(home, ["--agent", &agent, "export", id, "--as", "jsonl"]).expect_success()
}

/// An index sorts as `history` does: a conversation has the date of its end, whenever it was imported.
#[test]
fn an_index_has_the_date_of_the_conversation() {
    let home = home();
    let (_daemon, _server) = continued(&home);
    let pages = home.temp_dir().join("pages");
    let to = pages.to_str().expect("a path");
    chorusctl(&home, ["--agent", "shop", "export", "--as", "html", "--output", to]).expect_success();
    chorusctl(&home, ["export", ID, "--as", "html", "--output", to]).expect_success();
    let index = std::fs::read_to_string(pages.join("index.html")).expect("an index");
    let (_, imported) = index.split_once("<h2>November 2025</h2>").expect("the month of the conversation");
    assert_eq!(imported.matches("<li>").count(), 1, "{index}");
    assert!(imported.contains("2025-11-03 00:10 UTC"), "{index}");
    // What was saved here is above it.
    assert_eq!(index.matches("<h2>").count(), 2, "{index}");
}

#[test]
fn each_reply_has_the_name_and_the_model_of_whoever_wrote_it() {
    let home = home();
    let (_daemon, _server) = continued(&home);
    let text = export(&home, "md");
    for due in ["**codex:** There is a.py.", "**codex:** Only that.", "**shop:** Mended.", "(gpt-5-codex)\n"] {
        assert_eq!(text.matches(due).count(), 1, "{due}: {text}");
    }
    let page = export(&home, "html");
    let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("<h2><span class=\"who\">")).collect();
    for (at, due) in [
        (1, ">codex</span> <span class=\"model\">gpt-5-codex</span>"),
        (3, ">codex</span> <span class=\"model\">gpt-5-codex</span>"),
        (5, ">shop</span> <span class=\"model\">anthropic/claude-test</span>"),
    ] {
        assert!(headings[at].contains(due), "{due}: {headings:?}");
    }
    let shown = chorusctl(&home, ["--agent", "shop", "show", "mending"]).expect_success();
    assert_eq!((shown.matches("assistant (codex)").count(), shown.matches("assistant ·").count()), (2, 1), "{shown}");
    // The imported session itself has one author and one model.
    let page = chorusctl(&home, ["export", ID, "--as", "html"]).expect_success();
    assert_eq!(page.matches(">codex</span> <span class=\"model\">gpt-5-codex</span>").count(), 2, "{page}");
    // A file without data names both as well.
    let plain = chorusctl(&home, ["--agent", "shop", "export", "mending", "--as", "md", "--plain"]).expect_success();
    let again = import_again(&home, &plain);
    assert_eq!(again.matches("\"role\":\"assistant\"").count(), 3, "{again}");
}

#[test]
fn a_file_says_when_it_was_and_nothing_of_this_machine() {
    let home = home();
    let (_daemon, _server) = continued(&home);
    let text = export(&home, "md");
    for due in [
        "\n**Date:** 2025-11-02T23:50:02Z\n",
        " by hand\n",
        "\n**Resumed From:** 20",
        &format!("\n**Previous Session:** {ID}\n"),
        "\n**Imported From:** codex: 20",
        "\n## Query 1 (23:50:02)\n",
        "\n## Query 2 (2025-11-03 00:10:00)\n",
        "\n## Query 3 (20",
        "<!-- SESSION_SUMMARY_START -->\n**Current Session Summary:**",
    ] {
        assert!(text.contains(due), "{due}: {text}");
    }
    let page = export(&home, "html");
    assert!(page.contains("<dt>Started</dt><dd>2025-11-02 23:50 UTC</dd>") && page.contains(" UTC, by hand</dd>"));
    for text in [&text, &page] {
        assert!(!text.contains("manual_save)") && !text.contains("Initial session"), "{text}");
        assert!(!text.contains(home.temp_dir().to_str().expect("a path")) && !text.contains("/agents/"), "{text}");
    }
    let before = chorusctl(&home, ["--agent", "shop", "export", "mending", "--as", "jsonl"]).expect_success();
    // Without the data, too, the dates come back.
    let plain = chorusctl(&home, ["--agent", "shop", "export", "mending", "--as", "md", "--plain"]).expect_success();
    let again = import_again(&home, &plain);
    let times = ["2025-11-02T23:50:02Z", "2025-11-03T00:10:00Z"];
    assert!(times.iter().all(|time| again.contains(&format!("\"timestamp\":\"{time}\""))), "{again}");
    // With it, every byte does.
    assert_eq!(import_again(&home, &text), before);
}
