//! Events of other nodes, and streams that a client ends.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::{Event, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{Cluster, start_all, try_append};

#[test]
fn a_subscriber_hears_of_what_happens_on_other_nodes() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let daemons = start_all(&homes);
    let [mut a, mut b] = daemons.each_ref().map(|daemon| daemon.client());
    a.init("x");
    b.init("y");
    let mut listener = daemons[1].client();
    let subscribed = listener.call::<Subscribe>(&SubscribeParams::default()).expect("a subscription");
    for n in 0..5 {
        try_append(&mut a, "x", &format!("{n}")).expect("an append there");
    }
    try_append(&mut b, "y", "here").expect("an append here");
    let (mut there, mut here) = (0, 0);
    while there < 5 || here < 1 {
        let (_, params) = listener.next_notification().expect("an event");
        let event: Event = serde_json::from_str(params.get()).expect("an event");
        if event.kind != EventType::MessageAppended {
            continue;
        }
        match event.node.as_deref() {
            Some("a") => {
                assert_eq!(event.agent.as_deref(), Some("x"));
                assert!(event.seq >= subscribed.seq);
                there += 1;
            }
            None => {
                assert_eq!(event.agent.as_deref(), Some("y"));
                assert!(event.seq > subscribed.seq);
                here += 1;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn who_follows_a_conversation_of_another_node_may_go() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let daemons = start_all(&homes);
    let mut a = daemons[0].client();
    a.init("x");
    a.append("x", "one");
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "context.attach",
        "params": {"agent": "x", "client": "follower"},
    });
    let body = request.to_string();
    let mut follower = UnixStream::connect(homes[1].socket()).expect("a connection");
    follower.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    let length = u32::try_from(body.len()).expect("a short frame").to_be_bytes();
    follower.write_all(&[&length[..], body.as_bytes()].concat()).expect("a request");
    let attached = |client: &mut chorus_proto::Client| {
        let listed = client.call::<chorus_proto::methods::conversations::List>(
            &chorus_proto::methods::conversations::ListParams { agent: Some("x".into()), ..Default::default() },
        );
        let main = listed.expect("conversations.list").conversations.into_iter().find(|found| found.name == "main");
        main.map(|main| main.attached.len()).unwrap_or_default()
    };
    wait_until("the follower", DEADLINE, || (attached(&mut a) == 1).then_some(()));
    follower.shutdown(std::net::Shutdown::Write).expect("the end of requests");
    wait_until("its end", DEADLINE, || (attached(&mut a) == 0).then_some(()));
    // The reply comes, and then the end of the connection.
    let mut rest = Vec::new();
    follower.read_to_end(&mut rest).expect("the end");
    assert!(String::from_utf8_lossy(&rest).contains("\"id\":1"), "{}", String::from_utf8_lossy(&rest));
}
