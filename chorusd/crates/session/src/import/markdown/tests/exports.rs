//! Tests of exported files: as they are, converted, edited, cut off, without data, and of earlier releases.

use chorus_proto::Message;

use super::*;

const ROLES: [&str; 4] = ["user", "assistant", "tool_result", "system"];

/// Returns a number below `end`, a different one each time.
fn random(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % end
}

/// A conversation of random texts in random roles.
fn random_session(state: &mut u64) -> SessionFile {
    let count = 1 + random(state, 12);
    let messages = (0..count).map(|n| {
        let role = ROLES[random(state, 4)];
        let mut text = |separator: &str| {
            let parts: Vec<_> = (0..=random(state, 3)).map(|_| TEXTS[random(state, TEXTS.len())]).collect();
            parts.join(separator)
        };
        let mut message = json!({"id": format!("m{n}"), "role": role, "content": text("\n"),
            "timestamp": "2026-01-02T03:00:05.5Z"});
        match role {
            "assistant" => {
                let params: Value = serde_json::from_str(&text("")).unwrap_or_else(|_| json!({"t": text("\r\n")}));
                message["tool_calls"] = json!([{"id": text(""), "name": text(" "), "params": params}]);
                message["provider"] = json!({"a": text("--")});
            }
            "user" => message["author"] = json!({"id": "1", "name": text(":** ")}),
            _ => message["name"] = text("").into(),
        }
        message
    });
    session(&messages.collect::<Vec<_>>())
}

fn export_md(file: &SessionFile) -> String {
    let mut text = Vec::new();
    export::write(&mut text, file, None, ExportFormat::Md).unwrap();
    String::from_utf8(text).unwrap()
}

fn stored_lines(file: &SessionFile) -> Vec<String> {
    file.messages.iter().map(|stored| serde_json::to_string(&stored.to_message().unwrap()).unwrap()).collect()
}

#[test]
fn every_conversation_comes_back_to_the_byte() {
    let state = &mut 7;
    for _ in 0..300 {
        let file = random_session(state);
        let text = export_md(&file);
        assert_eq!(text.matches("<!-- chorus data\n").count(), 1, "{text}");
        assert!(text.ends_with("\n-->\n"));
        // As it is, as Windows and some editors save it, and without the last line end.
        let windows = text.replace('\n', "\r\n");
        let marked = format!("\u{feff}{text}");
        for variant in [&text, &windows, &marked, text.trim_end()] {
            let found = import_as(Auto, variant).unwrap();
            assert_eq!(found.skipped, [], "{text}");
            assert_eq!(found.sessions[0].json, stored_lines(&file), "{text}");
        }
    }
}

#[test]
fn the_visible_part_has_no_data_and_plain_is_just_that() {
    let state = &mut 11;
    for _ in 0..100 {
        let file = random_session(state);
        let text = export_md(&file);
        let mut plain = Vec::new();
        export::write_plain(&mut plain, &file).unwrap();
        let plain = String::from_utf8(plain).unwrap();
        let (visible, _) = text.split_once("<!-- chorus data\n").unwrap();
        assert_eq!(visible.trim_end(), plain.trim_end());
        assert!(!plain.contains("<!-- chorus data"), "{plain}");
        // Hostile texts may be cut differently there, but nothing fails.
        let _ = import_as(Markdown, &plain);
    }
}

fn talk() -> SessionFile {
    session(&[
        json!({"id": "1", "role": "user", "content": "Look at it", "timestamp": "2026-01-02T03:00:00Z"}),
        json!({"id": "2", "role": "assistant", "content": "I do.\n\n**Note:** one", "timestamp": "2026-01-02T03:00:01Z",
            "tool_calls": [{"id": "c1", "name": "view", "params": {"a": 1}}]}),
        json!({"id": "3", "role": "tool_result", "content": "data", "timestamp": "2026-01-02T03:00:02Z",
            "tool_call_id": "c1", "name": "view"}),
        json!({"id": "4", "role": "assistant", "content": "Done.", "timestamp": "2026-01-02T03:00:03Z"}),
        json!({"id": "5", "role": "user", "content": "Thanks", "timestamp": "2026-01-02T03:00:04Z"}),
    ])
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.id).collect()
}

#[test]
fn white_space_around_a_reply_needs_no_block() {
    let messages = ["\n Sure.\n\n", " ", "\u{2028}**You:** x\n"]
        .map(|text| json!({"id": "1", "role": "assistant", "content": text, "timestamp": "2026-01-02T03:00:00Z"}));
    let file = session(&messages);
    let text = export_md(&file);
    assert!(text.contains("**:** Sure.\n\n**:**\n\n**:**\n\n**You:** x\n"), "{text}");
    assert_eq!(import_as(Auto, &text).unwrap().sessions[0].json, stored_lines(&file));
}

#[test]
fn an_edited_file_keeps_the_data_of_what_is_left() {
    let text = export_md(&talk());
    let edit = |from: &str, to: &str| {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text);
        let mut found = import_as(Auto, edited).unwrap();
        (found.sessions.remove(0).messages, found.skipped)
    };
    let (messages, skipped) = edit("I do.\n", "I do, and more.\n\n**Other:** two\n");
    assert_eq!((ids(&messages), skipped.len()), (vec!["1", "2", "3", "4", "5"], 0));
    assert_eq!(messages[1].content, "I do, and more.\n\n**Other:** two\n\n**Note:** one");
    // A result that was removed, and a whole query.
    let (messages, skipped) = edit("**Tool result (view):**\n\n```text content\ndata\n```\n\n", "");
    assert_eq!((ids(&messages), &*messages[2].content), (vec!["1", "2", "4", "5"], "Done."));
    assert!(skipped[0].1.contains("text of 1 message is missing"), "{skipped:?}");
    let start = text.find("## Query 1").unwrap();
    let end = text.find("## Query 2").unwrap();
    let (messages, _) = edit(&text[start..end], "");
    assert_eq!((ids(&messages), &*messages[0].content), (vec!["5"], "Thanks"));
    // A query that was added at the end has no data, but a text.
    let (messages, skipped) =
        edit("\n<!-- chorus data", "\n## Query 3 (04:00:00)\n\n**You:** More\n\n<!-- chorus data");
    assert_eq!((messages.len(), &*messages[5].content, skipped.len()), (6, "More", 0));
    let after = format!("{text}\n## Query 3 (04:00:00)\n\n**You:** More\n");
    assert_eq!(import_as(Auto, after).unwrap().sessions[0].messages[5].content, "More");
}

#[test]
fn damaged_data_costs_no_text() {
    let text = export_md(&talk());
    let texts = ["Look at it", "I do.\n\n**Note:** one", "data", "Done.", "Thanks"];
    let (visible, _) = text.split_once("<!-- chorus data\n").unwrap();
    let record = text.lines().find(|line| line.contains("\"id\":\"3\"")).unwrap();
    let data = text.lines().find(|line| line.starts_with("{\"text_bytes\"")).unwrap();
    for (damaged, reports) in [
        (text.replacen(record, "{oops}", 1), 1),
        (text.replacen(data, "{}", 1), 1),
        (text.replacen("\n-->\n", "\n", 1), 1),
        (format!("{visible}<!-- chorus data\n"), 1),
        (format!("{visible}<!-- chorus data\n-->\n"), 0),
    ] {
        let found = import_as(Auto, &damaged).unwrap();
        let session = &found.sessions[0];
        let read: Vec<_> = session.messages.iter().map(|message| &*message.content).collect();
        assert_eq!(read, texts, "{damaged}");
        assert_eq!(session.messages[2].role, Role::ToolResult);
        assert_eq!(found.skipped.len(), reports, "{:?}", found.skipped);
    }
}

#[test]
fn plain_text_pairs_results_with_their_calls() {
    let mut plain = Vec::new();
    export::write_plain(&mut plain, &talk()).unwrap();
    let found = import_as(Auto, plain).unwrap();
    let messages = &found.sessions[0].messages;
    let call = &messages[1].tool_calls[0];
    assert_eq!(
        (&*call.name, call.params.get(), &*messages[1].content),
        ("view", "{\"a\":1}", "I do.\n\n**Note:** one")
    );
    assert_eq!((messages[2].tool_call_id.as_ref(), messages[2].name.as_deref()), (Some(&call.id), Some("view")));
}

/// The file was written by release 0.1.0, from the messages beside it.
#[test]
fn an_export_of_an_earlier_release_comes_back() {
    let text = include_bytes!("../../../../../../../tests/fixtures/exports/0.1.0.md");
    let lines = include_str!("../../../../../../../tests/fixtures/exports/0.1.0.jsonl");
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.skipped, []);
    // Those releases escaped hyphens in provider blocks, so these are compared by their meaning.
    let message = |line: &str| serde_json::to_string(&serde_json::from_str::<Message>(line).unwrap()).unwrap();
    let value = |line: &str| serde_json::from_str::<Value>(&message(line)).unwrap();
    let read: Vec<_> = found.sessions[0].json.iter().map(|line| value(line)).collect();
    assert_eq!(read, lines.lines().map(value).collect::<Vec<_>>());
    assert_eq!(found.sessions[0].about.description.as_deref(), Some("All --> kinds\nof texts"));
}
