//! Compares what is there with what was acknowledged.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;

use super::clients::OwnAgent;
use super::{Chaos, PATIENCE, texts_in};

/// Keeps the texts of this test, which may be answers, and none of these.
fn known(texts: Vec<String>, without: &HashSet<String>) -> Vec<String> {
    let is_known = |text: &String| {
        let own = text.strip_prefix("re ").unwrap_or(text);
        texts_in(own).next() == Some(own) && !without.contains(own)
    };
    texts.into_iter().filter(is_known).collect()
}

/// No text is there twice, and those of one client are in their order.
fn expect_order(place: &str, texts: &[String]) {
    let mut last = HashMap::new();
    for text in texts {
        let (is_answer, own) = text.strip_prefix("re ").map_or((false, &**text), |own| (true, own));
        let (writer, number) = own.split_once('.').expect("two numbers");
        let number: u64 = number.parse().expect("a number");
        let before = last.insert((is_answer, writer.to_owned()), number);
        assert!(before.is_none_or(|before| before < number), "{place}: {text} in {texts:?}");
    }
}

/// Checks all agents through one node after the other. Says what was found.
pub(super) fn check(chaos: &Chaos, owned: &[OwnAgent]) -> String {
    let begun = Instant::now();
    let mut clients = chaos.homes.each_ref().map(|home| Client::connect(&home.socket()).expect("a client"));
    for client in &mut clients {
        client.set_timeout(Some(PATIENCE)).expect("a time-out");
        for name in chaos.shared.iter().chain(owned.iter().map(|agent| &agent.name)) {
            client.agent_status(name);
        }
    }
    let reached = begun.elapsed();
    let acknowledged = std::mem::take(&mut *chaos.acknowledged.lock());
    for (number, name) in chaos.shared.iter().enumerate() {
        let texts = known(clients[number % 3].message_texts(name), &HashSet::new());
        expect_order(name, &texts);
        let there: HashSet<&String> = texts.iter().collect();
        for (_, text) in acknowledged.iter().filter(|(agent, _)| agent == name) {
            assert!(there.contains(text), "{name}: {text} is lost: {texts:?}");
        }
    }
    let mut sessions = 0;
    for (number, agent) in owned.iter().enumerate() {
        sessions += check_own(&mut clients[number % 3], agent);
    }
    let exact = owned.iter().filter(|agent| agent.is_exact).count();
    format!(
        "all agents were reached through all nodes in {} ms; {} messages to shared agents, {sessions} sessions; {exact} of {} agents \
         were compared in whole",
        reached.as_millis(),
        acknowledged.len(),
        owned.len()
    )
}

/// Returns the number of its sessions.
fn check_own(client: &mut Client, agent: &OwnAgent) -> usize {
    let mut everywhere = HashSet::new();
    let live = known(client.message_texts(&agent.name), &agent.uncertain);
    expect_order(&agent.name, &live);
    if agent.is_exact {
        assert_eq!(live, known(agent.texts.clone(), &agent.uncertain), "the context of {}", agent.name);
    }
    everywhere.extend(live);
    let mut sessions = HashMap::new();
    for session in client.history(&agent.name) {
        let id = session.header.id.to_string();
        let (_, messages) = client.get_session(&agent.name, &id);
        let texts = known(messages.into_iter().map(|message| message.content).collect(), &agent.uncertain);
        expect_order(&format!("{} in {id}", agent.name), &texts);
        everywhere.extend(texts.iter().cloned());
        sessions.insert(id, texts);
    }
    for saved in &agent.saves {
        let texts = sessions.get(&saved.session).unwrap_or_else(|| panic!("{}: a save is lost", agent.name));
        if saved.is_exact {
            assert_eq!(*texts, known(saved.texts.clone(), &agent.uncertain), "{} in {}", agent.name, saved.session);
        }
    }
    for text in &agent.appended {
        assert!(everywhere.contains(text), "{}: {text} is lost", agent.name);
    }
    sessions.len()
}
