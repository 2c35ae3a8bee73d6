//! Live conversations are found like saved ones, and stay found when they are saved.

use std::time::{Duration, Instant};

use chorus_proto::methods::context::{Clear, ClearParams, Rewind, RewindParams};
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, wait_until};

use super::{find, find_nothing, found, query};
use crate::home;

#[test]
fn a_message_is_found_in_the_live_conversation_and_then_in_its_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "we keep the ledger in postgres");
    let begun = Instant::now();
    let live = find(&mut client, "ledger");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!((live[0].session.clone(), live[0].message, &*live[0].agent_name), (None, Some(1), "api"));
    assert_eq!(live[0].snippet, "we keep the ledger in postgres");
    assert_eq!(live[0].marks, [(12, 18)]);
    client.append("api", "and the queue in redis");
    let session = client.save("api", "storage");
    clear(&mut client);
    let hits = wait_until("the session", DEADLINE, || {
        found(&mut client, &query("redis")).filter(|hits| hits.first().is_some_and(|hit| hit.session.is_some()))
    });
    let saved = hits[0].session.as_ref().expect("a session");
    assert_eq!(
        (saved.id, &saved.session_id, hits[0].message),
        (session.header.id, &session.header.session_id, Some(2))
    );
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(find(&mut client, "ledger")[0].session.as_ref().expect("a session").id, session.header.id);
}

#[test]
fn what_was_taken_back_or_cleared_is_not_found() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the first about apples");
    client.append("api", "the second about bananas");
    find(&mut client, "bananas");
    let params = RewindParams { agent: Some("api".into()), ..Default::default() };
    client.call::<Rewind>(&params).expect("rewound");
    client.append("api", "another second about cherries");
    let cherries = find(&mut client, "cherries");
    assert_eq!(cherries[0].message, Some(2));
    find_nothing(&mut client, "bananas");
    assert_eq!(find(&mut client, "apples").len(), 1);
    clear(&mut client);
    find_nothing(&mut client, "apples");
}

#[test]
fn messages_that_several_sessions_share_are_one_hit_in_the_newest() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "about the zeppelin");
    client.save("api", "first");
    client.append_all("api", (0..8).map(|n| NewMessage::text(Role::User, format!("more {n}"))).collect());
    client.save("api", "second");
    client.append("api", "the end");
    let third = client.save("api", "third");
    clear(&mut client);
    let hits = wait_until("the newest", DEADLINE, || {
        found(&mut client, &query("zeppelin"))
            .filter(|hits| hits.iter().any(|hit| hit.session.as_ref().is_some_and(|found| found.id == third.header.id)))
    });
    assert_eq!(hits.len(), 1, "{hits:?}");
}

fn clear(client: &mut chorus_proto::Client) {
    client.call::<Clear>(&ClearParams { agent: Some("api".into()), ..Default::default() }).expect("cleared");
}

#[test]
fn a_huge_session_is_indexed_in_parts_between_which_live_messages_are() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.init("web");
    // More than a round of the indexer reads.
    let words = |n: usize| (0..10).map(|word| format!("word{} ", (n * 7 + word * 13) % 5000)).collect::<String>();
    let message = |n: usize| NewMessage::text(Role::User, format!("number{n} {}", words(n)));
    for part in 0..12 {
        client.append_all("api", (part * 1000..(part + 1) * 1000).map(message).collect());
    }
    let saved = client.save("api", "huge");
    clear(&mut client);
    // It is new to the index as a whole.
    drop((daemon, client));
    std::fs::remove_dir_all(home.path.join("index")).expect("removed");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("web", "the pelican is here");
    // As the index is committed again and again, it has a part of the session for a while.
    let mut was_in_part = false;
    let state = wait_until("the index", DEADLINE * 6, || {
        let state = super::index_state(&mut client);
        was_in_part |= (1000..12_000).contains(&state.messages);
        Some(state).filter(|state| state.complete)
    });
    assert!(was_in_part, "live messages waited until all of the session was indexed");
    assert_eq!((state.messages, state.indexed), (12_001, 2));
    find(&mut client, "pelican");
    for number in [0, 999, 1000, 1001, 7_500, 11_999] {
        let hits = find(&mut client, &format!("number{number}"));
        let session = hits[0].session.as_ref().map(|session| session.id);
        assert_eq!((hits.len(), session, hits[0].message), (1, Some(saved.header.id), Some(number + 1)));
    }
}
