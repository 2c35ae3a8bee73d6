//! A request with a key may be sent again, also to the next daemon.

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{CallError, Client};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::rng::Rng;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use crate::home;

fn append(client: &mut Client, key: &str) -> Result<u64, CallError> {
    let (agent, text) = (Some("a".into()), Some(key.to_owned()));
    let params = AppendParams { agent, text, key: Some(key.into()), ..Default::default() };
    client.call::<Append>(&params).map(|answer| answer.messages)
}

#[test]
fn a_key_gives_the_first_answer_again_and_adds_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    assert_eq!(append(&mut client, "one").expect("an answer"), 1);
    assert_eq!(append(&mut client, "two").expect("an answer"), 2);
    assert_eq!(append(&mut client, "one").expect("an answer"), 1, "the first answer, not a new count");
    assert_eq!(append(&mut daemon.client(), "one").expect("an answer"), 1, "on another connection too");
    assert_eq!(client.message_texts("a"), ["one", "two"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(append(&mut client, "two").expect("an answer"), 2, "after a crash too");
    assert_eq!(client.message_texts("a"), ["one", "two"]);
}

#[test]
fn sent_again_after_a_crash_each_message_is_there_once() {
    let home = home();
    let mut rng = Rng::new(3);
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    let mut expected = Vec::new();
    for round in 0..5 {
        let mut client = daemon.client();
        let pid = daemon.pid;
        let last = 10 + rng.below(40);
        let killer = std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            scope.spawn(move || {
                told.recv_timeout(DEADLINE).expect("the last acknowledgement");
                chorus_tests::process::kill(pid);
            });
            for n in 0.. {
                let key = format!("{round}-{n}");
                expected.push(key.clone());
                if n == last {
                    tell.send(()).expect("the killer waits");
                }
                match append(&mut client, &key) {
                    Ok(_) => {}
                    Err(CallError::Io(_)) => return key,
                    Err(other) => panic!("append: {other}"),
                }
            }
            unreachable!("the daemon is killed")
        });
        daemon.kill9();
        daemon = Daemon::start(&home);
        // Nobody knows whether it arrived; sending it again settles that.
        let mut client = wait_until("the next daemon", DEADLINE, || Some(daemon.client()));
        append(&mut client, &killer).expect("an answer");
        assert_eq!(client.message_texts("a"), expected);
    }
}
