//! Tests of conversations from Google Takeout.

use chorus_proto::methods::import::ImportFormat::{Auto, GeminiApps};

use super::super::test_support::{RecordingSink, import_as};

/// Builds a record of 2 March 2026.
fn record(time: &str, title: &str, rest: &str) -> String {
    format!(
        r#"{{"header":"Gemini Apps","title":"{title}","time":"2026-03-02T{time}:00.000Z","products":["Gemini Apps"]{rest}}}"#
    )
}

fn answer(html: &str) -> String {
    format!(r#","safeHtmlItem":[{{"html":"{html}"}}]"#)
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, GeminiApps);
    found
}

#[test]
fn records_that_follow_each_other_are_a_conversation() {
    let records = [
        record("20:00", "Saludos", &answer("Hola")),
        record("09:41", "Geteilt", ""),
        record("09:40", "Used Gemini Apps", ""),
        record("09:30", "Prompted\u{a0}And at night? Attached 1 file.", r#","attachedFiles":["map.png"]"#),
        record("09:15", "Prompted How does it work?", &answer("<p>A <b>filter</b>.</p>")),
        r#"{"header":"Search","title":"Searched for glasses","time":"2026-03-02T09:10:00.000Z","products":["Search"]}"#
            .into(),
    ];
    let found = read(&format!("[{}]", records.join(",")));
    let [evening, morning] = &found.sessions[..] else { panic!("{} sessions", found.sessions.len()) };
    assert_eq!(morning.role_texts(), ["user: How does it work?", "assistant: A **filter**.", "user: And at night?"]);
    assert_eq!(evening.role_texts(), ["user: Saludos", "assistant: Hola"]);
    assert_eq!(morning.messages[2].attachments[0].name, "map.png");
    assert_eq!(morning.about.started_at.unwrap().to_string(), "2026-03-02T09:15:00Z");
    assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [2]);
    // A later export has more records.
    let later = format!("[{},{}]", record("09:50", "Prompted Thanks", ""), records.join(","));
    let again = read(&later).sessions.pop().unwrap();
    assert_eq!((again.about.conversation, again.about.id), (morning.about.conversation.clone(), morning.about.id));
}

#[test]
fn a_conversation_in_a_file_of_its_own_comes_whole() {
    let text = r#"{"title":"Light","creation_time":"2026-03-02T09:15:00Z","conversation_turns":[
{"user_turn":{"prompt":"How does it work?","turn_index":0,"turn_last_modified":"2026-03-02T09:15:01Z"}},
{"user_turn":{"prompt":"Deleted","turn_index":1,"turn_deleted_time":"2026-03-02T09:15:02Z"}},
{"system_turn":{"text":[{"data":"A filter."},{"cards":[{"content":"See."}]}],"images":["i_0"],"model_thoughts":[{"headline":"Optics"}],"turn_last_modified":"2026-03-02T09:15:04Z"}},
{"strange_turn":{}}]}"#;
    let found = read(text);
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: How does it work?", "assistant: A filter.\n\nSee."]);
    let reply = &session.messages[1];
    assert_eq!(
        (reply.attachments[0].name.as_str(), reply.timestamp.to_string().as_str()),
        ("i_0", "2026-03-02T09:15:04Z")
    );
    assert!(reply.provider.as_ref().unwrap().get().contains("Optics"));
    assert_eq!(session.about.description.as_deref(), Some("Light"));
    assert!(session.about.conversation.as_ref().unwrap().starts_with("2026-03-02T09:15:00Z-"));
    assert_eq!(found.skipped[0].1, "turn 4: neither of the user nor of the system");
}
