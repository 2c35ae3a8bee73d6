//! The line to another machine is lost: commands go on without loss, and nothing twice.

use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::screen::rows_of;
use chorus_tests::{DEADLINE, InteractiveCommand, wait_until};
use serde_json::Value;

use super::Machines;

/// Kills the line, and waits until there is another one.
fn lose_line(machines: &Machines) {
    let before = machines.server.logins();
    assert!(machines.server.kill_connections() > 0, "there is a line");
    wait_until("another line", DEADLINE, || (machines.server.logins() > before).then_some(()));
}

/// Returns the texts that were shown as messages.
fn events_of(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn events_are_followed_over_the_loss() {
    let Some(machines) = Machines::start() else { return };
    let mut client = machines.there.client();
    let newest = machines.run(&["events", "--format", "jsonl"]).expect_success();
    let first = events_of(&newest).last().map_or(0, |event| event["seq"].as_u64().expect("a number"));
    let follower = machines.start_piped(&["events", "--follow", "--json", "--after", &first.to_string()]);
    client.append("api", "before");
    follower.stdout.wait_for("\"message.appended\"");
    for round in 1..=3 {
        assert!(machines.server.kill_connections() > 0);
        (0..5).for_each(|_| _ = client.append("api", "in between"));
        let due = format!("\"messages\":{}}}", 1 + round * 5);
        follower.stdout.wait_for(&due);
    }
    let events = events_of(&follower.stdout.text());
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (first + 1..=first + 16).collect::<Vec<_>>());
}

#[test]
fn a_reply_is_completed_over_another_line_and_the_message_is_there_once() {
    let Some(machines) = Machines::start() else { return };
    let text = "The first part, ";
    machines.there.answer(Response::text([text]).gate("go").then_text("and the second."));
    let mut sent = machines.start_piped(&["send", "what is it?"]);
    sent.stdout.wait_for(text);
    lose_line(&machines);
    machines.there.models().open_gate("go");
    let (status, output, said) = sent.wait_for_exit();
    assert_eq!((status.code(), &*output), (Some(0), "The first part, and the second.\n"), "{said}");
    let messages = machines.there.client().messages("api");
    let contents: Vec<&str> = messages.iter().map(|message| &*message.content).collect();
    assert_eq!(contents, ["what is it?", "The first part, and the second."]);
    // The reply was complete before the line came back.
    machines.there.answer(Response::text(["Yes, "]).gate("more").then_text("it is."));
    let mut sent = machines.start_piped(&["send", "sure?"]);
    sent.stdout.wait_for("Yes, ");
    machines.server.kill_connections();
    machines.there.models().open_gate("more");
    let (status, output, said) = sent.wait_for_exit();
    assert_eq!((status.code(), &*output), (Some(0), "Yes, it is.\n"), "{said}");
    assert_eq!(machines.there.client().messages("api").len(), 4);
}

#[test]
fn an_attached_chat_shows_what_was_said_meanwhile() {
    let Some(machines) = Machines::start() else { return };
    let there = &machines.there;
    let mut client = there.client();
    client.append("api", "long ago");
    let follower = machines.start_piped(&["chat", "--attach", "--json"]);
    follower.stdout.wait_for("\"attached\"");
    there.answer(Response::text(["The first part, "]).gate("go").then_text("and the second."));
    let turn = there.spawn_send("api", "what is it?");
    follower.stdout.wait_for("The first part, ");
    // The turn runs on.
    lose_line(&machines);
    client.append("api", "a remark");
    follower.stdout.wait_for("a remark");
    there.models().open_gate("go");
    turn.join().expect("the turn").expect("a reply");
    follower.stdout.wait_for("and the second.");
    // It ends, and another one begins and ends, while there is no line.
    there.answer(Response::text(["One, "]).gate("end").then_text("two."));
    let turn = there.spawn_send("api", "count");
    follower.stdout.wait_for("One, ");
    machines.server.kill_connections();
    there.models().open_gate("end");
    turn.join().expect("the turn").expect("a reply");
    there.reply("Three.");
    there.send("api", "and then?").expect("a reply");
    client.append("api", "the end");
    follower.stdout.wait_for("the end");
    let events = events_of(&follower.stdout.text());
    let texts: String = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(texts, "The first part, and the second.One, two.Three.");
    let messages: Vec<&str> = events.iter().filter_map(|event| event["message"]["text"].as_str()).collect();
    assert_eq!(messages, ["what is it?", "a remark", "count", "and then?", "the end"]);
}

#[test]
fn a_chat_at_the_prompt_shows_what_was_said_meanwhile() {
    let Some(machines) = Machines::start() else { return };
    let there = &machines.there;
    let mut chat = InteractiveCommand::on_terminal(&machines.command(&["chat", "--attach"]));
    chat.stdout.wait_for("api> ");
    let mut client = there.client();
    client.append("api", "before the loss");
    chat.stdout.wait_for("user: before the loss");
    machines.server.kill_connections();
    there.reply("It is a parser.");
    there.send("api", "what is it?").expect("a reply");
    chat.stdout.wait_for("api: It is a parser.");
    client.append("api", "after the loss");
    chat.stdout.wait_for("user: after the loss");
    there.reply("Of course.");
    chat.type_and_wait("sure?\r", "Of course.");
    chat.type_and_wait("\r", "api> ");
    let shown = chat.stdout.text();
    assert!(!shown.contains("api: Of course.") && !shown.contains("user: sure?"), "{shown}");
    for once in ["user: before the loss", "It is a parser.", "user: after the loss"] {
        assert_eq!(shown.matches(once).count(), 1, "{once}: {shown}");
    }
}

/// The time in which a screen is back: an attempt that was on its way takes up to 10 s, and the next one comes up to 5 s later.
const AFTER_LOSS: Duration = DEADLINE.saturating_mul(3);

fn wait_after_loss(top: &InteractiveCommand, is_back: impl Fn(&[String]) -> bool) {
    wait_until("the screen", AFTER_LOSS, || is_back(&rows_of(&top.stdout.text(), 80, 24)).then_some(()));
}

#[test]
fn the_screen_comes_back() {
    let Some(machines) = Machines::start() else { return };
    let mut top = InteractiveCommand::on_terminal_of(&machines.command(&["top"]), 80, 24);
    top.wait_for_rows((80, 24), 0, "the screen", |rows| rows[0].contains("1 agent, 0 active"));
    lose_line(&machines);
    machines.there.client().append("api", "hello");
    wait_after_loss(&top, |rows| rows[0].contains("1 agent, 1 active"));
    top.type_text("\r");
    top.wait_for_rows((80, 24), 0, "the conversation", |rows| rows.iter().any(|row| row.contains("  hello")));
    lose_line(&machines);
    machines.there.client().append("api", "after the loss");
    let is_shown = |rows: &[String]| rows.iter().filter(|row| row.contains("  after the loss")).count() == 1;
    wait_after_loss(&top, is_shown);
    // A message that is typed arrives once.
    machines.there.reply("Hello.");
    top.type_text("good day\r");
    wait_until("the reply", AFTER_LOSS, || {
        let rows = rows_of(&top.stdout.text(), 80, 24);
        let shows = |text: &str| rows.iter().any(|row| row.contains(text));
        // The line of the events may come back after that of the conversation. The text is kept until then.
        if shows("not sent: no connection") {
            top.type_text("\r");
        }
        shows("  Hello.").then_some(())
    });
    // The reply is shown before it is recorded.
    wait_until("its record", DEADLINE, || (machines.there.client().messages("api").len() >= 4).then_some(()));
    assert_eq!(machines.there.client().messages("api").len(), 4);
    top.type_text("\u{1b}");
    top.wait_for_rows((80, 24), 0, "the list", |rows| rows.iter().any(|row| row.starts_with("AGENT ")));
    top.type_text("q");
    assert_eq!(top.wait_for_exit().0.code(), Some(0));
}

#[test]
fn what_is_no_longer_kept_is_reported() {
    let Some(machines) = Machines::start() else { return };
    let mut client = machines.there.client();
    let follower = machines.start_piped(&["events", "--follow", "--json"]);
    wait_until("an event", DEADLINE, || {
        client.append("api", "x");
        follower.stdout.text().contains("message.appended").then_some(())
    });
    // Longer away than the number of events that are kept.
    machines.server.write_chorusctl("#!/bin/sh\nexit 255\n");
    machines.server.kill_connections();
    let mut writer = machines.there.daemon().raw_connection();
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"context.append","params":{"agent":"api","text":"x"}}"#;
    for _ in 0..105 {
        (0..100).for_each(|_| writer.send_frame(line));
        (0..100).for_each(|_| _ = writer.receive().expect("an answer"));
    }
    let program = format!(
        "#!/bin/sh\nCHORUS_HOME='{}' exec '{}' \"$@\"\n",
        machines.there.home.path.display(),
        machines.there.home.bins.chorusctl
    );
    machines.server.write_chorusctl(&program);
    follower.stderr.wait_for("warning: missed ");
}
