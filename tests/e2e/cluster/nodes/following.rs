//! Clients that follow a conversation while its agent moves from node to node.

use std::sync::Arc;
use std::thread;

use chorus_base::sync::Mutex;
use chorus_proto::methods::conversations::AttachParams;
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::{CallError, Client};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Home, wait_until};
use serde_json::value::RawValue;

use super::drain::{drain, undo};
use super::{Cluster, start_all, try_append};

/// Follows the agent `x` through a node. Returns the texts of the messages that are heard.
fn follow(home: &Home) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let (texts, mut client) = (heard.clone(), Client::connect(&home.socket()).expect("a client"));
    client.set_timeout(None).expect("no time-out");
    thread::spawn(move || {
        let params = AttachParams { agent: Some("x".into()), ..Default::default() };
        let mut hear = |progress: &RawValue| -> Result<(), CallError> {
            let progress: Progress = serde_json::from_str(progress.get())?;
            match progress.said {
                TurnEvent::Message { text, .. } => texts.lock().push(text),
                TurnEvent::Attached { .. } => texts.lock().push("attached".into()),
                _ => {}
            }
            Ok(())
        };
        let ended = client.call_streaming("context.attach", &params, &mut hear);
        texts.lock().push(format!("{ended:?}"));
    });
    let attached = || heard.lock().contains(&"attached".to_owned()).then_some(());
    wait_until("the follower", DEADLINE, attached);
    heard.lock().clear();
    heard
}

#[test]
fn who_follows_a_conversation_hears_each_message_once_while_its_agent_moves() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b"), cluster.node("c")];
    let daemons = start_all(&homes);
    let mut clients = daemons.each_ref().map(|daemon| daemon.client());
    clients[0].init("x");
    let followers = homes.each_ref().map(follow);
    let mut texts = Vec::new();
    for round in 0..6 {
        for n in 0..10 {
            let text = format!("{round}-{n}");
            try_append(&mut clients[n % 3], "x", &text).expect("an append");
            texts.push(text);
        }
        let node = clients[0].agent_status("x").node.expect("a node");
        let at = ["a", "b", "c"].iter().position(|name| *name == node).expect("a node");
        assert_eq!(drain(&mut clients[at], None).expect("cluster.drain").moved, 1);
        // At once: the followers come later.
        let text = format!("{round}-after");
        try_append(&mut clients[(at + 1) % 3], "x", &text).expect("an append");
        texts.push(text);
        undo(&mut clients[at], None);
    }
    for heard in &followers {
        wait_until("all messages", DEADLINE, || (heard.lock().len() >= texts.len()).then_some(()));
        assert_eq!(*heard.lock(), texts, "missed, double or in another order");
    }
}

#[test]
fn who_follows_a_conversation_hears_it_again_after_its_node_was_killed() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    a.client().init("x");
    let heard = follow(&homes[1]);
    let mut client = b.client();
    client.set_timeout(Some(DEADLINE * 2)).expect("a time-out");
    try_append(&mut client, "x", "one").expect("an append");
    wait_until("the message", DEADLINE, || (*heard.lock() == ["one"]).then_some(()));
    a.kill9();
    wait_until("the takeover", DEADLINE * 2, || try_append(&mut client, "x", "two").ok());
    // The follower takes up to a moment to be there again.
    let mut n = 0;
    wait_until("a message after it", DEADLINE, || {
        n += 1;
        try_append(&mut client, "x", &format!("more-{n}")).expect("an append");
        heard.lock().iter().any(|text| text.starts_with("more-")).then_some(())
    });
}
