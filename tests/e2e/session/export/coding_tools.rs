//! Conversations that are continued in another coding agent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::export::{ExportFormat, ExportTarget, Read, ReadParams};
use chorus_proto::{ErrorKind, NewMessage, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{Output, chorusctl, run_command};
use chorus_tests::program::write_program;
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

const CHAT: &str = r#"[{"role":"system","content":"Be brief."},
{"role":"user","content":"Where does the kestrel nest?"},
{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"find_bird","arguments":"{\"name\": \"kestrel\"}"}}]},
{"role":"tool","tool_call_id":"call_1","content":"tower 7"},
{"role":"assistant","content":"In tower 7."}]"#;

const TOOLS: [&str; 2] = ["claude-code", "codex"];

/// A daemon that has [`CHAT`] as a saved conversation of the agent `birds`.
fn with_chat(home: &Home) -> Daemon {
    let daemon = Daemon::start(home);
    daemon.client().init("birds");
    let file = home.user_home.join("chat.json");
    fs::write(&file, CHAT).expect("a file");
    chorusctl(home, ["--agent", "birds", "import", "chat.json"]).expect_success();
    daemon
}

/// All files below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn export_json(home: &Home, tool: &str) -> Value {
    let mut said = chorusctl(home, ["--json", "--agent", "birds", "export", "latest", "--as", tool]).expect_json();
    said["conversations"][0].take()
}

fn file_of(said: &Value) -> PathBuf {
    said["file"].as_str().expect("a path").into()
}

/// Roles, texts and names of calls of the newest session of an agent.
fn said_by(daemon: &Daemon, agent: &str, session: &str) -> Vec<(Role, String, Vec<String>)> {
    let messages = daemon.client().get_session(agent, session).1.into_iter();
    let spoken = messages.filter(|message| message.role != Role::System);
    spoken
        .map(|message| (message.role, message.content, message.tool_calls.into_iter().map(|call| call.name).collect()))
        .collect()
}

#[test]
fn a_conversation_goes_where_the_tool_looks_and_comes_back_the_same() {
    let home = home();
    let daemon = with_chat(&home);
    let before = said_by(&daemon, "birds", "latest");
    assert_eq!(before.len(), 4);
    for tool in TOOLS {
        let said = export_json(&home, tool);
        let (file, id) = (file_of(&said), said["id"].as_str().expect("an id"));
        assert_eq!(said["new"], true);
        let place = match tool {
            "claude-code" => home.user_home.join(".claude/projects"),
            _ => home.user_home.join(".codex/sessions"),
        };
        assert!(file.starts_with(&place) && file.to_string_lossy().ends_with(&format!("{id}.jsonl")), "{said}");
        assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
        let path = file.to_str().expect("a path");
        daemon.client().init(tool);
        let from = chorusctl(&home, ["--json", "--agent", tool, "import", "--from", tool, path]).expect_json();
        let session = from["sessions"][0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(said_by(&daemon, tool, &session), before, "{tool}");
        let files = files_below(&home.user_home).into_iter().filter(|path| path.to_string_lossy().contains(".chorus-"));
        assert_eq!(files.count(), 0, "nothing temporary stays");
    }
    let title = fs::read_to_string(home.user_home.join(".codex/session_index.jsonl")).expect("titles");
    assert!(title.contains("\"thread_name\":"), "{title}");
}

#[test]
fn what_the_tool_has_is_used_again_and_never_overwritten() {
    let home = home();
    let _daemon = with_chat(&home);
    for tool in TOOLS {
        let first = export_json(&home, tool);
        let text = fs::read_to_string(file_of(&first)).expect("the file");
        let again = export_json(&home, tool);
        assert_eq!((&again["new"], &again["id"]), (&json!(false), &first["id"]));
        let shown = chorusctl(&home, ["--agent", "birds", "export", "latest", "--as", tool]).expect_success();
        assert!(shown.contains("has it already") && shown.contains("continue it: cd "), "{shown}");
        // The tool went on in the file: it still begins with the conversation.
        let last: Value = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .rfind(|line: &Value| line["uuid"].is_string() || line["type"] == "response_item")
            .expect("a line");
        let mut next = last.clone();
        next["parentUuid"] = last["uuid"].clone();
        next["uuid"] = "99999999-0000-4000-8000-000000000009".into();
        let longer = format!("{text}{next}\n");
        fs::write(file_of(&first), &longer).expect("written");
        assert_eq!(export_json(&home, tool)["new"], false);
        // Its last message is gone: it is another conversation.
        let is_last = |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|line| line == last);
        let other: String = text.lines().filter(|line| !is_last(line)).map(|line| format!("{line}\n")).collect();
        fs::write(file_of(&first), &other).expect("written");
        let second = export_json(&home, tool);
        assert_eq!(second["new"], true);
        assert_ne!(second["id"], first["id"]);
        assert_eq!(fs::read_to_string(file_of(&first)).expect("the file"), other);
        assert_eq!(export_json(&home, tool)["id"], second["id"]);
    }
}

#[test]
fn a_conversation_of_the_tool_itself_keeps_its_id() {
    let home = home();
    let daemon = Daemon::start(&home);
    let id = "7d444840-9dc0-41d1-b245-5ffdce74fad2";
    let line = |uuid: &str, parent: Option<&str>, kind: &str, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": home.user_home, "isSidechain": false,
            "timestamp": "2025-11-02T10:00:00.000Z", "message": {"role": kind, "content": text}})
    };
    let (one, two) = ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002");
    let text = format!("{}\n{}\n", line(one, None, "user", "Hello"), line(two, Some(one), "assistant", "Hi"));
    let file = home.user_home.join("old.jsonl");
    fs::write(&file, &text).expect("a file");
    chorusctl(&home, ["import", "old.jsonl"]).expect_success();
    let export = || {
        let mut said = chorusctl(&home, ["--json", "export", id, "--as", "claude-code"]).expect_json();
        said["conversations"][0].take()
    };
    let written = export();
    assert_eq!((&written["id"], &written["new"]), (&json!(id), &json!(true)), "its file was gone");
    // The original is there: it is continued, and stays as it is.
    fs::write(file_of(&written), &text).expect("written");
    let kept = export();
    assert_eq!((&kept["id"], &kept["new"]), (&json!(id), &json!(false)));
    assert_eq!(fs::read_to_string(file_of(&kept)).expect("the file"), text);
    drop(daemon);
}

#[test]
fn a_file_or_a_pipe_takes_the_conversation_too() {
    let home = home();
    let _daemon = with_chat(&home);
    let export = |args: &[&str]| {
        let all = ["--agent", "birds", "export", "latest", "--as"].iter().chain(args);
        chorusctl(&home, all.copied().collect::<Vec<_>>())
    };
    let piped = export(&["codex", "--output", "-"]).expect_success();
    assert!(piped.starts_with("{\"timestamp\":") && piped.lines().count() > 5, "{piped}");
    export(&["codex", "--output", "out.jsonl"]).expect_success();
    let file = home.user_home.join("out.jsonl");
    assert_eq!(fs::read_to_string(&file).expect("the file"), piped);
    export(&["claude-code", "--output", "out.jsonl"]).expect_failure_with_hint(2);
    assert_eq!(fs::read_to_string(&file).expect("the file"), piped, "no file is overwritten");
    assert_eq!(files_below(&home.user_home.join(".codex")).len(), 0);
    chorusctl(&home, ["--agent", "birds", "export", "--as", "codex"]).expect_failure_with_hint(2);
    chorusctl(&home, ["--agent", "birds", "export", "latest", "--project", "."]).expect_failure_with_hint(2);
}

/// Runs `resume-in` with only `bin` and the system in PATH.
fn resume_in(home: &Home, args: &[&str]) -> Output {
    let mut command = home.command(home.bins.chorusctl);
    let path = format!("{}:/usr/bin:/bin", home.user_home.join("bin").display());
    command.env("PATH", path).env("CLAUDE_CONFIG_DIR", home.user_home.join("elsewhere"));
    command.args(["--agent", "birds", "resume-in"]).args(args);
    run_command(command, b"typed")
}

#[test]
fn the_tool_is_started_in_the_project_with_the_terminal() {
    let home = home();
    let daemon = with_chat(&home);
    let missing = resume_in(&home, &["claude-code", "latest"]);
    let said = missing.expect_failure_with_hint(3);
    assert!(said.contains("npm install -g @anthropic-ai/claude-code"), "{said}");
    assert!(said.contains("`claude` is not in PATH"), "{said}");
    assert_eq!(files_below(&home.user_home.join("elsewhere")).len(), 0, "nothing was written");
    let (bin, project) = (home.user_home.join("bin"), home.user_home.join("my project"));
    fs::create_dir(&bin).expect("a directory");
    fs::write(bin.join("claude"), "#!/bin/sh\n").expect("a file");
    let refused = resume_in(&home, &["claude-code", "latest"]);
    assert!(refused.expect_failure_with_hint(6).contains("bin/claude is not executable"), "{refused:?}");
    write_program(bin.join("claude"), "#!/no/such/interpreter\n");
    let broken = resume_in(&home, &["claude-code", "latest"]);
    let said = broken.expect_failure_with_hint(3);
    assert!(said.contains("bin/claude cannot be run: the interpreter that it names does not exist"), "{said}");
    fs::remove_dir_all(home.user_home.join("elsewhere")).expect("what was exported");
    fs::create_dir(&project).expect("a directory");
    write_program(bin.join("claude"), "#!/bin/sh\npwd\nprintf '%s\\n' \"$@\"\ncat\nexit 7\n");
    let run = resume_in(&home, &["claude-code", "latest", "--project", "my project", "--", "--model", "a b"]);
    let file = files_below(&home.user_home.join("elsewhere")).pop().expect("the file");
    let id = file.file_stem().and_then(|name| name.to_str()).expect("an id");
    let project = fs::canonicalize(project).expect("a path");
    assert_eq!(run.status, 7, "{run:?}");
    assert_eq!(run.stdout, format!("{}\n--resume\n{id}\n--model\na b\ntyped", project.display()));
    let encoded: String =
        project.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    assert!(file.parent().is_some_and(|dir| dir.ends_with(&encoded)), "{}", file.display());
    let printed = resume_in(&home, &["claude-code", "latest", "--project", "my project", "--print"]).expect_success();
    assert_eq!(printed, format!("cd '{}' && claude --resume {id}\n", project.display()));
    // The live conversation can be continued as well, in the workspace of its agent.
    resume_in(&home, &["codex", "@", "--print"]).expect_failure_with_hint(3);
    daemon.client().append("birds", "And the owl?");
    let live = resume_in(&home, &["codex", "@", "--print"]).expect_success();
    assert!(live.contains("/agents/birds/workspace && codex resume "), "{live}");
}

#[test]
fn a_tool_that_is_started_without_a_standard_input_reads_an_empty_one() {
    let home = home();
    let _daemon = with_chat(&home);
    let bin = home.user_home.join("bin");
    fs::create_dir(&bin).expect("a directory");
    write_program(bin.join("claude"), "#!/bin/sh\nreadlink /proc/$$/fd/0 || echo closed\n");
    let mut command = home.command("/bin/sh");
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    command.env("CLAUDE_CONFIG_DIR", home.user_home.join("elsewhere"));
    command.args(["-c", "exec \"$0\" --agent birds resume-in claude-code latest <&-"]).arg(home.bins.chorusctl);
    assert_eq!(run_command(command, b"").expect_success(), "/dev/null\n");
}

#[test]
fn pieces_of_a_file_for_a_tool_make_the_whole() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    for n in 0..6 {
        let messages: Vec<NewMessage> = serde_json::from_value(json!([
            {"content": format!("{n} ") + &"é\u{1}\"line\"\n".repeat(400)},
            {"role": "assistant", "tool_calls": [{"id": "c", "name": "ls", "params": {}}, {"id": "d", "name": "ls", "params": {}}]},
            {"role": "tool_result", "tool_call_id": "d", "content": "x".repeat(5000)},
            {"role": "tool_result", "tool_call_id": "c", "content": "y".repeat(5000)},
        ]))
        .expect("messages");
        client.append_all("a", messages);
    }
    client.save("a", "long");
    let target = ExportTarget {
        id: "11111111-0000-4000-8000-000000000001".into(),
        directory: "/w".into(),
        model: None,
        written_at: None,
    };
    for form in [ExportFormat::ClaudeCode, ExportFormat::Codex] {
        let first = ReadParams { agent: Some("a".into()), session: "latest".into(), form, ..Default::default() };
        let first = ReadParams { target: Some(target.clone()), ..first };
        let (mut params, mut text, mut pieces) = (first.clone(), String::new(), 0_u8);
        loop {
            let piece = client.call::<Read>(&params).expect("a piece");
            // From the beginning, without what the daemon remembers of the last piece.
            let directory = format!("/{}", char::from(b'A' + pieces));
            let unknown = Some(ExportTarget { directory: directory.clone(), ..target.clone() });
            let other = ReadParams { offset: params.offset, target: unknown, ..first.clone() };
            let same = client.call::<Read>(&other).expect("a piece").data;
            assert_eq!(same.replace(&format!("\"{directory}\""), "\"/w\""), piece.data);
            text.push_str(&piece.data);
            pieces += 1;
            (params.offset, params.fingerprint) = (piece.next, piece.fingerprint);
            if piece.next.is_none() {
                break;
            }
        }
        assert!(pieces > 3, "{pieces}");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let results = lines.iter().filter(|line| {
            line.to_string().contains("\"tool_result\"") || line["payload"]["type"] == "function_call_output"
        });
        assert_eq!(results.count(), 12);
        // The format and the target belong together.
        let without = ReadParams { target: None, ..first.clone() };
        assert_eq!(expect_error_kind(client.call::<Read>(&without)), ErrorKind::InvalidParams);
        let json = ReadParams { form: ExportFormat::Json, ..first };
        assert_eq!(expect_error_kind(client.call::<Read>(&json)), ErrorKind::InvalidParams);
    }
}

#[test]
fn gemini_gets_the_conversation_in_the_directory_of_its_project() {
    let home = home();
    let _daemon = with_chat(&home);
    let said = export_json(&home, "gemini");
    let (file, id) = (file_of(&said), said["id"].as_str().expect("an id"));
    let project = home.user_home.join(".gemini/tmp/user");
    assert!(file.starts_with(project.join("chats")) && file.to_string_lossy().contains(&id[..8]), "{said}");
    let root = fs::read_to_string(project.join(".project_root")).expect("the directory");
    assert!(root.ends_with("/user"), "{root}");
    let text = fs::read_to_string(&file).expect("the file");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4, "{text}");
    // It deletes what is old.
    let today = jiff::Timestamp::now().to_string();
    assert!(lines[0]["lastUpdated"].as_str().is_some_and(|time| time[..7] == today[..7]), "{text}");
    assert_eq!(lines[2]["toolCalls"][0]["result"][0]["functionResponse"]["response"]["output"], "tower 7");
    assert_eq!(export_json(&home, "gemini")["new"], false);
    assert_eq!(fs::read_to_string(&file).expect("the file"), text);
}

#[test]
fn opencode_imports_the_conversation_before_it_starts() {
    let home = home();
    let _daemon = with_chat(&home);
    let said = resume_in(&home, &["opencode", "latest", "--print"]);
    assert!(said.expect_failure_with_hint(3).contains("npm install -g opencode-ai"));
    let bin = home.user_home.join("bin");
    fs::create_dir(&bin).expect("a directory");
    let script = "#!/bin/sh\nif [ \"$1\" = import ]; then cat \"$2\" > \"$HOME/imported.json\"; exit; fi\nprintf '%s\\n' \"$@\"\n";
    write_program(bin.join("opencode"), script);
    let run = resume_in(&home, &["opencode", "latest", "--", "-m", "local/qwen"]).expect_success();
    let text = fs::read_to_string(home.user_home.join("imported.json")).expect("the file");
    let document: Value = serde_json::from_str(&text).expect("one document");
    let id = document["info"]["id"].as_str().expect("an id");
    assert_eq!(run, format!("--session\n{id}\n-m\nlocal/qwen\n"));
    assert_eq!(document["messages"].as_array().map(Vec::len), Some(3), "{text}");
    assert_eq!(document["messages"][0]["info"]["model"], json!({"providerID": "local", "modelID": "qwen"}));
    assert_eq!(document["messages"][1]["parts"][1]["state"]["output"], "tower 7");
    // The same document is what an export writes.
    let piped = chorusctl(&home, ["--agent", "birds", "export", "latest", "--as", "opencode"]).expect_json();
    assert_eq!(piped["info"]["id"], document["info"]["id"]);
    write_program(bin.join("opencode"), "#!/bin/sh\necho 'Missing key' >&2\nexit 1\n");
    let failed = resume_in(&home, &["opencode", "latest"]);
    assert!(failed.expect_failure(1).contains("Missing key"));
}
