//! Codex rollouts, found out by themselves.

use std::fs;

use chorus_proto::Role;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::model_server::{ModelServer, Response};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::home;

const ROLLOUT: &str = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-11-02T09:59:59Z","cwd":"/w","instructions":null}}
{"timestamp":"2025-11-02T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]}}
{"timestamp":"2025-11-02T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"List the files."}}
{"timestamp":"2025-11-02T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"2025-11-02T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.py"}}
{"timestamp":"2025-11-02T10:00:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"There is a.py."}]}}
"#;

#[test]
fn a_rollout_comes_in_and_leaves_as_markdown_that_says_the_same() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let said = chorusctl_with(&home, ["--agent", "a", "session", "import", "-"], ROLLOUT.as_bytes());
    assert!(
        said.stderr.starts_with("hint: continue it: chorusctl restore ") && said.stderr.lines().count() == 1,
        "{said:?}"
    );
    let roles = |client: &mut chorus_proto::Client| -> Vec<(Role, String)> {
        client.get_session("a", "latest").1.into_iter().map(|message| (message.role, message.content)).collect()
    };
    let due = [
        (Role::User, "List the files."),
        (Role::Assistant, ""),
        (Role::ToolResult, "a.py"),
        (Role::Assistant, "There is a.py."),
    ];
    let due: Vec<_> = due.into_iter().map(|(role, text)| (role, text.to_owned())).collect();
    assert_eq!(roles(&mut client), due);
    let first = client.history("a").remove(0).header;
    assert_eq!(first.id.to_string(), "7d444840-9dc0-41d1-b245-5ffdce74fad2");
    let markdown = chorusctl(&home, ["session", "export", "latest", "--as", "md"]).expect_success();
    chorusctl_with(&home, ["--agent", "a", "session", "import", "-"], markdown.as_bytes()).expect_success();
    let named = chorusctl_with(&home, ["session", "import", "--from", "codex", "-"], markdown.as_bytes());
    named.expect_failure_with_hint(2);
    assert_eq!(client.history("a").len(), 1, "the export of a session that is here is that session");
    client.init("b");
    chorusctl_with(&home, ["--agent", "b", "session", "import", "-"], markdown.as_bytes()).expect_success();
    let copied = client.get_session("b", "latest").1.into_iter().map(|message| (message.role, message.content));
    assert_eq!(copied.collect::<Vec<_>>(), due);
    assert_eq!(roles(&mut client), due);
    let live = client.restore("a", "latest");
    assert_eq!(live.messages, 4);
}

/// A patch is a text and no JSON, and calls of other tools may be anything: the ids of Kimi, a dotted name, arguments that were cut.
const PATCHED: &str = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-11-02T09:59:59Z","cwd":"/w","instructions":null}}
{"timestamp":"2025-11-02T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Mend it."}]}}
{"timestamp":"2025-11-02T10:00:02Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.py\n"}}
{"timestamp":"2025-11-02T10:00:03Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":"done"}}
{"timestamp":"2025-11-02T10:00:04Z","type":"response_item","payload":{"type":"function_call","name":"mcp.files/read","arguments":"{\"path\": \"a","call_id":"functions.read:0"}}
{"timestamp":"2025-11-02T10:00:05Z","type":"response_item","payload":{"type":"function_call_output","call_id":"functions.read:0","output":"bad arguments"}}
{"timestamp":"2025-11-02T10:00:06Z","type":"response_item","payload":{"type":"function_call","name":"list","arguments":"[1]","call_id":"ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87"}}
{"timestamp":"2025-11-02T10:00:07Z","type":"response_item","payload":{"type":"function_call_output","call_id":"ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87","output":"none"}}
"#;

#[test]
fn a_rollout_goes_on_with_any_model() {
    let (server, home) = (ModelServer::start(), home());
    server.enable_strict_mode();
    for script in [server.anthropic(), server.openai()] {
        script.set_fallback(Response::text(["Mended."]));
    }
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    for (agent, model) in [("a", "anthropic/claude-test"), ("b", "local/small")] {
        client.init(agent);
        chorusctl(&home, ["agent", "config", agent, "model", model]).expect_success();
        chorusctl_with(&home, ["--agent", agent, "session", "import", "-"], PATCHED.as_bytes()).expect_success();
        client.restore(agent, "latest");
        let params = SendParams { agent: Some(agent.into()), text: "Go on.".into(), ..Default::default() };
        assert_eq!(client.call::<Send>(&params).expect("a turn").reply, "Mended.");
        let sent = server.requests().pop().expect("a request").text;
        assert!(sent.contains("*** Begin Patch") && sent.contains("mcp_files_read"), "{sent}");
    }
}

#[test]
fn a_rollout_that_codex_compressed_is_the_same_conversation() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let dir = home.user_home.join(".codex/sessions/2025/11/02");
    fs::create_dir_all(&dir).expect("created");
    let plain = dir.join("rollout-2025-11-02T09-59-59-7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl");
    let compressed = plain.with_extension("jsonl.zst");
    let import = |arguments: &[&str]| chorusctl(&home, [&["import"], arguments].concat());
    let compress = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    let (begin, _) = ROLLOUT.split_at(ROLLOUT.rfind("{\"timestamp\"").expect("the last line"));
    fs::write(&compressed, compress(begin)).expect("written");
    // It is found where Codex keeps it.
    let told = import(&["--yes"]).expect_success();
    assert!(told.contains("imported 1 conversation (3 messages)"), "{told}");
    fs::write(&plain, ROLLOUT).expect("written");
    let told = import(&["--yes"]).expect_success();
    assert!(told.contains("added 1 message to 1 conversation"), "{told}");
    fs::remove_file(&plain).expect("removed");
    fs::write(&compressed, compress(ROLLOUT)).expect("written");
    let told = import(&["--yes"]).expect_success();
    assert!(told.contains("1 conversation up to date"), "{told}");
    let cut = dir.join("cut.jsonl.zst");
    let bytes = compress(ROLLOUT);
    fs::write(&cut, &bytes[..bytes.len() - 9]).expect("written");
    let failure = import(&[cut.to_str().expect("UTF-8")]);
    assert!(failure.stderr.contains("cannot decompress"), "{failure:?}");
    assert_ne!(failure.status, 0, "{failure:?}");
}
