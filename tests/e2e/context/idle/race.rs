//! A message in the very instant in which the timer fires.

use std::sync::Barrier;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, InProcessDaemon, wait_until};

use super::{TIMEOUT, hands, put_away};
use crate::home;

const ROUNDS: usize = 200;

#[test]
fn a_message_in_the_instant_the_timer_fires_is_in_this_context_or_the_first_of_the_next() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    let sent: Vec<String> = (0..ROUNDS).map(|n| format!("message {n}")).collect();
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        let mut writer = daemon.client();
        let (both, sent) = (&both, &sent);
        scope.spawn(move || {
            for text in sent {
                both.wait();
                writer.append("a", text);
                both.wait();
            }
        });
        for n in 0..ROUNDS {
            both.wait();
            // Sooner or later after the message set out.
            for _ in 0..n % 20 * 2_000 {
                std::hint::spin_loop();
            }
            hands.advance(TIMEOUT);
            both.wait();
        }
    });
    wait_until("the last context to be put away", DEADLINE, || {
        hands.advance(TIMEOUT);
        client.message_texts("a").is_empty().then_some(())
    });
    let mut sessions = client.history("a");
    sessions.sort_by_key(|session| session.header.saved_at);
    let mut found = Vec::new();
    for session in &sessions {
        found.extend(client.get_session("a", &session.header.id.to_string()).1.into_iter().map(|m| m.content));
    }
    assert_eq!(found, sent, "each once, in order, in {} sessions", sessions.len());
    wait_until("the last notice", DEADLINE, || (put_away(&mut client).len() == sessions.len()).then_some(()));
}
