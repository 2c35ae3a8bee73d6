//! What is appended and imported is kept as it came, counted, and replaced where that is asked for.

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use serde_json::json;

use super::secrets::sixty;
use crate::home;

#[test]
fn what_is_appended_is_kept_and_counted_or_replaced() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let secret = &sixty()[2].text;
    let text = format!("the key is {secret}, twice: {secret}");
    let said = chorusctl(&home, ["context", "append", &text]);
    assert!(
        said.stderr.contains("hint: found 2 secrets and kept them") && said.stderr.contains("--redact"),
        "{}",
        said.stderr
    );
    said.expect_success();
    assert_eq!(chorusctl(&home, ["context", "append", "nothing", "--json"]).expect_json()["secrets_found"], 0);
    assert_eq!(chorusctl(&home, ["context", "append", &text, "--json"]).expect_json()["secrets_found"], 2);
    let said = chorusctl(&home, ["context", "append", &text, "--redact"]);
    assert!(said.stderr.contains("redacted 2 secrets"), "{}", said.stderr);
    said.expect_success();
    let texts = client.message_texts("a");
    assert_eq!((&texts[0], &texts[2]), (&text, &text));
    assert!(texts[3].starts_with("the key is [redacted:github-token:") && !texts[3].contains(secret), "{}", texts[3]);
    let line = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "name": "n", "params": {"n": 1, "key": secret}}]});
    let args = ["context", "append", "--jsonl", "--redact", "--json"];
    assert_eq!(chorusctl_with(&home, args, line.to_string().as_bytes()).expect_json()["secrets_found"], 1);
    let params = client.messages("a").pop().expect("a message").tool_calls[0].params.get().to_owned();
    assert!(params.starts_with(r#"{"n":1,"key":"[redacted:github-token:"#), "{params}");
}

#[test]
fn what_is_imported_is_kept_and_counted_or_replaced() {
    let home = home();
    let daemon = Daemon::start(&home);
    for agent in ["a", "b", "c"] {
        daemon.client().init(agent);
    }
    let (secret, other) = (&sixty()[2].text, &sixty()[8].text);
    let messages =
        json!([{"role": "user", "content": format!("use {secret}")}, {"role": "assistant", "content": other}]);
    let file = home.temp_dir().join("talk.json");
    std::fs::write(&file, messages.to_string()).expect("a file");
    let file = file.to_str().expect("a path");
    let kept = chorusctl(&home, ["--agent", "a", "session", "import", file, "--json"]).expect_json();
    assert_eq!(kept["secrets_found"], 2, "{kept}");
    let said = chorusctl(&home, ["--agent", "b", "session", "import", file]);
    assert!(
        said.stderr.contains("found 2 secrets and kept them") && said.stderr.contains("--redact"),
        "{}",
        said.stderr
    );
    let clean = chorusctl(&home, ["--agent", "c", "session", "import", file, "--redact", "--json"]).expect_json();
    assert_eq!(clean["secrets_found"], 2, "{clean}");
    let read = |result: &serde_json::Value| {
        let path = result["sessions"][0]["file_path"].as_str().expect("a path");
        std::fs::read_to_string(path).expect("a session file")
    };
    assert!(read(&kept).contains(secret) && read(&kept).contains(other));
    let clean = read(&clean);
    assert!(clean.contains("use [redacted:github-token:") && clean.contains("\"[redacted:anthropic-key:"), "{clean}");
    assert!(!clean.contains(secret) && !clean.contains(other));
}

/// What an import kept beside the conversation stays, without its secrets: it goes back to nobody.
#[test]
fn other_branches_of_an_import_stay_without_their_secrets() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let secret = &sixty()[2].text;
    let node = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        json!({"id": id, "parent": parent, "children": [], "message": {"id": id, "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]}}})
    };
    let talk = json!([{"title": "A talk", "current_node": "b", "mapping": {"q": node("q", None, "user", "Why?"),
        "a": node("a", Some("q"), "assistant", &format!("Regenerated {secret}")),
        "b": node("b", Some("q"), "assistant", "So.")}}]);
    let file = home.temp_dir().join("conversations.json");
    std::fs::write(&file, talk.to_string()).expect("a file");
    let file = file.to_str().expect("a path");
    let clean = chorusctl(&home, ["session", "import", file, "--redact", "--json"]).expect_json();
    assert_eq!(clean["secrets_found"], 1, "{clean}");
    let clean = std::fs::read_to_string(clean["sessions"][0]["file_path"].as_str().expect("a path")).expect("a file");
    assert!(clean.contains("Regenerated [redacted:github-token:") && !clean.contains(secret), "{clean}");
}
