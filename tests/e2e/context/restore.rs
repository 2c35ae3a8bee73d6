//! `context restore`: the full messages come back, and nothing is lost for it.

use chorus_proto::methods::context::{Restore, RestoreParams, RestoreResult, Show, ShowParams};
use chorus_proto::{Client, ErrorKind, NewMessage, Role, Trigger};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{Daemon, Home, InteractiveCommand};
use serde_json::json;

use crate::home;
use crate::send::cli::command;

fn latest() -> RestoreParams {
    RestoreParams { agent: Some("a".into()), session: "latest".into(), ..Default::default() }
}

fn restore(client: &mut Client, params: &RestoreParams) -> RestoreResult {
    client.call::<Restore>(params).expect("restored")
}

#[test]
fn unsaved_messages_are_saved_first() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let first = client.save("a", "first");
    client.append("a", "two");
    let back = client.restore("a", &first.short_id);
    let saved = back.saved_first.expect("the unsaved message was saved");
    assert_eq!((saved.header.trigger, saved.header.message_count), (Trigger::Restore, 2));
    assert_eq!((back.messages, client.message_texts("a")), (1, vec!["one".to_owned()]));
    let back = client.restore("a", &first.short_id);
    assert!(back.saved_first.is_none(), "nothing was unsaved this time");
    client.restore("a", &saved.short_id);
    assert_eq!(client.message_texts("a"), ["one", "two"]);
}

#[test]
fn it_may_discard_instead() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "first");
    client.append("a", "two");
    let back = restore(&mut client, &RestoreParams { discard: true, ..latest() });
    assert!(back.saved_first.is_none());
    assert_eq!(client.history("a").len(), 1);
    assert_eq!(client.message_texts("a"), ["one"]);
}

#[test]
fn what_goes_on_after_it_has_the_session_as_its_parent() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let first = client.save("a", "first");
    client.restore("a", "latest");
    client.append("a", "two");
    let show = ShowParams { agent: Some("a".into()), ..Default::default() };
    let context = client.call::<Show>(&show).expect("shown").context.expect("a context");
    assert_eq!((context.parent_id, context.unsaved), (Some(first.header.id), 1));
    let second = client.save("a", "second");
    assert_eq!(second.header.parent_id, Some(first.header.id));
    assert_eq!(second.header.message_count, 2);
    assert_eq!(client.get_session("a", &first.short_id).0, first, "the first is as it was");
}

#[test]
fn a_restored_context_survives_crashes() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for n in 0..50 {
        client.append("a", &format!("message {n}"));
    }
    client.save("a", "long");
    client.restore("a", "latest");
    client.append("a", "after");
    let texts = client.message_texts("a");
    for _ in 0..2 {
        daemon.kill9();
        daemon = Daemon::start(&home);
        assert_eq!(daemon.client().message_texts("a"), texts);
    }
    daemon.client().append("a", "and on");
    assert_eq!(daemon.client().message_texts("a").len(), 52);
}

#[test]
fn it_may_stop_at_a_message_and_never_parts_a_call_from_its_result() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let call = |id: &str| json!({"id": id, "name": "bash", "params": {}});
    let messages = [
        json!({"role": "user", "content": "u0"}),
        json!({"role": "assistant", "content": "a1", "tool_calls": [call("c1"), call("c2")]}),
        json!({"role": "tool_result", "content": "r2", "tool_call_id": "c1"}),
        json!({"role": "tool_result", "content": "r3", "tool_call_id": "c2"}),
        json!({"role": "assistant", "content": "a4"}),
        json!({"role": "user", "content": "u5"}),
        // The same id again, which is legal in the record.
        json!({"role": "assistant", "content": "a6", "tool_calls": [call("c1")]}),
        json!({"role": "tool_result", "content": "r7", "tool_call_id": "c1"}),
    ];
    let messages = messages.into_iter().map(|value| serde_json::from_value(value).expect("a message"));
    client.append_all("a", messages.collect());
    client.save("a", "calls");
    for (at, kept) in [(1, 1), (2, 1), (3, 1), (4, 4), (5, 5), (6, 6), (7, 6), (8, 8)] {
        let back = restore(&mut client, &RestoreParams { at: Some(at), discard: true, ..latest() });
        assert_eq!(back.messages, kept, "--at {at}");
        assert_eq!(client.message_texts("a").len() as u64, kept, "--at {at}");
    }
    let (none, wrong) = (ErrorKind::NothingToSave, ErrorKind::InvalidParams);
    for (at, kind) in [(0, none), (9, wrong), (u64::MAX, wrong)] {
        let params = RestoreParams { at: Some(at), discard: true, ..latest() };
        assert_eq!(expect_error_kind(client.call::<Restore>(&params)), kind, "--at {at}");
        assert_eq!(client.message_texts("a").len(), 8, "and the context is as it was");
    }
}

#[test]
fn another_agents_session_only_where_the_agent_was_said() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.append_all("b", vec![NewMessage::text(Role::User, "b's own")]);
    let other = client.save("b", "of b");
    let id = other.header.id.to_string();
    chorusctl(&home, ["agent", "use", "a"]).expect_success();
    let unsaid = RestoreParams { agent: None, session: id.clone(), ..Default::default() };
    let kind = expect_error_kind(client.call::<Restore>(&unsaid));
    assert_eq!(kind, ErrorKind::Denied);
    let said = chorusctl(&home, ["context", "restore", &id]);
    said.expect_failure(6);
    // An agent that the environment or the current directory implies was not said.
    let mut implied = home.command(home.bins.chorusctl);
    implied.args(["context", "restore", &id]).env("CHORUS_AGENT", "a");
    run_command(implied, b"").expect_failure(6);
    for verb in [&["delete"][..], &["purge", "--yes"], &["tag", "--", "x"], &["untag", "--", "x"]] {
        let mut implied = home.command(home.bins.chorusctl);
        let (rest, more) = verb.split_at(1);
        implied.args(["session", rest[0], &id]).args(more).env("CHORUS_AGENT", "a");
        run_command(implied, b"").expect_failure(6);
    }
    assert_eq!(client.history("b"), [other], "it is as it was");
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
    chorusctl(&home, ["--agent", "a", "context", "restore", &id]).expect_success();
    assert_eq!(client.message_texts("a"), ["b's own"]);
    assert_eq!(client.message_texts("b"), ["b's own"], "and b goes on as it was");
}

#[test]
fn the_command_line_tells_what_came_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let session = client.save("a", "What it was about");
    client.append("a", "unsaved");
    let said = chorusctl(&home, ["--json", "context", "restore", "latest"]).expect_json();
    assert_eq!((&said["messages"], &said["session"]["id"]), (&json!(1), &json!(session.header.id.to_string())));
    assert_eq!(said["saved_first"]["trigger"], "restore");
    chorusctl(&home, ["context", "restore", "nothing-like-it"]).expect_failure_with_hint(3);
}

/// The terminal that `restore latest` shows.
fn restore_at_a_terminal(home: &Home) -> String {
    let mut running = InteractiveCommand::on_terminal(&command(home, &["restore", "latest"]));
    let (status, shown, _) = running.wait_for_exit();
    assert!(status.success(), "{shown}");
    shown
}

#[test]
fn at_a_terminal_a_model_that_is_missing_is_named_before_the_first_message_fails() {
    let (without, with, server) = (home(), home(), ModelServer::start());
    let _daemons = [Daemon::start(&without), Daemon::start_with(&with, &server.config_toml())].map(|daemon| {
        let mut client = daemon.client();
        client.init("a");
        client.append("a", "one");
        client.save("a", "one");
        daemon
    });
    assert!(restore_at_a_terminal(&without).contains("chorusctl models add NAME URL"));
    assert!(!restore_at_a_terminal(&with).contains("models add"));
}

#[test]
fn many_restores_beside_appends_lose_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "base");
    let base = client.save("a", "base").short_id;
    std::thread::scope(|scope| {
        let (mut restoring, mut appending) = (daemon.client(), daemon.client());
        scope.spawn(move || (0..20).for_each(|_| _ = restoring.restore("a", &base)));
        scope.spawn(move || (0..100).for_each(|n| _ = appending.append("a", &format!("m{n}"))));
    });
    client.save("a", "the end");
    let mut seen: Vec<String> = Vec::new();
    for session in client.history("a") {
        let (_, messages) = client.get_session("a", &session.header.id.to_string());
        seen.extend(messages.into_iter().map(|message| message.content));
    }
    for n in 0..100 {
        assert!(seen.contains(&format!("m{n}")), "m{n} was acknowledged and is in no session");
    }
}

/// The live context begins with a session whose file is away for a while.
#[test]
fn a_context_whose_session_is_away_is_there_again_with_its_file() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let session = client.save("a", "base");
    client.restore("a", "latest");
    client.append("a", "two");
    daemon.kill9();
    let aside = home.temp_dir().join("aside.json");
    std::fs::rename(&session.file_path, &aside).expect("away");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for _ in 0..2 {
        chorusctl(&home, ["context", "show"]).expect_failure_with_hint(1);
        assert_eq!(client.agent_status("a").context.expect("live").messages, 2);
    }
    std::fs::rename(&aside, &session.file_path).expect("back");
    assert_eq!(client.message_texts("a"), ["one", "two"], "no restart is needed");
    client.append("a", "three");
    assert_eq!(client.message_texts("a").len(), 3);
}

#[test]
fn a_session_whose_messages_were_changed_is_shown_with_a_warning() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "the original words");
    let saved = client.save("a", "once");
    let shown = chorusctl(&home, ["session", "show", "latest"]);
    assert!(!shown.stderr.contains("changed"), "{}", shown.stderr);
    let text = std::fs::read_to_string(&saved.file_path).expect("the file");
    std::fs::write(&saved.file_path, text.replace("original", "forged")).expect("changed by hand");
    let shown = chorusctl(&home, ["session", "show", "latest"]);
    assert!(shown.stderr.contains("was changed after it was saved"), "{}", shown.stderr);
    assert!(shown.expect_success().contains("forged words"));
    let json = chorusctl(&home, ["session", "show", "latest", "--json"]).expect_json();
    assert!(json["warnings"][0].as_str().is_some_and(|text| text.contains("was changed")), "{json}");
}

#[test]
fn a_restore_of_a_long_session_says_if_a_message_in_the_middle_was_changed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let text = |n: usize| format!("{n} the original words. {}", "A line of a usual length, \"quoted\".\n".repeat(20));
    client.append_all("a", (0..1000).map(|n| NewMessage::text(Role::User, text(n))).collect());
    let saved = client.save("a", "long");
    let before = client.message_texts("a");
    let discarding = RestoreParams { discard: true, ..latest() };
    let back = restore(&mut client, &discarding);
    assert_eq!((back.messages, back.warnings), (1000, Vec::<String>::new()));
    assert_eq!(client.message_texts("a"), before);

    let file = std::fs::read_to_string(&saved.file_path).expect("the file");
    std::fs::write(&saved.file_path, file.replace("500 the original", "500 the forged")).expect("changed by hand");
    let back = restore(&mut client, &discarding);
    assert_eq!(back.messages, 1000);
    assert!(back.warnings.iter().any(|text| text.contains("was changed after it was saved")), "{:?}", back.warnings);
    assert!(client.message_texts("a")[500].starts_with("500 the forged words"));

    // In another layout, the messages are still those that were saved.
    let value: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    std::fs::write(&saved.file_path, serde_json::to_string_pretty(&value).expect("JSON")).expect("reformatted");
    let back = restore(&mut client, &discarding);
    assert_eq!((back.messages, back.warnings), (1000, Vec::<String>::new()));

    let damaged = file.replace("\"content\":\"500 ", "\"content\":\"\\x500 ");
    assert_ne!(damaged, file);
    std::fs::write(&saved.file_path, damaged).expect("damaged");
    assert_eq!(expect_error_kind(client.call::<Restore>(&discarding)), ErrorKind::CorruptSession);
    std::fs::write(&saved.file_path, &file[..file.len() / 2]).expect("cut");
    assert_eq!(expect_error_kind(client.call::<Restore>(&discarding)), ErrorKind::CorruptSession);
    std::fs::write(&saved.file_path, &file).expect("as it was");
    let back = restore(&mut client, &discarding);
    assert_eq!((back.messages, back.warnings), (1000, Vec::<String>::new()));
    assert_eq!(client.message_texts("a"), before);
}
