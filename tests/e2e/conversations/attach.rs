//! Clients that follow a conversation.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use chorus_proto::methods::conversations::{AttachParams, Attached};
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::{CallError, Client, Role};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Fixture, wait_until};

use super::{append, list, open};
use crate::home;

/// Follows a conversation of `a` from another thread, until the daemon ends.
fn attach(fixture: &Fixture, conversation: &str, client: &str) -> Receiver<TurnEvent> {
    let (mut connection, (say, heard)) = (fixture.client(), sync_channel(256));
    let params = AttachParams {
        agent: Some("a".into()),
        conversation: Some(conversation.into()),
        client: Some(client.into()),
        after: None,
    };
    thread::spawn(move || {
        let mut hear = |progress: &serde_json::value::RawValue| -> Result<(), CallError> {
            let progress: Progress = serde_json::from_str(progress.get())?;
            // An error ends the connection: nobody listens any more.
            say.send(progress.said).map_err(|_| CallError::Io(std::io::ErrorKind::BrokenPipe.into()))
        };
        let _ = connection.call_streaming("context.attach", &params, &mut hear);
    });
    heard
}

fn next(heard: &Receiver<TurnEvent>) -> TurnEvent {
    heard.recv_timeout(DEADLINE).expect("an event")
}

/// The text up to the next event of another kind, and that event.
fn text(heard: &Receiver<TurnEvent>) -> (String, TurnEvent) {
    let mut all = String::new();
    loop {
        match next(heard) {
            TurnEvent::Text(text) => all.push_str(&text),
            other => return (all, other),
        }
    }
}

fn names(attached: &[Attached]) -> Vec<&str> {
    attached.iter().map(|client| &*client.client).collect()
}

fn attached(client: &mut Client, conversation: &str) -> Vec<String> {
    let found = list(client, false).into_iter().find(|found| found.name == conversation).expect("the conversation");
    found.attached.into_iter().map(|client| client.client).collect()
}

#[test]
fn who_comes_late_hears_what_was_said_and_then_what_follows() {
    let fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", None);
    let mut client = fixture.client();
    open(&mut client, "review");
    fixture.answer(Response::text(["So far. "]).gate("go").then_text("And on."));
    let early = attach(&fixture, "main", "pts/1");
    assert!(matches!(next(&early), TurnEvent::Attached { turn_id: None, others } if others.is_empty()));
    let sent = fixture.spawn_send("a", "hello");
    fixture.models().wait_for_gate("go");
    let said = next(&early);
    assert!(
        matches!(&said, TurnEvent::Message { role: Role::User, text, author: None, .. } if text == "hello"),
        "{said:?}"
    );
    let TurnEvent::Started { turn_id } = next(&early) else { panic!("no start") };
    assert_eq!(next(&early), TurnEvent::Text("So far. ".into()));
    let late = attach(&fixture, "main", "pts/2");
    let first = next(&late);
    assert!(
        matches!(&first, TurnEvent::Attached { turn_id: Some(id), others } if *id == turn_id && names(others) == ["pts/1"]),
        "{first:?}"
    );
    assert_eq!(next(&late), TurnEvent::Started { turn_id });
    assert_eq!(next(&late), TurnEvent::Text("So far. ".into()));
    let elsewhere = attach(&fixture, "review", "pts/3");
    assert!(matches!(next(&elsewhere), TurnEvent::Attached { turn_id: None, .. }));
    assert_eq!(attached(&mut client, "main"), ["pts/1", "pts/2"]);
    assert_eq!(attached(&mut client, "review"), ["pts/3"]);
    fixture.models().open_gate("go");
    sent.join().expect("the client").expect("a turn");
    for heard in [&early, &late] {
        assert_eq!(text(heard), ("And on.".into(), TurnEvent::Ended { turn_id, reason: None }));
    }
    append(&mut client, None, "added by hand");
    for heard in [&early, &late] {
        assert!(matches!(next(heard), TurnEvent::Message { text, .. } if text == "added by hand"));
    }
    append(&mut client, Some("review"), "elsewhere");
    assert!(matches!(next(&elsewhere), TurnEvent::Message { text, .. } if text == "elsewhere"));
    assert!(early.try_recv().is_err(), "nothing of another conversation");
    drop(late);
    // The next notification fails, and the client ends its connection.
    append(&mut client, None, "more");
    wait_until("the second to be gone", DEADLINE, || (attached(&mut client, "main") == ["pts/1"]).then_some(()));
}

#[test]
fn a_turn_that_fails_ends_with_its_reason() {
    let fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", None);
    let heard = attach(&fixture, "main", "pts/1");
    next(&heard);
    fixture.answer(Response::error(400, "{}"));
    fixture.send("a", "hello").expect_err("a failure");
    loop {
        if let TurnEvent::Ended { reason, .. } = next(&heard) {
            assert!(reason.is_some());
            return;
        }
    }
}
