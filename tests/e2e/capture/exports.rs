//! Conversations that Chorus itself wrote for another program.

use chorus_proto::{NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;

use super::*;

/// Exports a session and returns the file.
fn export(home: &Home, session: &str, tool: &str) -> (PathBuf, String) {
    let mut said = chorusctl(home, ["--json", "session", "export", session, "--as", tool]).expect_json();
    let written = said["conversations"][0].take();
    assert_eq!(written["new"], true, "{written}");
    let text = |key: &str| written[key].as_str().expect("a text").to_owned();
    (text("file").into(), text("id"))
}

/// Appends a message as the tool does.
fn continue_in(tool: &str, file: &Path, id: &str, text: &str) {
    let at = "2099-01-03T10:00:00.000Z";
    let before = fs::read_to_string(file).expect("the file");
    let mut uuids =
        before.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["uuid"].as_str().map(str::to_owned));
    let line = match tool {
        "codex" => json!({"timestamp": at, "type": "response_item", "payload":
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}}),
        "gemini" => json!({"id": "99999999", "timestamp": at, "type": "user", "content": [{"text": text}]}),
        _ => {
            json!({"type": "user", "uuid": "99999999-0000-4000-8000-000000000009", "parentUuid": uuids.next_back(), "sessionId": id,
            "isSidechain": false, "timestamp": at, "cwd": "/home/mara/shop", "message": {"role": "user", "content": text}})
        }
    };
    append(file, &format!("{line}\n"));
}

/// A Claude Code conversation of two messages that was captured.
fn with_talk(home: &Home, client: &mut Client) -> (Transcript, Session) {
    captured_talk(home, client, &["Where does the kestrel nest?", "In tower 7."])
}

#[test]
fn an_export_is_not_a_conversation_of_its_own_until_it_grows() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (_, session) = with_talk(&home, &mut client);
    client.init("birds");
    client.append_all(
        "birds",
        vec![NewMessage::text(Role::User, "And the owl?"), NewMessage::text(Role::Assistant, "In the barn.")],
    );
    let own = client.save("birds", "owls");
    let (talk, owls) = (session.header.id.to_string(), own.header.id.to_string());
    let written: Vec<_> = [(&talk, "codex"), (&talk, "gemini"), (&owls, "codex"), (&owls, "claude-code")]
        .map(|(id, tool)| (id, tool, export(&home, id, tool)))
        .into();
    capture_another(&home, &mut client);
    // What the user had typed still names one session.
    for session in [&session, &own] {
        chorusctl(&home, ["--agent", "birds", "show", &session.header.id.to_string()[..4]]).expect_success();
    }
    let all = captured(&mut client);
    assert_eq!(all.len(), 3, "the two and the other: {all:#?}");
    let found = wait_until("the index", DEADLINE, || {
        let found = chorusctl(&home, ["search", "kestrel", "--all-agents"]).expect_success();
        found.contains("message 1 ").then_some(found)
    });
    assert_eq!(found.matches("message 1 ").count(), 1, "{found}");
    assert_eq!(status_of(&mut client, "codex").skipped_lines, 0);
    for (of, tool, (file, id)) in &written {
        continue_in(tool, file, id, &format!("more in {tool}"));
        let grown = wait_until("the continuation", DEADLINE, || {
            let all = captured(&mut client);
            let is_it =
                |session: &&Session| session.header.source.as_ref().is_some_and(|source| source.conversation == *id);
            all.iter().find(is_it).cloned()
        });
        assert_eq!(grown.header.parent_id.map(|id| id.to_string()).as_ref(), Some(*of), "{tool}");
        assert_eq!(kept(&grown).last(), Some(&format!("more in {tool}")));
    }
    assert_eq!(captured(&mut client).len(), 3 + written.len(), "each once");
}

#[test]
fn a_forgotten_conversation_takes_its_exports_along() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (talk, session) = with_talk(&home, &mut client);
    let (grown, grown_id) = export(&home, &session.short_id, "codex");
    continue_in("codex", &grown, &grown_id, "more");
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert_eq!(captured(&mut client).len(), 2);
    let (unchanged, id) = export(&home, &session.short_id, "gemini");
    chorusctl(&home, ["capture", "forget", &session.short_id]).expect_success();
    continue_in("gemini", &unchanged, &id, "more");
    continue_in("codex", &grown, &grown_id, "still more");
    chorusctl(&home, ["capture", "on"]).expect_success();
    // What had grown is a conversation of its own.
    let left = captured(&mut client);
    assert_eq!(left.len(), 1, "{left:#?}");
    assert_eq!(kept(&left[0]).last().map(String::as_str), Some("still more"));
    chorusctl(&home, ["capture", "forget", "--undo", &talk.id]).expect_success();
    wait_until_kept(&mut client, &talk);
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert_eq!(captured(&mut client).len(), 3);
}

#[test]
fn an_export_of_what_is_gone_is_captured() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (talk, session) = with_talk(&home, &mut client);
    // Claude Code has deleted it; the export brings it back.
    fs::remove_file(&talk.path).expect("removed");
    let (file, id) = export(&home, &session.short_id, "claude-code");
    assert_eq!(id, talk.id);
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert_eq!(captured(&mut client).len(), 1, "no revision");
    continue_in("claude-code", &file, &id, "And the owl?");
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert!(
        captured(&mut client).iter().any(|session| kept(session).last().map(String::as_str) == Some("And the owl?"))
    );
    // The user asks for it.
    chorusctl(&home, ["import", file.to_str().expect("a path")]).expect_success();
}
