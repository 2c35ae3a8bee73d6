use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::stored_message::StoredMessage;

fn message(value: serde_json::Value) -> Message {
    let new: NewMessage = serde_json::from_value(value).unwrap();
    new.complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH)
}

fn tokens(value: serde_json::Value) -> u64 {
    MessageSize::of_message(&message(value)).tokens()
}

#[test]
fn a_longer_text_is_never_fewer_tokens() {
    let text = "Fünf Wörter, 五个词, πέντε λέξεις, пять слов, 🎉 — and `code();`\n".repeat(20);
    let mut before = 0;
    for (end, _) in text.char_indices() {
        let now = tokens_of_text(&text[..end]);
        assert!(now == before || now == before + 1 || now == before + 2, "{end}");
        before = now;
    }
}

#[test]
fn other_scripts_have_more_tokens_a_character_than_english() {
    let each = |one: &str| tokens_of_text(&one.repeat(400));
    assert_eq!([each("a"), each("é"), each("д"), each("語"), each("🎉")], [100, 200, 200, 300, 400]);
    assert_eq!((tokens_of_text(""), tokens_of_text("a")), (0, 1));
}

#[test]
fn calls_images_and_other_files_count() {
    let said = tokens(json!({"role": "assistant", "content": "I look."}));
    let params = r#"{"path":"src/main.rs"}"#;
    let call = ToolCall { id: "c1".into(), name: "view".into(), params: RawValue::from_string(params.into()).unwrap() };
    let mut calling = message(json!({"role": "assistant", "content": "I look."}));
    calling.tool_calls = vec![call.clone()];
    let one = MessageSize::of_message(&calling).tokens();
    assert!(one >= said + (params.len() / 4) as u64, "{one} {said}");
    calling.tool_calls.push(call);
    assert!(MessageSize::of_message(&calling).tokens() > one);

    let attached = |kind: &str, data: &str| {
        tokens(json!({"role": "user", "content": "Look!", "attachments": [
            {"name": "a", "media_type": kind, "data": data}]}))
    };
    let plain = tokens(json!({"role": "user", "content": "Look!"}));
    assert_eq!(attached("image/png", ""), plain + IMAGE_TOKENS);
    assert_eq!(attached("image/png", &"A".repeat(100_000)), plain + IMAGE_TOKENS, "an image is no text");
    assert_eq!(attached("application/pdf", &"A".repeat(100_000)), plain + FILE_TOKENS, "it is named only");
}

#[test]
fn what_is_stored_has_the_tokens_of_what_was_said() {
    for value in [
        json!({"role": "user", "content": "plain"}),
        json!({"role": "user", "content": "quoted \"é\" \\ \n \u{1} 語 🎉"}),
        json!({"role": "user", "content": "", "attachments": [{"name": "a", "media_type": "image/png", "data": "AAAA"},
            {"name": "b", "media_type": "text/plain"}, {"name": "c"}]}),
        json!({"role": "assistant", "content": "x", "tool_calls": [
            {"id": "1", "name": "view", "params": {"n": 1.50, "é": "\u{1}"}}, {"id": "2", "name": "b", "params": []}]}),
        json!({"role": "tool_result", "content": "done", "tool_call_id": "1", "name": "view"}),
    ] {
        let said = message(value);
        let due = MessageSize::of_message(&said).tokens();
        let stored = StoredMessage::new(&said).unwrap();
        assert_eq!(stored.tokens(), due, "{said:?}");
        assert_eq!(StoredMessage::parse(stored.json().clone()).unwrap().tokens(), due, "{said:?}");
        assert_eq!(StoredMessage::from_messages(&[said]).unwrap()[0].tokens(), due);
    }
    let odd = br#"{"id":"1","role":"user","content":"abcd","timestamp":"2026-01-02T03:04:05Z","attachments":"none"}"#;
    let odd = StoredMessage::parse(bytes::Bytes::from_static(odd)).unwrap();
    assert_eq!(odd.tokens(), tokens(json!({"role": "user", "content": "abcd"})), "what is no list is no attachment");
    assert_eq!(odd.role(), Role::User);
    let slashed = br#"{"id":"1","role":"user","content":"a\/b\n","timestamp":"2026-01-02T03:04:05Z"}"#;
    let slashed = StoredMessage::parse(bytes::Bytes::from_static(slashed)).unwrap();
    assert_eq!(slashed.tokens(), tokens(json!({"role": "user", "content": "a/b\n"})));
}

#[test]
fn a_message_counts_as_it_is_sent() {
    for text in ["", "plain", "quoted \"é\" \\ \n\t\r \u{1}\u{8}\u{c}\u{7f} 語 🎉"] {
        assert_eq!(json_escaped_len(text), serde_json::to_string(text).unwrap().len() as u64 - 2, "{text:?}");
    }
    // The longer of the two wire formats, with ids of common length.
    let id = "call_0123456789abcdefghijkl";
    let params = json!({"path": "src/a.rs", "file_text": "fn main() {\n\t\"x\";\n}\n".repeat(20)}).to_string();
    let said =
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "name": "create_file", "params": null}]});
    let mut calling = message(said);
    calling.tool_calls[0].params = RawValue::from_string(params.clone()).unwrap();
    let result = message(json!({"role": "tool_result", "content": "a\nb".repeat(50), "tool_call_id": id}));
    let sent = [
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "create_file", "arguments": params}}]}),
        json!({"role": "tool", "content": result.content, "tool_call_id": id}),
    ];
    for (message, sent) in [calling, result].iter().zip(sent) {
        let (counted, sent) = (MessageSize::of_message(message).tokens() * 4, sent.to_string().len() as u64 + 1);
        assert!(counted >= sent && counted <= sent + 40, "{counted} {sent}");
    }
}
