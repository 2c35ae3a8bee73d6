//! A small transcript of each program, found out by itself and named.

use std::fs;
use std::path::Path;

use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Message, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;

use crate::home;

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts").join(name);
    fs::read_to_string(path).expect("a sample")
}

fn talk(messages: &[Message]) -> Vec<(Role, &str)> {
    messages.iter().map(|message| (message.role, &*message.content)).collect()
}

/// The messages of each session in a sample, the newest session first.
fn imported(name: &str, from: ImportFormat) -> (Vec<Vec<Message>>, Vec<String>) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    // In small pieces: they end anywhere.
    let result = import_transcript(&mut client, "a", from, &sample(name), 100).expect("imported");
    let ids = result.sessions.iter().map(|session| session.header.id.to_string());
    let messages = ids.map(|id| client.get_session("a", &id).1).collect();
    (messages, result.skipped.into_iter().map(|skipped| skipped.reason).collect())
}

#[test]
fn chatgpt_gives_a_session_for_each_conversation() {
    for from in [ImportFormat::Auto, ImportFormat::Chatgpt] {
        let (sessions, skipped) = imported("chatgpt.json", from);
        let [tea, rhyme] = &sessions[..] else { panic!("{} sessions", sessions.len()) };
        assert_eq!(
            talk(tea),
            [
                (Role::User, "How long does green tea steep?"),
                (Role::Assistant, "Two to three minutes, at 75 °C."),
                (Role::User, "And for this kettle, in Fahrenheit?"),
                (Role::Assistant, ""),
                (Role::ToolResult, "167.0"),
                (Role::Assistant, "167 °F."),
            ]
        );
        assert_eq!(tea[3].tool_calls[0].name, "python");
        assert_eq!(tea[4].tool_call_id.as_deref(), Some(&*tea[3].tool_calls[0].id));
        assert_eq!(talk(rhyme)[1], (Role::Assistant, "Petal, nearly."));
        assert!(skipped.len() == 1 && skipped[0].starts_with("1 message on"), "{skipped:?}");
        assert!(tea[0].provider.as_ref().is_some_and(|kept| kept.get().contains("Ten minutes.")), "it is kept");
    }
}

#[test]
fn goose_is_read_in_both_of_its_forms() {
    for (name, from) in [
        ("goose.jsonl", ImportFormat::Auto),
        ("goose.json", ImportFormat::Auto),
        ("goose.jsonl", ImportFormat::Goose),
        ("goose.json", ImportFormat::Goose),
    ] {
        let (sessions, skipped) = imported(name, from);
        assert_eq!((sessions.len(), skipped.len()), (1, 0), "{name}");
        assert_eq!(
            talk(&sessions[0]),
            [
                (Role::User, "How many cups are in cups.txt?"),
                (Role::Assistant, "Let me count."),
                (Role::ToolResult, "12 cups.txt"),
                (Role::Assistant, "Twelve."),
            ]
        );
        assert_eq!(sessions[0][1].tool_calls[0].params.get(), r#"{"command":"wc -l cups.txt"}"#);
    }
}

#[test]
fn markdown_of_others_is_read_without_comments() {
    for from in [ImportFormat::Auto, ImportFormat::Markdown] {
        let (sessions, skipped) = imported("session_3.md", from);
        assert_eq!(skipped, [""; 0]);
        assert_eq!(
            talk(&sessions[0]),
            [
                (Role::Assistant, "I've gone over our conversation about the tea shop.\nReady to continue!"),
                (Role::User, "Let's write the price list"),
                (Role::Assistant, "Here it is:\n\n- Sencha, 4.50\n- Assam, 3.80\n\n**Note:** without tax."),
                (Role::User, "Add the tax, please"),
                (Role::Assistant, "Done."),
            ]
        );
        let usage = sessions[0][2].usage.as_ref().expect("its tokens");
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(123), Some(222)));
        assert_eq!(sessions[0][1].timestamp.to_string(), "2026-01-01T14:30:45Z");
    }
}

#[test]
fn a_shape_that_nobody_knows_says_which_are_known() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    for (name, text) in [
        ("a.json", "[{\"question\":\"?\"}]"),
        ("b.json", "{\"chats\":[]}"),
        ("c.txt", "Dear diary"),
        ("d.zip", "PK\u{3}\u{4}"),
    ] {
        let file = home.temp_dir().join(name);
        fs::write(&file, text).expect("a file");
        let said = chorusctl(&home, ["session", "import", file.to_str().expect("a path")]);
        assert_eq!(said.status, 2, "{name}: {}", said.stderr);
        let due = if name == "d.zip" { "conversations.json" } else { "claude-code, codex, gemini" };
        assert!(said.stderr.contains(due), "{name}: {}", said.stderr);
    }
}
