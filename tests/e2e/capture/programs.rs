//! Every program that can be captured, from files of the shape that it writes, in the places where it writes them.

use std::path::PathBuf;

use chorus_tests::{DEADLINE, Daemon, wait_until};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// A program that writes lines: its name, the place of a transcript, how that begins and what is added.
type Lines = (&'static str, &'static str, Vec<Value>, Vec<Value>);

fn programs_with_lines() -> Vec<Lines> {
    let at = |second: u32| format!("2026-03-01T09:00:{second:02}.000Z");
    let gemini =
        |id: &str, kind: &str, text: Value| json!({"id": id, "timestamp": at(1), "type": kind, "content": text});
    let copilot = |kind: &str, id: &str, parent: Value, data: Value| json!({"type": kind, "id": id, "parentId": parent, "timestamp": at(1), "data": data});
    let pi = |id: &str, parent: Value, role: &str, text: &str| {
        let message =
            json!({"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1_772_355_600_000_i64});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": at(1), "message": message})
    };
    let pi_start = || json!({"type": "session", "version": 3, "id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "timestamp": at(0), "cwd": "/srv/shop"});
    let of_openclaw =
        json!({"type": "custom", "customType": "openclaw.cache-ttl", "data": {}, "id": "b", "parentId": "a"});
    let codex = |role: &str, kind: &str, text: &str| {
        let payload = json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        json!({"timestamp": at(1), "type": "response_item", "payload": payload})
    };
    let codex_start = json!({"timestamp": at(0), "type": "session_meta", "payload": {"id": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "timestamp": at(0), "cwd": "/srv/shop", "originator": "codex_cli_rs", "cli_version": "0.140.0"}});
    let goose = |role: &str, text: &str| json!({"role": role, "created": 1_772_355_600, "content": [{"type": "text", "text": text}]});
    let cursor =
        |role: &str, text: &str| json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}});
    let cursor_prompt =
        "<timestamp>Sunday, Mar 1, 2026, 9:00 AM (UTC)</timestamp>\n<user_query>\nList them\n</user_query>";
    vec![
        (
            "codex",
            ".codex/sessions/2026/03/01/rollout-2026-03-01T09-00-00-7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl",
            vec![codex_start, codex("user", "input_text", "List them")],
            vec![codex("assistant", "output_text", "a.py")],
        ),
        (
            "gemini",
            ".gemini/tmp/shop/chats/session-2026-03-01T09-00-7d444840.jsonl",
            vec![
                json!({"sessionId": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "projectHash": "x", "startTime": at(0), "kind": "main"}),
                gemini("1", "user", json!([{"text": "List them"}])),
            ],
            vec![gemini("2", "gemini", json!("a.py"))],
        ),
        (
            "copilot",
            ".copilot/session-state/7d444840-9dc0-41d1-b245-5ffdce74fad2/events.jsonl",
            vec![
                copilot(
                    "session.start",
                    "1",
                    Value::Null,
                    json!({"sessionId": "7d444840-9dc0-41d1-b245-5ffdce74fad2", "startTime": at(0), "context": {"cwd": "/srv/shop"}}),
                ),
                copilot("user.message", "2", json!("1"), json!({"content": "List them"})),
            ],
            vec![copilot(
                "assistant.message",
                "3",
                json!("2"),
                json!({"messageId": "m", "content": "a.py", "toolRequests": []}),
            )],
        ),
        (
            "pi",
            ".pi/agent/sessions/--srv-shop--/2026-03-01T09-00-00-000Z_7d444840.jsonl",
            vec![pi_start(), pi("a", Value::Null, "user", "List them")],
            vec![pi("c", json!("a"), "assistant", "a.py")],
        ),
        (
            "openclaw",
            ".openclaw/agents/main/sessions/7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl",
            vec![pi_start(), pi("a", Value::Null, "user", "List them"), of_openclaw],
            vec![pi("c", json!("b"), "assistant", "a.py")],
        ),
        (
            "goose",
            ".local/share/goose/sessions/20260301_090000.jsonl",
            vec![
                json!({"working_dir": "/srv/shop", "description": "The files", "message_count": 1}),
                goose("user", "List them"),
            ],
            vec![goose("assistant", "a.py")],
        ),
        (
            "cursor",
            ".cursor/projects/srv-shop/agent-transcripts/7d444840-9dc0-41d1-b245-5ffdce74fad2/7d444840-9dc0-41d1-b245-5ffdce74fad2.jsonl",
            vec![cursor("user", cursor_prompt)],
            vec![cursor("assistant", "a.py"), json!({"type": "turn_ended", "status": "success"})],
        ),
    ]
}

fn lines(of: &[Value]) -> String {
    of.iter().map(|line| format!("{line}\n")).collect()
}

/// Waits until the only conversation of a program has these messages.
pub(super) fn wait_until_has(client: &mut Client, program: &str, texts: &[&str]) -> Session {
    let what = format!("{texts:?} of {program}");
    wait_until(&what, DEADLINE, || {
        let of_program =
            |session: &Session| session.header.source.as_ref().is_some_and(|source| source.program == program);
        let mut sessions = captured(client).into_iter().filter(of_program);
        let session = sessions.next()?;
        assert!(sessions.next().is_none(), "one conversation of {program}");
        (kept(&session) == texts).then_some(session)
    })
}

/// Waits until the status of a program has one conversation with so many messages, which is after that is saved.
pub(super) fn wait_until_counted(client: &mut Client, program: &str, messages: u64) {
    wait_until("the counts", DEADLINE, || {
        let status = status_of(client, program);
        let counts = (status.files, status.conversations, status.messages, status.failed);
        (counts == (1, 1, messages, 0)).then_some(())
    });
}

#[test]
fn what_programs_write_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let programs = programs_with_lines();
    let write = |(_, path, begin, _): &Lines| {
        let path = home.user_home.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, lines(begin)).expect("written");
    };
    // Half of them are there before, and the directories of the others do not exist yet.
    programs.iter().step_by(2).for_each(write);
    chorusctl(&home, ["capture", "on"]).expect_success();
    programs.iter().skip(1).step_by(2).for_each(write);
    for (name, path, _, more) in &programs {
        let before = wait_until_has(&mut client, name, &["List them"]);
        assert_eq!(before.header.agent_name, *name);
        append(&home.user_home.join(path), &lines(more));
        let after = wait_until_has(&mut client, name, &["List them", "a.py"]);
        assert_eq!(before.header.id, after.header.id, "{name} grows in place");
        wait_until_counted(&mut client, name, 2);
    }
}

#[test]
fn what_stands_beside_a_transcript_is_kept_and_excludes_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let programs = programs_with_lines();
    let write = |path: &str, text: &str| {
        let path = home.user_home.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, text).expect("written");
    };
    let id = "7d444840-9dc0-41d1-b245-5ffdce74fad2";
    write(".codex/session_index.jsonl", &format!("{{\"id\":\"{id}\",\"thread_name\":\"The files\"}}\n"));
    write(&format!(".copilot/session-state/{id}/workspace.yaml"), "cwd: /srv/other\nname: The files\n");
    let list = json!({"agent:main:main": {"sessionId": id, "label": "The files"}});
    write(".openclaw/agents/main/sessions/sessions.json", &list.to_string());
    write(&format!(".cursor/chats/2b8c/{id}/meta.json"), r#"{"schemaVersion":1,"title":"The files"}"#);
    write(".cursor/projects/srv-shop/.workspace-trusted", r#"{"workspacePath":"/srv/shop"}"#);
    write(".gemini/tmp/shop/.project_root", "/srv/shop");
    write(".gemini/tmp/diary/.project_root", "/srv/diary");
    for (_, path, begin, more) in &programs {
        write(path, &(lines(begin) + &lines(more)));
    }
    let (_, path, begin, more) = programs.iter().find(|(name, ..)| *name == "gemini").expect("Gemini CLI");
    let diary = lines(begin).replace(id, "39297bd7-7b95-4d7c-9d48-64bcd97e4e82");
    write(&path.replace("/shop/", "/diary/"), &(diary + &lines(more)));
    chorusctl(&home, ["capture", "exclude", "/srv/diary"]).expect_success();
    chorusctl(&home, ["capture", "on"]).expect_success();
    for name in ["codex", "copilot", "openclaw", "gemini", "cursor"] {
        let header = wait_until_has(&mut client, name, &["List them", "a.py"]).header;
        assert_eq!(header.source.and_then(|source| source.project).as_deref(), Some("/srv/shop"), "{name}");
        let title = if name == "gemini" { "List them" } else { "The files" };
        assert_eq!(header.description.as_deref(), Some(title), "{name}");
    }
}

#[test]
fn a_transcript_of_codex_that_is_compressed_and_decompressed_is_one_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (_, path, begin, more) = programs_with_lines().remove(0);
    let plain = home.user_home.join(path);
    let compressed = PathBuf::from(format!("{}.zst", plain.display()));
    fs::create_dir_all(plain.parent().expect("a directory")).expect("created");
    let compress = |text: String| {
        // As Codex does it: under another name first.
        let new = compressed.with_extension("tmp");
        fs::write(&new, compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)).expect("written");
        fs::rename(&new, &compressed).expect("renamed");
    };
    compress(lines(&begin));
    chorusctl(&home, ["capture", "on", "codex"]).expect_success();
    let before = wait_until_has(&mut client, "codex", &["List them"]);
    wait_until_counted(&mut client, "codex", 1);
    // It continues.
    fs::write(&plain, lines(&begin)).expect("written");
    fs::remove_file(&compressed).expect("removed");
    append(&plain, &lines(&more));
    let after = wait_until_has(&mut client, "codex", &["List them", "a.py"]);
    assert_eq!(before.header.id, after.header.id);
    wait_until_counted(&mut client, "codex", 2);
    // It is compressed again, with a line that only the compressed file has.
    fs::remove_file(&plain).expect("removed");
    let thanks = serde_json::to_string(&more[0]).expect("JSON").replace("a.py", "Bye");
    compress(lines(&begin) + &lines(&more) + &thanks + "\n");
    wait_until_has(&mut client, "codex", &["List them", "a.py", "Bye"]);
    wait_until_counted(&mut client, "codex", 3);
    fs::write(&compressed, b"\x28\xb5\x2f\xfd damaged").expect("written");
    wait_until("the failure", DEADLINE, || {
        let status = status_of(&mut client, "codex");
        status.failure.filter(|failure| failure.reason.contains("cannot decompress")).map(|_| ())
    });
}
