//! Tests of chats of Qwen Code, in the form of its `ChatRecord` (QwenLM/qwen-code, chatRecordingService).

use chorus_proto::Role;
use chorus_proto::methods::import::ImportFormat::{Auto, ClaudeCode};

use super::super::super::test_support::import_as;

const CHAT: &str = concat!(
    r#"{"uuid":"a","parentUuid":null,"sessionId":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2026-01-01T00:00:00Z","type":"user","cwd":"/w","version":"0.5.0","message":{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}}"#,
    "\n",
    r#"{"uuid":"b","parentUuid":"a","sessionId":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2026-01-01T00:00:01Z","type":"assistant","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"id":"c1","name":"read_file","args":{"n":1.50}}}]},"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"cachedContentTokenCount":4,"totalTokenCount":12}}"#,
    "\n",
    r#"{"uuid":"c","parentUuid":"b","sessionId":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2026-01-01T00:00:02Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"error":"no such file"}}}]},"toolCallResult":{"callId":"c1","status":"error"}}"#,
    "\n",
    r#"{"uuid":"d","parentUuid":"c","sessionId":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2026-01-01T00:00:03Z","type":"system","subtype":"ui_telemetry","systemPayload":{}}"#,
    "\n",
    r#"{"uuid":"e","parentUuid":"d","sessionId":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2026-01-01T00:00:04Z","type":"assistant","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"It is gone."}]}}"#,
);

#[test]
fn a_chat_comes_whole() {
    let memory = import_as(Auto, CHAT).unwrap();
    assert_eq!((memory.format, &memory.skipped, memory.sessions.len()), (ClaudeCode, &vec![], 1));
    let found = &memory.sessions[0];
    assert_eq!(
        found.role_texts(),
        ["user: look", "assistant: I look.", "tool_result: no such file", "assistant: It is gone."]
    );
    let [user, reply, result, _] = &found.messages[..] else { panic!("too few") };
    assert_eq!(user.attachments[0].data.as_deref(), Some("aGk="));
    assert_eq!(user.source.as_ref().unwrap().format.as_deref(), Some("qwen-code"));
    let call = &reply.tool_calls[0];
    assert_eq!((&*call.id, &*call.name, call.params.get()), ("c1", "read_file", r#"{"n":1.50}"#));
    let usage = reply.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(9), Some(3), Some(4)));
    assert_eq!(reply.provider.as_ref().unwrap().get(), r#"{"gemini":{"blocks":[{"text":"hm","thought":true}]}}"#);
    assert_eq!((result.role, result.is_error, result.name.as_deref()), (Role::ToolResult, true, Some("read_file")));
    assert_eq!(result.tool_call_id.as_deref(), Some("c1"));
    assert_eq!(found.about.model.as_deref(), Some("qwen3-coder"));
    assert!(found.about.id.is_some());
}
