//! Sessions of direct messages are offered to nobody else.

use chorus_proto::methods::context::{Append, AppendParams, Clear, ClearParams};
use chorus_proto::methods::search::{Search, SearchParams};
use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::MANAGE_MESSAGES;
use chorus_tests::discord::{ChannelHandle, UserHandle};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use serde_json::json;

use super::{DirectFixture, answer_to};
use crate::search::wait_until_complete;

#[test]
fn sessions_of_direct_messages_are_not_offered_elsewhere() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "My secret colour?", "Ultramarine.");
    let saved = dms.mara.run_slash_command(&hers, "context save", &[("description", "colours of mara")]);
    saved.response_with("Saved as");
    dms.talk(&dms.otto, &dms.room, "Our word?", "Bread.");
    let ada = dms.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    ada.run_slash_command(&dms.room, "context save", &[("description", "words of all")]).response_with("Saved as");
    let session = dms.conversation(&dms.mara).and_then(|one| one.last_session).expect("a session");
    let name = chorusctl(&dms.fixture.home, ["--json", "session", "show", &session.id.to_string()]).expect_json();
    let name = name["session"]["session_id"].as_str().unwrap_or_default().to_owned();
    assert!(name.contains("colours"), "{name}");

    // In the channel there are the sessions of the channel.
    let shown = ada.run_slash_command(&dms.room, "context history", &[]).response_with("words of all");
    assert!(!shown.content.contains("mara") && shown.content.contains("1 session"), "{shown:?}");
    let (id, tail) = (session.id.to_string(), &session.id.to_string()[..8]);
    // The last one is a slip of the pen, for which no name is proposed.
    for session in [&*name, &id, tail, "colours", "@discord-dm-mara", "@discord-dm-mar"] {
        for command in ["context restore", "context resume", "session export"] {
            let refused = ada.run_slash_command(&dms.room, command, &[("session", session)]);
            let answer = refused.response_with("session");
            let found = ["Ultramarine", "Restored", "Resumed", "colours of mara"];
            assert!(found.iter().all(|found| !answer.content.contains(found)), "{command} {session}: {answer:?}");
            let is_proposed = session == "@discord-dm-mar" && answer.content.contains("discord-dm-mara");
            assert!(!is_proposed, "{command}: {answer:?}");
            assert!(answer.ephemeral && answer.files.is_empty(), "{command} {session}: {answer:?}");
        }
    }
    let offered = ada.autocomplete(&dms.room, "context restore", &[("session", "")]);
    assert!(offered.len() == 1 && offered[0].0.contains("words of all"), "{offered:?}");
    assert_eq!(dms.main_texts(), ["Our word?", "Bread."]);

    // In the direct messages there are those of the direct messages.
    let shown = dms.mara.run_slash_command(&hers, "context history", &[]).response_with("colours of mara");
    assert!(!shown.content.contains("words of all"), "{shown:?}");
    let refused = dms.mara.run_slash_command(&hers, "context restore", &[("session", "words")]);
    assert!(!refused.response_with("session").content.contains("Restored"));
    let offered = dms.mara.autocomplete(&hers, "context restore", &[("session", "")]);
    assert!(offered.len() == 1 && offered[0].0.contains("colours of mara"), "{offered:?}");

    // The owner sees all of them.
    let all = chorusctl(&dms.fixture.home, ["history", "--agent", "maps"]).stdout;
    assert!(all.contains("words of all") && all.contains("colours of mara"), "{all}");
}

#[test]
fn the_agent_does_not_find_them_for_others() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "My secret colour?", "Ultramarine.");
    dms.mara.run_slash_command(&hers, "context save", &[]).response_with("Saved as");
    // This is only in the live conversation.
    dms.talk_direct(&dms.mara, "And my secret animal?", "The okapi.");
    dms.talk(&dms.otto, &dms.room, "Our word?", "Bread.");
    dms.fixture.set("maps", "permissions", "open").expect("set");
    let conversation = dms.conversation(&dms.mara).expect("a conversation");
    let session = conversation.last_session.expect("a session").id.to_string();
    wait_until_complete(&mut dms.fixture.client());
    let call = |channel: &ChannelHandle, params: serde_json::Value| {
        dms.answer(Response::empty().then_call("c1", "search_sessions", &params));
        dms.say("So it is.");
        let asked = channel.say(&dms.mara, "Search.");
        answer_to(channel, asked);
        let request = dms.fixture.server.requests().pop().expect("a request");
        // The result is in the last message.
        request.body["messages"].as_array().and_then(|all| all.last()).expect("a message").to_string()
    };
    for query in ["ultramarine", "okapi", "secret"] {
        let found = call(&dms.room, json!({"query": query}));
        assert!(found.contains("no results in your conversations"), "{query}: {found}");
    }
    for named in [&*session, "latest", &format!("@{}", conversation.name), &format!("@{}", conversation.id)] {
        let read = call(&dms.room, json!({"session": named}));
        assert!(read.contains("you have no session"), "{named}: {read}");
        assert!(!read.contains("Ultramarine") && !read.contains("okapi"), "{named}: {read}");
    }
    let found = call(&hers, json!({"query": "ultramarine"}));
    assert!(found.contains("1 result") && found.contains("> Ultramarine."), "{found}");
    let found = call(&hers, json!({"query": "okapi"}));
    assert!(found.contains("1 result") && found.contains("> The okapi."), "{found}");
    let read = call(&hers, json!({"session": session}));
    assert!(read.contains("> Ultramarine."), "{read}");
    // In direct messages there is nothing of the channel.
    let found = call(&hers, json!({"query": "bread"}));
    assert!(found.contains("no results in your conversations"), "{found}");
    let read = call(&hers, json!({"session": "@main"}));
    assert!(read.contains("you have no session"), "{read}");
}

#[test]
fn a_search_finds_what_the_place_may_see() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "My secret colour?", "Ultramarine.");
    dms.mara.run_slash_command(&hers, "context save", &[("description", "colours of mara")]).response_with("Saved as");
    dms.talk_direct(&dms.mara, "And my secret animal?", "The okapi.");
    dms.talk(&dms.otto, &dms.room, "Our bird?", "The heron.");
    wait_until_complete(&mut dms.fixture.client());
    let search = |who: &UserHandle, channel: &ChannelHandle, query: &str| {
        who.run_slash_command(channel, "context search", &[("query", query)]).response_with(" for `").content
    };
    let ada = dms.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    for query in ["ultramarine", "okapi", "colours mara", "secret"] {
        let found = search(&ada, &dms.room, query);
        assert!(found.contains("no results"), "{query}: {found}");
    }
    assert!(search(&ada, &dms.room, "heron").contains("The **heron**"));
    let found = search(&dms.mara, &hers, "ultramarine");
    assert!(found.contains("> **Ultramarine**."), "{found}");
    assert!(search(&dms.mara, &hers, "okapi").contains("**okapi**"));
    assert!(search(&dms.mara, &hers, "heron").contains("no results"));
    // Another person's direct messages.
    let his = dms.direct(&dms.otto);
    dms.talk_direct(&dms.otto, "Hello?", "Hello.");
    assert!(search(&dms.otto, &his, "okapi").contains("no results"));
    // The owner finds everything.
    let all = chorusctl(&dms.fixture.home, ["search", "okapi", "--agent", "maps"]).stdout;
    assert!(all.contains("The okapi."), "{all}");
}

#[test]
fn private_results_take_no_place_of_others() {
    let dms = DirectFixture::new();
    dms.talk_direct(&dms.mara, "Hello?", "Hello.");
    let conversation = dms.conversation(&dms.mara).map(|one| one.name);
    let flight = |n: usize| {
        let others = (0..4).map(|_| NewMessage::text(Role::Assistant, "Fine."));
        std::iter::once(NewMessage::text(Role::User, format!("zeppelin {n}"))).chain(others)
    };
    let messages = (0..10).flat_map(flight).collect();
    let mut client = dms.fixture.client();
    let agent = Some("maps".to_owned());
    client
        .call::<Append>(&AppendParams { agent, conversation, messages, ..AppendParams::default() })
        .expect("context.append");
    client.append("maps", "Long before all of this, somebody at the old airfield wrote that no zeppelin is fast.");
    wait_until_complete(&mut client);
    let found = dms.otto.run_slash_command(&dms.room, "context search", &[("query", "zeppelin")]);
    let found = found.response_with(" for `").content;
    assert!(found.contains("1 result for") && found.contains("old airfield"), "{found}");
}

#[test]
fn the_agent_does_not_recall_them_for_others() {
    let dms = DirectFixture::new();
    dms.fixture.set("maps", "recall", "5").expect("set");
    dms.talk_direct(&dms.mara, "The secret colour of mine is ultramarine.", "I see.");
    dms.mara.run_slash_command(&dms.direct(&dms.mara), "context save", &[]).response_with("Saved as");
    dms.talk_direct(&dms.otto, "The secret colour of otto is vermilion.", "Fine.");
    let mut client = dms.fixture.client();
    for colour in ["ultramarine", "vermilion"] {
        let params = SearchParams { query: colour.into(), all_agents: true, ..SearchParams::default() };
        wait_until(colour, DEADLINE, || client.call::<Search>(&params).ok().filter(|result| !result.hits.is_empty()));
    }
    let system = |channel: &ChannelHandle| {
        dms.talk(&dms.mara, channel, "What is the secret colour of mine and of otto?", "Who knows.");
        dms.fixture.server.requests().pop().expect("a request").body["system"].to_string()
    };
    let shown = system(&dms.room);
    assert!(!shown.contains("ultramarine") && !shown.contains("vermilion"), "{shown}");
    // In her own direct messages there are her own ones, which her live conversation does not have any more.
    let hers = dms.direct(&dms.mara);
    let conversation = dms.conversation(&dms.mara).map(|one| one.name);
    let clear = ClearParams { agent: Some("maps".into()), conversation, ..ClearParams::default() };
    let timeouts = || {
        let log = dms.fixture.daemon.as_ref().map(Daemon::read_log).unwrap_or_default();
        log.matches("nothing recalled").count()
    };
    let shown = loop {
        let before = timeouts();
        client.call::<Clear>(&clear).expect("cleared");
        let shown = system(&hers);
        // This machine may be too busy to find anything in time.
        if timeouts() == before {
            break shown;
        }
    };
    assert!(shown.contains("The secret colour of mine is ultramarine.") && !shown.contains("vermilion"), "{shown}");
}
