//! Contexts that nobody touches leave memory, and nobody sees a difference.

use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, InProcessDaemon, wait_until};

use super::{MINUTE, TIMEOUT, busy, hands, only_the_sentinel, saved_once, wait_for};
use crate::home;

#[test]
fn a_context_that_was_left_alone_goes_on_as_before() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    busy(&mut client, "a", "30m");
    client.append("a", "A second word of a.");
    let rewind = |undo| RewindParams { conversation: None, agent: Some("a".into()), n: None, undo };
    client.call::<Rewind>(&rewind(false)).expect("rewound");
    for _ in 0..3 {
        hands.advance(MINUTE * 2);
    }
    client.call::<Rewind>(&rewind(true)).expect("the rewind is taken back");
    hands.advance(MINUTE * 2);
    assert_eq!(client.message_texts("a"), ["A word of a.", "A second word of a."]);
    hands.advance(MINUTE * 2);
    client.append("a", "A third word of a.");
    assert_eq!(client.message_texts("a").len(), 3);
    busy(&mut client, "sentinel", "29m");
    // Its timer runs from the last message, wherever the context was meanwhile.
    hands.advance(MINUTE * 2);
    hands.advance(TIMEOUT - MINUTE * 3);
    only_the_sentinel(&mut client, "sentinel");
    hands.advance(MINUTE);
    assert_eq!(wait_for(&mut client, 2), ["sentinel", "a"]);
    assert_eq!(saved_once(&mut client, "a").header.message_count, 3);
    wait_until("the context to end", DEADLINE, || client.message_texts("a").is_empty().then_some(()));
}
