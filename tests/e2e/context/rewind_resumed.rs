//! `context rewind` in a link of a chain: what it cannot reach, and who can.

use chorus_proto::CallError;
use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_proto::methods::continuation::{Resume, ResumeParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use crate::home;
use crate::session::say;

#[test]
fn what_lies_in_the_session_before_is_pointed_at() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    say(&mut client, &["one", "two", "three", "four"]);
    let first = client.save("a", "first");
    client
        .call::<Resume>(&ResumeParams {
            as_conversation: None,
            conversation: None,
            agent: Some("a".into()),
            session: "latest".into(),
        })
        .expect("resumed");
    say(&mut client, &["five", "six"]);
    let answer =
        client.call::<Rewind>(&RewindParams { conversation: None, agent: Some("a".into()), n: Some(2), undo: false });
    let Err(CallError::Rpc(error)) = answer else { panic!("{answer:?}") };
    assert!(error.message.contains("only 1 user turn since the conversation of a was resumed"), "{}", error.message);
    let hint = error.data.and_then(|data| data.hint).expect("a hint");
    let (_, command) = hint.split_once("chorusctl ").expect("a command");
    assert!(command.contains(&first.header.id.to_string()), "{command}");
    // What is hinted at works.
    chorusctl(&home, command.split(' ')).expect_success();
    assert_eq!(client.message_texts("a"), ["one", "two", "three", "four"]);
}
