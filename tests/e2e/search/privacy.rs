//! What an agent may find for the conversation that it is in: nothing of other private ones, of other agents, and nothing that was deleted.

use chorus_proto::methods::context::{Append, AppendParams, Clear, ClearParams, Save, SaveParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::methods::session::{Delete, DeleteParams, Purge, PurgeParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use rusqlite::Connection;
use serde_json::json;

use super::{query, search, wait_until_complete};
use crate::tools::self_edit::{results_in, start_fixture, start_fixture_with};

/// More results than are ever shown.
const MANY: usize = 20;

/// A message that is a worse result than each of [`flights`].
const SLOW: &str =
    "Long before all of this, somebody at the old airfield wrote that no zeppelin is fast enough for the post.";

/// Opens a private conversation of `a`; returns its name.
fn open(client: &mut Client, origin: &str) -> String {
    let params =
        NewParams { agent: Some("a".into()), name: "dm".into(), origin: Some(origin.into()), ..NewParams::default() };
    client.call::<New>(&params).expect("conversations.new").conversation.name
}

fn append(client: &mut Client, agent: &str, conversation: &str, messages: Vec<NewMessage>) {
    let (agent, conversation) = (Some(agent.into()), Some(conversation.into()));
    client.call::<Append>(&AppendParams { agent, conversation, messages, ..AppendParams::default() }).expect("append");
}

/// Messages about flights, each too far from the others to be the same result.
fn flights(of: &str) -> Vec<NewMessage> {
    let flight = |n: usize| {
        let others = (0..4).map(|_| NewMessage::text(Role::Assistant, "Fine."));
        std::iter::once(NewMessage::text(Role::User, format!("zeppelin {n} {of}"))).chain(others)
    };
    (0..MANY).flat_map(flight).collect()
}

/// Saves a message in a session of its own.
fn save(client: &mut Client, agent: &str, conversation: &str, text: &str) {
    append(client, agent, conversation, vec![NewMessage::text(Role::User, text)]);
    let params = SaveParams {
        agent: Some(agent.into()),
        conversation: Some(conversation.into()),
        description: Some(format!("about a zeppelin {text}")),
        clear: true,
        ..SaveParams::default()
    };
    client.call::<Save>(&params).expect("context.save");
}

/// Returns what `search_sessions` finds in a conversation of `a`.
fn search_in(fixture: &Fixture, conversation: &str) -> String {
    let call = Response::tool_call("c1", "search_sessions", &json!({"query": "zeppelin"}));
    fixture.models().anthropic().queue(call);
    fixture.models().anthropic().queue_text(["Done."]);
    let (agent, conversation) = (Some("a".to_owned()), Some(conversation.to_owned()));
    let params =
        SendParams { agent, conversation: conversation.clone(), text: "do it".into(), ..SendParams::default() };
    fixture.client().call::<Send>(&params).expect("a turn");
    let result = results_in(fixture, "a", &conversation.unwrap_or_default()).pop().expect("a result");
    assert!(!result.is_error, "{}", result.text);
    result.text
}

#[test]
fn private_messages_are_no_results_elsewhere_and_take_no_place_of_one() {
    let fixture = start_fixture("locked");
    let mut client = fixture.client();
    for origin in ["discord-dm:1", "discord-private:2"] {
        let private = open(&mut client, origin);
        append(&mut client, "a", &private, flights("secret"));
    }
    client.append("a", SLOW);
    wait_until_complete(&mut client);
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("1 result,") && found.contains(SLOW) && !found.contains("secret"), "{found}");
}

#[test]
fn what_damage_has_taken_from_its_conversation_is_no_result_elsewhere() {
    let mut fixture = start_fixture("locked");
    let mut client = fixture.client();
    let hers = open(&mut client, "discord-dm:1");
    append(&mut client, "a", &hers, flights("secret"));
    client.append("a", SLOW);
    drop(client);
    assert!(fixture.stop().success());
    let journal = Connection::open(fixture.home.path.join("db/live.db")).expect("the journal");
    assert_eq!(journal.execute("DELETE FROM conversations", []).expect("deleted"), 1);
    drop(journal);
    fixture.start();
    let mut client = fixture.client();
    wait_until_complete(&mut client);
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("1 result,") && found.contains(SLOW) && !found.contains("secret"), "{found}");
    let all = search(&mut client, &query("zeppelin 3 secret"));
    assert!(all.hits.iter().any(|hit| hit.snippet.contains("secret")), "its owner finds it: {:?}", all.hits);
}

#[test]
fn direct_messages_find_only_their_own_and_others_take_no_place() {
    let fixture = start_fixture("locked");
    let mut client = fixture.client();
    append(&mut client, "a", "main", flights("of all"));
    let hers = open(&mut client, "discord-dm:1");
    append(&mut client, "a", &hers, vec![NewMessage::text(Role::User, SLOW)]);
    wait_until_complete(&mut client);
    let found = search_in(&fixture, &hers);
    assert!(found.starts_with("1 result,") && found.contains(SLOW) && !found.contains("of all"), "{found}");
}

#[test]
fn without_an_index_it_is_the_same() {
    let fixture = start_fixture_with("locked", "[search]\nindex = false\n");
    let mut client = fixture.client();
    let (hers, thread) = (open(&mut client, "discord-dm:1"), open(&mut client, "discord-private:2"));
    save(&mut client, "a", "main", "of all");
    for n in 0..6 {
        save(&mut client, "a", &hers, &format!("hers {n}"));
        save(&mut client, "a", &thread, &format!("threaded {n}"));
    }
    fixture.create_agent_of("b", "anthropic/claude-test", Some("locked"));
    save(&mut client, "b", "main", "of b");
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("found in 1 session,") && found.contains("of all"), "{found}");
    let found = search_in(&fixture, &hers);
    assert!(found.starts_with("found in 6 sessions,") && found.contains("hers 0"), "{found}");
    assert!(["of all", "threaded", "of b"].iter().all(|other| !found.contains(other)), "{found}");
    let found = search_in(&fixture, &thread);
    assert!(found.starts_with("found in 7 sessions,") && !found.contains("hers"), "{found}");
}

#[test]
fn what_was_deleted_or_purged_is_not_found_from_that_moment_on() {
    let fixture = start_fixture("locked");
    let mut client = fixture.client();
    save(&mut client, "a", "main", "to be deleted");
    save(&mut client, "a", "main", "to be purged");
    wait_until_complete(&mut client);
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("2 results,"), "{found}");
    let (agent, session) = (Some("a".to_owned()), "latest".to_owned());
    client.call::<Clear>(&ClearParams { agent: agent.clone(), ..ClearParams::default() }).expect("cleared");
    let purge = PurgeParams { agent: agent.clone(), session: session.clone(), ..PurgeParams::default() };
    client.call::<Purge>(&purge).expect("purged");
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("1 result,") && !found.contains("purged"), "{found}");
    let delete = DeleteParams { agent, session, ..DeleteParams::default() };
    client.call::<Delete>(&delete).expect("deleted");
    let found = search_in(&fixture, "main");
    assert!(found.starts_with("no results in your conversations"), "{found}");
}
