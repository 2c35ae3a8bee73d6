//! Tests of ChatGPT's conversations.json.

use chorus_proto::methods::import::ImportFormat::{Auto, Chatgpt};

use super::super::ImportError;
use super::super::test_support::import_as;

fn node(id: &str, parent: &str, message: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
    format!("\"{id}\":{{\"id\":\"{id}\",\"parent\":{parent},\"children\":[],\"message\":{message}}}")
}

fn said(id: &str, role: &str, at: u64, rest: &str) -> String {
    format!("{{\"id\":\"{id}\",\"author\":{{\"role\":\"{role}\",\"name\":null}},\"create_time\":{at}.5,{rest}}}")
}

fn text(id: &str, role: &str, at: u64, text: &str) -> String {
    said(
        id,
        role,
        at,
        &format!("\"recipient\":\"all\",\"content\":{{\"content_type\":\"text\",\"parts\":[\"{text}\"]}}"),
    )
}

fn talk(nodes: &[String], current: &str) -> String {
    format!(
        "{{\"title\":\"A talk\",\"create_time\":1700000000.25,\"update_time\":1700000100,\"mapping\":{{{}}},\
         \"current_node\":\"{current}\",\"conversation_id\":\"7d444840-9dc0-41d1-b245-5ffdce74fad2\"}}",
        nodes.join(",")
    )
}

/// A question with two answers; the conversation continues from the second one.
fn branched() -> Vec<String> {
    vec![
        node("root", "", "null"),
        node("sys", "root", &text("sys", "system", 1, "")),
        node("q", "sys", &text("q", "user", 2, "Why?")),
        node("a1", "q", &text("a1", "assistant", 3, "First.")),
        node("a2", "q", &text("a2", "assistant", 4, "Second.")),
        node("q2", "a2", &text("q2", "user", 5, "And?")),
        node("lost", "a1", &text("lost", "user", 6, "Dropped.")),
    ]
}

#[test]
fn the_path_to_the_current_node_is_the_conversation_and_the_rest_is_kept_and_told() {
    let found = import_as(Auto, format!("[{}]", talk(&branched(), "q2"))).unwrap();
    assert_eq!(found.format, Chatgpt);
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Why?", "assistant: Second.", "user: And?"]);
    let about = &session.about;
    assert_eq!(about.description.as_deref(), Some("A talk"));
    assert_eq!(about.id.unwrap().to_string(), "7d444840-9dc0-41d1-b245-5ffdce74fad2");
    assert_eq!(about.started_at.unwrap().to_string(), "2023-11-14T22:13:20.25Z");
    assert_eq!((session.messages[0].id.as_str(), session.messages[0].timestamp.as_millisecond()), ("q", 2500));
    let kept = session.messages[0].provider.as_ref().unwrap().get();
    assert!(kept.contains("First.") && kept.contains("Dropped."), "{kept}");
    assert_eq!(found.skipped.len(), 1);
    assert!(found.skipped[0].1.starts_with("2 messages on other branches"), "{:?}", found.skipped);
    for current in ["nowhere", "lost"] {
        let found = import_as(Chatgpt, talk(&branched(), current)).unwrap();
        assert_eq!(found.sessions[0].role_texts(), ["user: Why?", "assistant: First.", "user: Dropped."], "{current}");
    }
}

#[test]
fn every_conversation_of_the_file_is_a_session() {
    let one = talk(&[node("q", "", &text("q", "user", 2, "One"))], "q");
    let two = talk(&[node("q", "", &text("q", "user", 2, "Two"))], "q");
    for file in [format!("[{one},\n{two}]"), format!("{one}\n{two}\n")] {
        let found = import_as(Auto, file).unwrap();
        let talks: Vec<_> = found.sessions.iter().flat_map(|session| session.role_texts()).collect();
        assert_eq!(talks, ["user: One", "user: Two"]);
    }
    let found = import_as(Chatgpt, format!("[42,{{\"a\":1}},{one},{{\"mapping\":")).unwrap();
    let lines: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!((found.sessions.len(), lines), (1, vec![1, 2, 4]));
    assert!(matches!(import_as(Chatgpt, "[{\"mapping\":{}}]"), Err(ImportError::NoMessages)));
}

#[test]
fn tools_pictures_and_thoughts() {
    let nodes = [
        node(
            "q",
            "",
            &said(
                "q",
                "user",
                1,
                "\"content\":{\"content_type\":\"multimodal_text\",\"parts\":[{\"content_type\":\"image_asset_pointer\",\"asset_pointer\":\"file-service://file-abc\",\"size_bytes\":9},\"Plot it\"]}",
            ),
        ),
        node(
            "t",
            "q",
            &said(
                "t",
                "assistant",
                2,
                "\"content\":{\"content_type\":\"thoughts\",\"thoughts\":[{\"summary\":\"s\",\"content\":\"hm\"}]}",
            ),
        ),
        node(
            "c",
            "t",
            &said(
                "c",
                "assistant",
                3,
                "\"recipient\":\"python\",\"content\":{\"content_type\":\"code\",\"language\":\"python\",\"text\":\"print(1)\"}",
            ),
        ),
        node(
            "r",
            "c",
            "{\"id\":\"r\",\"author\":{\"role\":\"tool\",\"name\":\"python\"},\"create_time\":null,\"content\":{\"content_type\":\"execution_output\",\"text\":\"1\"}}",
        ),
        node(
            "a",
            "r",
            &said(
                "a",
                "assistant",
                5,
                "\"metadata\":{\"model_slug\":\"gpt-x\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"One.\"]}",
            ),
        ),
    ];
    let found = import_as(Auto, format!("[{}]", talk(&nodes, "a"))).unwrap();
    assert_eq!(found.skipped, []);
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Plot it", "assistant: ", "tool_result: 1", "assistant: One."]);
    let [question, call, result, _] = &session.messages[..] else { panic!("four") };
    assert_eq!(question.attachments[0].url.as_deref(), Some("file-service://file-abc"));
    assert_eq!((&*call.tool_calls[0].name, call.tool_calls[0].params.get()), ("python", "\"print(1)\""));
    assert!(call.provider.as_ref().unwrap().get().contains("thoughts"));
    assert_eq!((result.tool_call_id.as_deref(), result.name.as_deref()), (Some("c"), Some("python")));
    assert_eq!(session.about.model.as_deref(), Some("gpt-x"));
}

#[test]
fn a_tree_that_goes_round_is_walked_once() {
    let nodes = [node("a", "b", &text("a", "user", 1, "x")), node("b", "a", &text("b", "user", 2, "y"))];
    let found = import_as(Chatgpt, talk(&nodes, "a")).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: y", "user: x"]);
}

#[test]
fn what_is_no_json_is_a_broken_entry_and_the_rest_is_read() {
    for odd in ["\u{c}", "\u{b}", "\0", "\u{a0}", "x\u{c}"] {
        for between in ["", " "] {
            let talk = talk(&[node("a", "", &text("a", "user", 1, "x"))], "a");
            let found = import_as(Chatgpt, format!("{odd}{between}{talk}\n{odd}")).unwrap();
            assert_eq!(found.sessions[0].role_texts(), ["user: x"], "{odd:?}{between:?}");
            assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [1, 3], "{odd:?}");
        }
    }
}

#[test]
fn files_of_a_message_are_kept_even_where_nothing_is_said() {
    let metadata = "\"metadata\":{\"attachments\":[{\"id\":\"file-a\",\"name\":\"plan.pdf\",\"size\":7,\
        \"mimeType\":\"application/pdf\"},{\"id\":\"file-b\",\"name\":\"b.png\",\"mimeType\":\"image/png\"},{},7]}";
    let parts = "\"content\":{\"content_type\":\"multimodal_text\",\"parts\":[\"\",{\"asset_pointer\":\
        \"file-service://file-b\",\"size_bytes\":9}]}";
    let silent = "\"content\":{\"content_type\":\"text\",\"parts\":[\"\"]}";
    let nodes = [
        node("q", "", &said("q", "user", 1, &format!("{silent},{metadata}"))),
        node("r", "q", &said("r", "user", 2, &format!("{parts},{metadata}"))),
    ];
    let found = import_as(Auto, talk(&nodes, "r")).unwrap();
    let messages = &found.sessions[0].messages;
    assert_eq!(messages.len(), 2);
    let file = &messages[0].attachments[0];
    assert_eq!((&*file.name, file.size, file.media_type.as_deref()), ("plan.pdf", Some(7), Some("application/pdf")));
    assert_eq!(file.url.as_deref(), Some("file-service://file-a"));
    // The image occurs once, with its name and with the size from its part.
    let names = messages[1].attachments.iter().map(|file| (&*file.name, file.size)).collect::<Vec<_>>();
    assert_eq!(names, [("b.png", Some(9)), ("plan.pdf", Some(7)), ("file", None)]);
}
