//! Tests of all forms of chat messages.

use chorus_proto::methods::import::ImportFormat::Openai;
use chorus_proto::{Message, Role};

use super::super::ImportError;
use super::super::test_support::{RecordingSink, import_as, import_into, now};

mod anthropic_messages;

fn one(json: &str) -> Message {
    let found = import_as(Openai, format!("[{json}]")).unwrap();
    assert_eq!(found.skipped, []);
    found.sessions[0].messages[0].clone()
}

#[test]
fn roles_and_contents() {
    let found = import_as(
        Openai,
        r#"[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"u"},
            {"role":"assistant","content":null},{"role":"tool","tool_call_id":"c","content":["a",{"type":"text","text":"b"}]}]"#,
    )
    .unwrap();
    let talk = found.sessions[0].role_texts();
    assert_eq!(talk, ["system: s", "system: d", "user: u", "assistant: ", "tool_result: a\nb"]);
    let first = &found.sessions[0].messages[0];
    assert_eq!((first.id.as_str(), first.timestamp), ("new-1", now()));
    assert_eq!(first.source.as_ref().unwrap().format.as_deref(), Some("openai"));
}

#[test]
fn arguments_keep_every_digit() {
    let message = one(r#"{"role":"assistant","content":"","tool_calls":[
            {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\": 1.10, \"big\": 12345678901234567890123}"}},
            {"id":"2","type":"function","function":{"name":"g","arguments":"{broken"}},
            {"id":"3","type":"function","function":{"name":"h","arguments":"{\n \"a\": 1\n}"}},
            {"id":"4","type":"custom","custom":{"name":"i","input":"free text"}}]}"#);
    let params: Vec<_> = message.tool_calls.iter().map(|call| call.params.get()).collect();
    assert_eq!(
        params,
        [r#"{"x": 1.10, "big": 12345678901234567890123}"#, r#""{broken""#, r#"{"a":1}"#, r#""free text""#]
    );
    assert_eq!(message.tool_calls[3].id, "4");
}

#[test]
fn a_result_learns_its_tool() {
    let found = import_as(
        Openai,
        r#"[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"x"},{"role":"tool","tool_call_id":"9","content":"y"}]"#,
    )
    .unwrap();
    let messages = &found.sessions[0].messages;
    assert_eq!((messages[1].name.as_deref(), messages[2].name.as_deref()), (Some("f"), None));
}

#[test]
fn old_functions_are_tied_by_name() {
    let found = import_as(
        Openai,
        r#"[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
            {"role":"function","name":"f","content":"x"}]"#,
    )
    .unwrap();
    let messages = &found.sessions[0].messages;
    assert_eq!((messages[0].tool_calls[0].id.as_str(), messages[0].tool_calls[0].name.as_str()), ("f", "f"));
    assert_eq!(messages[1].role, Role::ToolResult);
    assert_eq!(messages[1].tool_call_id.as_deref(), Some("f"));
}

#[test]
fn pictures_are_attached_and_other_parts_kept() {
    let message = one(r#"{"role":"user","name":"ann","content":[{"type":"text","text":"look"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},
            {"type":"image_url","image_url":{"url":"https://x/y.jpg"}},
            {"type":"input_audio","input_audio":{"data":"..","format":"wav"}}],"mood":1.50}"#);
    assert_eq!(message.content, "look");
    assert_eq!(message.author.unwrap().name, "ann");
    assert_eq!(message.attachments[0].data.as_deref(), Some("aGk="));
    assert_eq!(message.attachments[1].url.as_deref(), Some("https://x/y.jpg"));
    assert_eq!(
        message.provider.unwrap().get(),
        r#"{"openai":{"mood":1.50,"parts":[{"type":"input_audio","input_audio":{"data":"..","format":"wav"}}]}}"#
    );
}

#[test]
fn what_is_not_understood_does_not_come_in_empty() {
    let entries = [
        r#"{"role":"user","content":""}"#,
        r#"{"role":"user","text":"x"}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":""}]}"#,
        r#"{"role":"assistant","tool_calls":[]}"#,
        r#"{"role":"tool","tool_call_id":"c"}"#,
    ];
    let found = import_as(Openai, format!("[{}]", entries.join(","))).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: ", "assistant: ", "tool_result: "]);
    let reasons: Vec<_> = found.skipped.iter().map(|(line, reason)| format!("{line} {reason}")).collect();
    assert_eq!(
        reasons,
        ["2 no content", "3 its content is empty", "4 its content has no readable part", "6 no content"]
    );
}

#[test]
fn a_refusal_is_the_answer() {
    let message = one(r#"{"role":"assistant","content":null,"refusal":"No."}"#);
    assert_eq!(message.content, "No.");
    assert_eq!(message.provider.unwrap().get(), r#"{"openai":{"refusal":"No."}}"#);
}

#[test]
fn ids_and_times_of_the_source_stay() {
    let message = one(r#"{"id":"m-1","created_at":1749895200,"role":"user","content":"x"}"#);
    assert_eq!((message.id.as_str(), message.timestamp.to_string().as_str()), ("m-1", "2025-06-14T10:00:00Z"));
}

#[test]
fn lines_of_messages_are_one_session_and_lines_of_conversations_one_each() {
    let talk = "\u{feff}{\"role\":\"user\",\"content\":\"a\"}\r\n\r\n{\"role\":\"assistant\",\"content\":\"b\"}\r\n";
    let found = import_as(Openai, talk).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: a", "assistant: b"]);

    let tuning = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},7]}\n{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n{\"messages\":[]}\n";
    let found = import_as(Openai, tuning).unwrap();
    assert_eq!(found.sessions.len(), 2);
    assert_eq!(found.sessions[1].role_texts(), ["user: b"]);
    assert_eq!(found.sessions[1].about.model.as_deref(), Some("m"));
    assert_eq!(found.skipped, [(1, "message 2: not a JSON object".into())]);
}

#[test]
fn an_object_over_many_lines_is_one_session() {
    let file = "{\n \"messages\": [\n  {\"role\": \"user\",\n   \"content\": \"a\"}\n ],\n \"model\": \"m\"\n}\n";
    let found = import_as(Openai, file).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: a"]);
    assert_eq!(found.sessions[0].about.model.as_deref(), Some("m"));
}

#[test]
fn a_bad_entry_does_not_take_the_others_with_it() {
    let mut file = br#"[{"role":"user","content":"a"},42,{"role":"user","content":{"x":1}},{"content":"x"},{"role":"user","content":""#
        .to_vec();
    file.extend(
        b"\xff\xfe\"},{\"role\":\"user\",\"content\":tru},{\"role\":\"assistant\",\"content\":\"b\"},{\"role\"",
    );
    let found = import_as(Openai, &file).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: a", "assistant: b"]);
    let reasons: Vec<_> = found.skipped.iter().map(|(line, reason)| format!("{line} {reason}")).collect();
    assert_eq!(
        reasons,
        [
            "2 not a JSON object",
            "3 content is not text or a list of parts",
            "4 no role",
            "5 not valid UTF-8",
            "6 broken JSON: expected ident",
            "8 unexpected end of file"
        ]
    );
}

#[test]
fn a_broken_line_does_not_take_the_others_with_it() {
    let found = import_as(Openai, "{\"role\":\n{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",").unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: a"]);
    let lines: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn nothing_readable_is_an_error_that_kept_its_reasons() {
    let mut memory = RecordingSink::default();
    let error = import_into(&mut memory, Openai, b"[1,2]").unwrap_err();
    assert!(matches!(error, ImportError::NoMessages));
    assert_eq!(memory.skipped.len(), 2);
    assert!(memory.sessions.is_empty());
    let cut = import_as(Openai, "[{\"role\":\"us").unwrap_err();
    assert!(matches!(cut, ImportError::Malformed { line: 1, .. }), "{cut:?}");
}
