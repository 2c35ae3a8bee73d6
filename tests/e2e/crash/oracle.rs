//! What must be in an agent that four clients append to at once.

use std::collections::BTreeMap;

/// For each client, how many of its messages were acknowledged, and how many it has sent.
#[derive(Debug, Default, Clone)]
pub struct Oracle {
    clients: BTreeMap<u64, Sent>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sent {
    acked: u64,
    sent: u64,
}

impl Oracle {
    /// The text of message `n` of `client`.
    pub fn text(client: u64, n: u64) -> String {
        format!("client {client} message {n}")
    }

    pub fn set(&mut self, client: u64, acked: u64, sent: u64) {
        self.clients.insert(client, Sent { acked, sent });
    }

    pub fn acked(&self, client: u64) -> u64 {
        self.clients.get(&client).map_or(0, |sent| sent.acked)
    }

    /// Compares with what is there. A message that was sent and not acknowledged may be there or not, and counts as
    /// acknowledged from now on where it is.
    pub fn compare(&mut self, texts: &[String]) {
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        for text in texts {
            let mut numbers = text.split(' ').filter_map(|word| word.parse::<u64>().ok());
            let (client, n) = (numbers.next().expect("a client"), numbers.next().expect("a number"));
            let next = found.entry(client).or_default();
            assert_eq!(n, *next, "client {client}: message {n} where {next} was due (lost, doubled or reordered)");
            *next += 1;
        }
        for (client, sent) in &mut self.clients {
            let there = found.remove(client).unwrap_or(0);
            assert!(there >= sent.acked, "client {client}: {there} messages, {} were acknowledged", sent.acked);
            assert!(there <= sent.sent, "client {client}: {there} messages, {} were sent", sent.sent);
            *sent = Sent { acked: there, sent: there };
        }
        assert!(found.is_empty(), "messages of nobody: {found:?}");
    }
}
