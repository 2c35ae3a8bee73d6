//! Tests of exported conversations.

use chorus_proto::SourceKind;
use chorus_proto::methods::import::ImportFormat::{Auto, Opencode};

use super::super::test_support::import_as;

const INFO: &str = r#"{"id":"ses_1","slug":"x","projectID":"global","directory":"/srv/shop","title":"The files","version":"1.18.33","time":{"created":1772355600000,"updated":1772355600000}"#;

const MESSAGES: [&str; 6] = [
    r#"{"info":{"role":"user","time":{"created":1772355601000},"id":"msg_1"},"parts":[{"type":"text","synthetic":true,"text":"Called the Read tool"},{"type":"file","mime":"image/png","url":"data:image/png;base64,aGk=","filename":"red.png"},{"type":"text","text":"List them"}]}"#,
    r#"{"info":{"role":"assistant","id":"msg_2","providerID":"p","modelID":"m","cost":0.5,"tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":3,"write":4}},"time":{"created":1772355602000}},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"Sure."},{"type":"tool","tool":"ls","callID":"c1","state":{"status":"completed","input":{"n":1.10},"output":"a.py","metadata":{"exit":0},"time":{"start":1,"end":1772355603000}}},{"type":"tool","tool":"sh","callID":"c2","state":{"status":"completed","input":{},"output":"bad","metadata":{"exit":3}}},{"type":"tool","tool":"rm","callID":"c3","state":{"status":"error","input":{},"error":"denied"}},{"type":"tool","tool":"cp","callID":"c4","state":{"status":"running","input":{}}},{"type":"step-finish","tokens":{"input":10}}]}"#,
    r#"{"info":{"role":"user","id":"msg_3","time":{"created":1772355604000}},"parts":[{"type":"compaction","auto":true}]}"#,
    r#"{"info":{"role":"assistant","summary":true,"mode":"compaction","id":"msg_4","time":{"created":1772355605000}},"parts":[{"type":"text","text":"All was listed."}]}"#,
    r#"{"info":{"role":"user","id":"msg_5","time":{"created":1772355606000}},"parts":[{"type":"text","synthetic":true,"text":"Continue if you have next steps"}]}"#,
    r#"{"info":{"role":"king","id":"msg_6"},"parts":[]}"#,
];

fn document(more: &str) -> String {
    format!("{{\"info\":{INFO}{more}}},\n\"messages\":[{}]}}", MESSAGES.join(","))
}

#[test]
fn a_conversation_comes_whole() {
    let found = import_as(Auto, document("")).unwrap();
    assert_eq!((found.format, found.skipped.len(), found.sessions.len()), (Opencode, 1, 1));
    let session = &found.sessions[0];
    let due = [
        "user: List them",
        "assistant: Sure.",
        "tool_result: a.py",
        "tool_result: bad",
        "tool_result: denied",
        "system: All was listed.",
        "user: Continue if you have next steps",
    ];
    assert_eq!(session.role_texts(), due);
    let [question, reply, listed, bad, denied, _, program] = &session.messages[..] else { panic!("seven") };
    let names: Vec<_> = question.attachments.iter().map(|file| file.name.as_str()).collect();
    assert_eq!((names, question.id.as_str()), (vec!["red.png", "added-by-opencode.txt"], "msg_1"));
    assert_eq!((reply.tool_calls.len(), reply.tool_calls[0].params.get()), (4, r#"{"n":1.10}"#));
    let usage = reply.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(17), Some(7), Some(3)));
    assert_eq!(usage.cost_usd, Some(0.5));
    assert!(reply.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((listed.timestamp.to_string(), listed.is_error), ("2026-03-01T09:00:03Z".to_owned(), false));
    assert!(bad.is_error && denied.is_error);
    assert_eq!(program.source.as_ref().unwrap().kind, SourceKind::Agent);
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.project.as_deref()), (Some("ses_1"), Some("/srv/shop")));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The files"), Some("p/m")));
}

#[test]
fn a_subagent_belongs_to_the_conversation_that_started_it() {
    let main = import_as(Auto, document("")).unwrap().sessions.remove(0).about;
    let child =
        import_as(Auto, document(r#","parentID":"ses_0""#).replace("ses_1", "ses_2")).unwrap().sessions.remove(0);
    assert!(child.about.side_chain && !main.side_chain && child.about.id != main.id);
    assert_eq!(child.about.conversation.as_deref(), Some("ses_0/ses_2"));
    let parent = import_as(Auto, document("").replace("ses_1", "ses_0")).unwrap().sessions.remove(0).about;
    assert_eq!(child.about.parent_id, parent.id);
}

#[test]
fn a_cut_document_keeps_what_it_has() {
    let text = document("");
    let found = import_as(Auto, &text[..text.find("msg_3").unwrap()]).unwrap();
    assert_eq!((found.sessions[0].messages.len(), found.skipped.len()), (5, 1));
    assert!(import_as(Opencode, &text[..80]).is_err());
}
