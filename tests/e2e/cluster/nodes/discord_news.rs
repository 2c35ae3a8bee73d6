//! What one node has to hear of: what happens at other nodes, and what Discord tells only the node with the gateway.

use std::thread::JoinHandle;

use chorus_proto::CallError;
use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_store_postgres::DatabaseUrl;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, SEND_MESSAGES};
use chorus_tests::discord::{ChannelHandle, UserHandle};
use chorus_tests::model_server::Response;
use chorus_tests::wait_until;

use super::discord::{Fixture, TAKEOVER};

/// Waits until a message has an answer with this text.
fn expect_answer(room: &ChannelHandle, message: u64, text: &str) {
    wait_until("an answer", TAKEOVER, || {
        let posts = room.application_posts();
        posts.iter().any(|post| post.reply_to == Some(message) && post.content == text).then_some(())
    });
}

/// Begins a turn of the agent x at the terminal, which goes on until the gate `first` opens.
fn send_in_terminal(fixture: &Fixture) -> JoinHandle<Result<(), CallError>> {
    fixture.models.anthropic().queue(Response::text(["First."]).gate("first"));
    let mut client = fixture.client(0);
    let params = SendParams { agent: Some("x".into()), text: "terminal".into(), ..Default::default() };
    let terminal = std::thread::spawn(move || client.call::<Send>(&params).map(drop));
    fixture.models.wait_for_gate("first");
    terminal
}

#[test]
fn direct_messages_are_answered_by_an_agent_that_another_node_makes_later() {
    let Some(fixture) = Fixture::with("", "dm_agent = \"z\"\n") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let direct = fixture.discord.direct_channel(&fixture.mara);
    // Each time it is another agent, which has the name of the one before it. The node b has the gateway.
    for node in [0, 0, 1, 0] {
        let mut client = fixture.client(node);
        client.init("z");
        fixture.server.wait_for_channel("z").wait_for_post("z");
        assert_eq!(client.agent_status("z").node.as_deref(), Some(["a", "b"][node]));
        expect_answer(&direct, direct.say(&fixture.mara, "one"), "Yes.");
        expect_answer(&direct, direct.say(&fixture.mara, "two"), "Yes.");
        client.call::<Destroy>(&DestroyParams { name: "z".into(), ..Default::default() }).expect("agent.destroy");
    }
}

#[test]
fn commands_in_direct_messages_are_carried_out_by_a_node_without_the_gateway() {
    let Some(fixture) = Fixture::with("", "dm_agent = \"x\"\n") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let run =
        |who: &UserHandle, command: &str| who.run_slash_command(&fixture.discord.direct_channel(who), command, &[]);
    // Before the first message.
    let owner = fixture.server.owner();
    let options = [("text", "We like blue.")];
    owner.run_slash_command(&fixture.discord.direct_channel(&owner), "pin", &options).response_with("Pinned.");
    let direct = fixture.discord.direct_channel(&fixture.mara);
    expect_answer(&direct, direct.say(&fixture.mara, "one"), "Yes.");
    run(&fixture.mara, "status").response_with("2 messages");
    // Who may write in the channel of the agent is asked of Discord.
    let otto = fixture.server.add_member("otto", &[], 0);
    fixture.rooms[0].deny_user(&otto, SEND_MESSAGES);
    run(&otto, "status").response_with("You may not write to this agent.");
    let vera = fixture.server.add_member("vera", &[], 0);
    run(&vera, "context clear").response_with("This place has no conversation yet");
}

#[test]
fn what_was_missed_is_answered_though_the_agent_has_moved_away_from_the_node_with_the_gateway() {
    let Some(fixture) = Fixture::with("", "dm_agent = \"x\"\n") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    // Discord refuses the node b permanently, so a gets the gateway, and keeps it while it drains.
    fixture.discord.close_connections(4014);
    fixture.wait_for_gateway(0);
    let room = &fixture.rooms[0];
    let thread = fixture.server.create_thread(room, "plans");
    let direct = fixture.discord.direct_channel(&fixture.mara);
    let say_in_all = |text| [room, &thread, &direct].map(|place| (place, place.say(&fixture.mara, text)));
    let expect_answers = |said: [(&ChannelHandle, u64); 3]| {
        said.into_iter().for_each(|(place, message)| expect_answer(place, message, "Yes."));
    };
    expect_answers(say_in_all("one"));
    chorusctl(&fixture.homes[0], ["cluster", "drain", "a"]).expect_success();
    wait_until("the agent to move", TAKEOVER, || {
        (fixture.client(1).agent_status("x").node.as_deref() == Some("b")).then_some(())
    });
    fixture.discord.refuse_connections();
    let said = say_in_all("two");
    fixture.discord.forget_sessions();
    fixture.discord.accept_connections();
    expect_answers(said);
    fixture.wait_for_gateway(0);
    expect_answers(say_in_all("three"));
    assert_eq!(fixture.texts(1, "x"), ["of a", "one", "Yes.", "two", "Yes.", "three", "Yes."]);
}

#[test]
fn a_message_that_is_edited_while_its_turn_waits_at_another_node_says_what_it_says_in_the_end() {
    let Some(fixture) = Fixture::with("", "") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let terminal = send_in_terminal(&fixture);
    let room = &fixture.rooms[0];
    let (_, edited) = fixture.say(0, "a mistake");
    room.wait_for_post("waiting for");
    room.edit_message(edited, "as it is meant");
    wait_until("the edit", TAKEOVER, || fixture.log(0).contains("an edit of a message that waits").then_some(()));
    fixture.models.open_gate("first");
    terminal.join().expect("the client").expect("a turn");
    fixture.expect_one_answer_each(&[(0, edited)]);
    assert_eq!(fixture.texts(0, "x"), ["of a", "terminal", "First.", "as it is meant", "Yes."]);
}

#[test]
fn a_message_that_is_deleted_while_its_turn_waits_at_another_node_is_not_answered() {
    let Some(fixture) = Fixture::with("", "") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let terminal = send_in_terminal(&fixture);
    let room = &fixture.rooms[0];
    let (_, deleted) = fixture.say(0, "a mistake");
    room.wait_for_post("waiting for");
    room.delete_message(deleted);
    room.wait_for_post("was deleted");
    let last = fixture.say(0, "last");
    fixture.models.open_gate("first");
    terminal.join().expect("the client").expect("a turn");
    fixture.expect_one_answer_each(&[last]);
    assert_eq!(fixture.texts(0, "x"), ["of a", "terminal", "First.", "last", "Yes."]);
}

#[test]
fn a_role_that_is_new_is_heeded_by_a_node_without_the_gateway() {
    let Some(fixture) = Fixture::with("[permission_grants]\nkeeper = [\"locked\"]\n", "") else { return };
    let lock = |who: &UserHandle| {
        let options = [("name", "x"), ("key", "permissions"), ("value", "locked")];
        who.run_slash_command(&fixture.rooms[0], "agent config", &options).response().content
    };
    let vera = fixture.server.add_member("vera", &[], MANAGE_CHANNELS);
    assert!(lock(&vera).contains("is not allowed to grant the profile"));
    // The node of the agent has requested the roles by now.
    let otto = fixture.server.add_member("otto", &["keeper"], MANAGE_CHANNELS);
    wait_until("the new role", TAKEOVER, || lock(&otto).contains("is now `locked`").then_some(()));
    assert_eq!(fixture.client(0).agent_status("x").permissions, "locked");
}

#[test]
fn a_sender_that_may_not_post_lets_other_nodes_try() {
    let Some(fixture) = Fixture::with("", "") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let room = &fixture.rooms[0];
    room.deny_application(SEND_MESSAGES);
    let asked = fixture.say(0, "one");
    wait_until("a sender that may not post", TAKEOVER, || {
        let checks = fixture.client(0).call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
        checks.iter().any(|check| check.name == "Discord posts").then_some(())
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let leases = || {
        let count = async {
            let client =
                DatabaseUrl::parse(&fixture.cluster.url).expect("a URL").connect().await.expect("a connection");
            let sql = "SELECT count(*) FROM discord_leases WHERE kind = 'channel'";
            client.query_one(sql, &[]).await.expect("a count").get::<_, i64>(0)
        };
        runtime.block_on(count)
    };
    wait_until("no lease", TAKEOVER, || (leases() == 0).then_some(()));
    room.clear_denials();
    fixture.expect_one_answer_each(&[asked]);
}
