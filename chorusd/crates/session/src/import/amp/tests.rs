//! Tests of Amp's threads.

use chorus_proto::methods::import::ImportFormat::{Amp, Auto};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001";

fn thread(messages: &[&str]) -> String {
    format!(
        r#"{{"v":4,"id":"T-{ID}","created":1768178184000,"title":"The loop","agentMode":"smart","nextMessageId":3,"env":{{"initial":{{"trees":[{{"displayName":"shop","uri":"file:///srv/my%20shop","repository":{{"type":"git","ref":"refs/heads/main"}}}}],"platform":{{}}}}}},"messages":[{}]}}"#,
        messages.join(",")
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, Amp);
    found
}

#[test]
fn a_thread_comes_whole() {
    let found = read(&thread(&[
        r#"{"role":"user","messageId":0,"content":[{"type":"text","text":"Fix it"},{"type":"image","source":{"type":"base64","mediaType":"image/png","data":"aGk="}}],"meta":{"sentAt":1768178271000}}"#,
        r#"{"role":"assistant","messageId":1,"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Sure."},{"type":"tool_use","complete":true,"id":"t1","name":"Bash","input":{"n":1.10}},{"type":"tool_use","id":"t2","name":"Read","input":{}},{"type":"tool_use","id":"t3","name":"Task","input":{}}],"state":{"type":"complete"},"usage":{"model":"m","inputTokens":2,"outputTokens":8,"cacheReadInputTokens":3,"cacheCreationInputTokens":5,"timestamp":"2026-01-12T00:37:55.000Z"}}"#,
        r#"{"role":"user","messageId":2,"content":[{"type":"text","text":"Go on"},{"type":"tool_result","toolUseID":"t1","run":{"status":"done","result":{"output":"bad\n","exitCode":1}}},{"type":"tool_result","toolUseID":"t2","run":{"status":"error","error":{"message":"gone"}}},{"type":"tool_result","toolUseID":"t3","run":{"status":"in-progress"}}]}"#,
    ]));
    let session = &found.sessions[0];
    let due = ["user: Fix it", "assistant: Sure.", "tool_result: bad\n", "tool_result: gone", "user: Go on"];
    assert_eq!(session.role_texts(), due);
    let [question, reply, failed, gone, _] = &session.messages[..] else { panic!("five") };
    assert_eq!((question.id.as_str(), question.attachments[0].name.as_str()), ("0", "image-1.png"));
    assert_eq!(question.timestamp.as_millisecond(), 1_768_178_271_000);
    assert_eq!((reply.tool_calls.len(), reply.tool_calls[0].params.get()), (3, r#"{"n":1.10}"#));
    let usage = reply.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(10), Some(8), Some(3)));
    assert!(reply.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((failed.name.as_deref(), failed.is_error), (Some("Bash"), true));
    assert!(gone.is_error && gone.timestamp == reply.timestamp);
    let about = &session.about;
    let conversation = format!("T-{ID}");
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(&*conversation), ID));
    assert_eq!((about.project.as_deref(), about.branch.as_deref()), (Some("/srv/my shop"), Some("main")));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The loop"), Some("m")));
}

#[test]
fn results_of_other_shapes_are_text() {
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","messageId":1,"content":[{{"type":"tool_use","id":"{id}","name":"x","input":{{}}}}]}}"#
        )
    };
    let result = |run: &str| {
        format!(r#"{{"role":"user","messageId":2,"content":[{{"type":"tool_result","toolUseID":"t","run":{run}}}]}}"#)
    };
    for (run, due) in [
        (r#"{"status":"done","result":"plain"}"#, "tool_result: plain"),
        (r#"{"status":"done","result":{"content":"a.py"}}"#, "tool_result: a.py"),
        (
            r#"{"status":"done","result":[1,
            2]}"#,
            "tool_result: [1,2]",
        ),
        (r#"{"status":"rejected-by-user"}"#, "tool_result: rejected-by-user"),
        (r#"{"status":"cancelled"}"#, "tool_result: cancelled"),
    ] {
        let found = read(&thread(&[&call("t"), &result(run)]));
        assert_eq!(found.sessions[0].role_texts()[1], due, "{run}");
        assert_eq!(found.sessions[0].messages[1].is_error, !run.contains("done"), "{run}");
    }
}

#[test]
fn a_broken_message_does_not_take_the_rest_along() {
    let found = read(&thread(&["12", r#"{"role":"oracle"}"#, r#"{"role":"user","messageId":0,"content":"Hello"}"#]));
    assert_eq!(found.sessions[0].role_texts(), ["user: Hello"]);
    assert_eq!(found.skipped.len(), 2);
}
