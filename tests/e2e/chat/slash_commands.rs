//! Commands inside a conversation.

use chorus_tests::Home;
use serde_json::{Value, json};

use super::{Calls, PROMPT, at_prompt, chat, context, daemon, echo, echoes, leave, plain, say, texts};
use crate::home;

fn golden(name: &str) -> Value {
    let path = format!("{}/../proto/golden/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a golden file");
    serde_json::from_str::<Value>(&text).expect("JSON")["result"].clone()
}

/// A daemon that answers the verbs as the golden files do.
fn answers(home: &Home) -> Calls {
    daemon(home, echo, |mut asked| {
        asked.send_result(match &*asked.method {
            "context.show" => context(0, 0, &[]),
            "context.save" => golden("context.save.result.plain"),
            method => golden(&format!("{method}.result")),
        });
    })
}

#[test]
fn they_are_the_verbs_for_this_agent() {
    let home = home();
    let calls = answers(&home);
    let mut running = chat(&plain(&home));
    say(&mut running, "/save before lunch\r", PROMPT);
    say(&mut running, "/restore 2\r", "restored ");
    say(&mut running, "/compact\r", "compacted ");
    say(&mut running, "/history\r", PROMPT);
    say(&mut running, "/status\r", "chorusd ");
    say(&mut running, "/new\r", "new conversation\r\n");
    say(&mut running, "/help\r", "/exit");
    at_prompt(&running);
    running.type_text("/exit\r");
    let (status, out, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{out}");
    assert_eq!(
        calls.of("context.save"),
        [json!({"agent": "atlas", "conversation": "main", "description": "before lunch", "clear": false})]
    );
    assert_eq!(
        calls.of("context.restore"),
        [json!({"agent": "atlas", "conversation": "main", "session": "2", "discard": false})]
    );
    assert_eq!(calls.of("context.compact"), [json!({"agent": "atlas", "conversation": "main", "undo": false})]);
    assert_eq!(calls.of("context.clear"), [json!({"agent": "atlas", "conversation": "main", "save": true})]);
    assert_eq!(calls.of("status"), [json!({"agent": "atlas"})]);
    assert_eq!(calls.of("context.history").len(), 1);
    assert!(calls.of("send").is_empty());
}

#[test]
fn it_begins_from_a_session_where_one_is_said() {
    let home = home();
    let calls = answers(&home);
    let mut command = plain(&home);
    command.args(["--resume", "2"]);
    let out = leave(chat(&command));
    assert!(out.contains("warning: the session before it") && out.contains("resumed "), "{out}");
    assert_eq!(calls.of("context.resume"), [json!({"agent": "atlas", "conversation": "@", "session": "2"})]);
    assert!(calls.of("context.clear").is_empty());
}

#[test]
fn what_is_told_at_the_beginning_shows_no_escape_sequences() {
    for begin in [&["--resume", "2"][..], &["--new"]] {
        let home = home();
        let _calls = answers(&home);
        let mut command = plain(&home);
        command.args(["--color", "always"]).args(begin);
        let out = leave(chat(&command));
        assert!(
            out.contains(if begin[0] == "--new" { "saved the previous conversation as " } else { "resumed " }),
            "{out}"
        );
        assert!(!out.contains('\u{241b}'), "{out}");
    }
}

#[test]
fn a_slip_is_told_and_not_sent() {
    let home = home();
    let calls = echoes(&home);
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "/etc/hosts is wrong\r", PROMPT);
    assert!(shown.contains("error: unknown command /etc/hosts") && shown.contains("start with a space"), "{shown}");
    say(&mut running, " /etc/hosts is wrong\r", "heard \" /etc/hosts is wrong\"");
    leave(running);
    assert_eq!(texts(&calls), [" /etc/hosts is wrong"]);
}

#[test]
fn tab_completes_commands_and_sessions() {
    let home = home();
    let calls = answers(&home);
    let mut running = chat(&plain(&home));
    say(&mut running, "/sa\t", "/save ");
    running.type_and_wait("x\r", PROMPT);
    say(&mut running, "/rest\tlat\t", "/restore latest");
    running.type_and_wait("\r", "restored ");
    leave(running);
    assert_eq!(
        calls.of("context.save"),
        [json!({"agent": "atlas", "conversation": "main", "description": "x", "clear": false})]
    );
    assert_eq!(
        calls.of("context.restore"),
        [json!({"agent": "atlas", "conversation": "main", "session": "latest", "discard": false})]
    );
}

#[test]
fn what_one_needs_is_a_command_for_this_agent() {
    let home = home();
    let calls = answers(&home);
    let mut running = chat(&plain(&home));
    for (line, method) in [
        ("/undo", "context.rewind"),
        ("/pin the port is 8080", "context.pin"),
        ("/resume 2", "context.resume"),
        ("/branch 2 --at 4", "session.branch"),
        ("/model anthropic/claude-test", "agent.config"),
        ("/models", "models.list"),
        ("/usage", "usage"),
        ("/tasks", "tasks.list"),
        ("/approvals", "approvals.list"),
        ("/memory", "memory.list"),
    ] {
        let before = calls.of(method).len();
        say(&mut running, &format!("{line}\r"), PROMPT);
        at_prompt(&running);
        assert!(calls.of(method).len() > before, "{line} asks {method}: {}", running.stdout.text());
    }
    let help = say(&mut running, "/help\r", "Ctrl-C cancels");
    for name in ["/show [N]", "/export SESSION", "/clear", "\\@ writes a literal @"] {
        assert!(help.contains(name), "{help}");
    }
    let help = say(&mut running, "/help branch\r", "--at");
    assert!(help.contains("continue a saved conversation"), "{help}");
    let slip = say(&mut running, "/undoo\r", "start with a space");
    assert!(slip.contains("did you mean /undo?"), "{slip}");
    let help = say(&mut running, "/help notes add\r", "--task");
    assert!(help.contains("/notes add"), "{help}");
    say(&mut running, "/notes add task x\r", "see: /help notes add");
    let slip = say(&mut running, "/history --nonsense\r", "see: /help history");
    assert!(slip.contains("error: unexpected argument"), "{slip}");
    leave(running);
    assert_eq!(
        calls.of("context.pin"),
        [json!({"agent": "atlas", "conversation": "main", "fact": "the port is 8080"})]
    );
    assert_eq!(calls.of("session.branch")[0]["at"], 4);
    assert_eq!(calls.of("agent.config")[0]["value"], "anthropic/claude-test");
    assert!(calls.of("send").is_empty());
}

#[test]
fn hints_and_help_name_what_is_typed_here() {
    let home = home();
    let _calls = answers(&home);
    let mut running = chat(&plain(&home));
    let shown = say(&mut running, "/undo\r", PROMPT);
    assert!(shown.contains("redo: /undo --redo") && !shown.contains("chorusctl"), "{shown}");
    let shown = say(&mut running, "/help undo\r", PROMPT);
    assert!(shown.contains("/undo [N|--redo]: ") && shown.contains("Usage: /undo"), "{shown}");
    assert!(!shown.contains("--socket") && !shown.contains("chorusctl undo"), "{shown}");
    let shown = say(&mut running, "/undo abc\r", PROMPT);
    assert!(shown.contains("error: not a number: abc"), "{shown}");
    leave(running);
}

#[test]
fn exit_alone_ends_the_chat_and_within_a_message_does_not() {
    for word in ["exit", "quit"] {
        let home = home();
        let calls = echoes(&home);
        let mut running = chat(&plain(&home));
        say(&mut running, &format!(" {word}\r"), "heard ");
        say(&mut running, &format!("{word} now?\r"), "now?\"");
        at_prompt(&running);
        running.type_text(&format!("{word}\r"));
        let (status, out, _) = running.wait_for_exit();
        assert_eq!(status.code(), Some(0), "{out}");
        assert_eq!(texts(&calls).len(), 2);
    }
}
