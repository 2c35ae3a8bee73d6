//! An agent edits the files of its workspace.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use chorus_proto::EventType;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use crate::send::tool_calls::{called, configure, results};
use crate::send::{MODELS, assert_legal, send, start_fixture, start_with_model};

#[test]
fn a_model_makes_changes_and_looks_at_files() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        let workspace = fixture.home.agent_dir("a").join("workspace");
        let path = workspace.join("src/main.rs");
        let told = called(
            &fixture,
            &mut client,
            &[
                ("create_file", json!({"path": "./src//main.rs", "content": "fn main() {\n    todo!()\n}\n"})),
                ("str_replace", json!({"path": "src/main.rs", "old_str": "todo!()", "new_str": "run();"})),
                ("append_file", json!({"path": path, "content": "\nfn run() {}\n"})),
                ("view", json!({"path": "src/main.rs", "start_line": 2})),
                ("view", json!({"path": "."})),
            ],
        );
        assert!(told.iter().all(|result| !result.is_error), "{told:?}");
        let order: Vec<_> = told.iter().map(|result| result.tool_call_id.as_deref().expect("an id")).collect();
        assert_eq!(order, ["c0", "c1", "c2", "c3", "c4"], "each is done before the next begins");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "fn main() {\n    run();\n}\n\nfn run() {}\n");
        assert_eq!(fs::metadata(&path).expect("the file").mode() & 0o777, 0o644);
        assert_eq!(
            told[3].content,
            "     2\t    run();\n     3\t}\n     4\t\n     5\tfn run() {}\n[lines 2 to 5 of 5]\n"
        );
        assert!(told[4].content.contains("src/\n") && !told[4].content.contains(".git\n"), "{}", told[4].content);
        // What it is told goes to the model.
        assert!(fixture.models().requests()[1].body.to_string().contains("created src/main.rs (3 lines, "));
        assert_legal(&client.messages("a"));
    }
}

#[test]
fn what_goes_wrong_is_told_and_the_turn_goes_on() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        let agent = fixture.home.agent_dir("a");
        let before = fs::read(agent.join("agent.json")).expect("agent.json");
        symlink(agent.join("agent.json"), agent.join("workspace/link")).expect("a link");
        symlink(&agent, agent.join("workspace/up")).expect("a link");
        let wrong: [(&str, Value, &str); 15] = [
            ("view", json!({"path": "missing.txt"}), "missing.txt does not exist"),
            ("view", json!({"path": "../agent.json"}), "is outside the workspace"),
            ("view", json!({"path": "/etc/passwd"}), "/etc/passwd is outside the workspace"),
            ("view", json!({"path": "link"}), "is a symbolic link"),
            ("create_file", json!({"path": "link", "content": "{}"}), "is a symbolic link"),
            ("create_file", json!({"path": "up/agent.json", "content": "{}"}), "up is a symbolic link"),
            ("create_file", json!({"path": ".git/hooks/post-commit", "content": "x"}), "git's own directory"),
            ("create_file", json!({"path": "x"}), "missing field `content`"),
            ("create_file", json!({"path": 5, "content": "x"}), "invalid type: integer `5`, expected a string"),
            ("view", json!({"path": "x", "depth": 2}), "unknown field `depth`"),
            ("view", json!({"path": "x", "start_line": -1}), "invalid value: integer `-1`"),
            ("str_replace", json!({"path": "x", "old_str": "", "new_str": "y"}), "old_str is empty"),
            ("append_file", json!({"path": "a\u{0}b", "content": "y"}), "control characters"),
            ("vew", json!({"path": "x"}), "unknown tool \"vew\"; available: view, create_file"),
            ("list_models", json!({"all": true}), "unknown field `all`"),
        ];
        for (name, params, why) in &wrong {
            let fine = ("view", json!({"path": "."}));
            let told = called(&fixture, &mut client, &[(*name, params.clone()), fine]);
            let failed = told.iter().find(|result| result.tool_call_id.as_deref() == Some("c0")).expect("its result");
            assert!(failed.is_error && failed.content.contains(why), "{name} {params}: {}", failed.content);
            assert!(told.iter().any(|result| !result.is_error), "the other call is carried out");
        }
        fixture.answer(Response::empty().then_call_text("c1", "view", "{\"path\": \"x"));
        fixture.reply("I see.");
        send(&mut client, "Cut it.").expect("a turn");
        assert!(results(&mut client).pop().expect("a result").content.contains("are not a JSON object"));
        assert_legal(&client.messages("a"));
        assert_eq!(fs::read(agent.join("agent.json")).expect("agent.json"), before);
        // A person sees it, too.
        let finished = fixture.wait_for_events(EventType::ToolFinished, wrong.len() * 2 + 1);
        let error = finished[0].data["error"].as_str().or(finished[1].data["error"].as_str());
        assert_eq!(error, Some("missing.txt does not exist"));
    }
}

#[test]
fn a_rule_about_a_file_holds_however_the_file_is_named() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    configure(
        &mut client,
        "permissions",
        r#"{"deny": ["tool:view:secret/.*"], "allow": ["tool:(view|create_file):.*"]}"#,
    );
    let workspace = fixture.home.agent_dir("a").join("workspace");
    fs::create_dir(workspace.join("secret")).expect("a folder");
    fs::write(workspace.join("secret/key"), "xyzzy").expect("a file");
    symlink("secret", workspace.join("other")).expect("a link");
    let absolute = workspace.join("secret/key");
    for path in ["secret/key", "./secret//key", "x/../secret/key", "other/key", absolute.to_str().expect("a path")] {
        let told = called(&fixture, &mut client, &[("view", json!({"path": path}))]);
        assert!(told[0].is_error && !told[0].content.contains("xyzzy"), "{path}: {}", told[0].content);
    }
    let told = called(&fixture, &mut client, &[("append_file", json!({"path": "x", "content": "y"}))]);
    assert_eq!(told[0].content, "tool:append_file:x is not allowed: no rule matches it");
    let names: Vec<_> = fixture.models().requests()[0].body["tools"].as_array().expect("tools").clone();
    let shown: Vec<&str> = names.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(shown.contains(&"view") && shown.contains(&"create_file"), "{shown:?}");
    assert!(!shown.contains(&"append_file") && !shown.contains(&"list_models"), "{shown:?}");
}
