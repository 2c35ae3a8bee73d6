//! What one node has to hear of: what happens at other nodes, and what Discord tells only the node with the gateway.

use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_store_postgres::DatabaseUrl;
use chorus_tests::client_ext::ClientExt as _;
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

#[test]
fn direct_messages_are_answered_by_an_agent_that_another_node_makes_later() {
    let Some(fixture) = Fixture::with("", "dm_agent = \"z\"\n") else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut client = fixture.client(0);
    let direct = fixture.discord.direct_channel(&fixture.mara);
    client.init("z");
    fixture.server.wait_for_channel("z").wait_for_post("z");
    expect_answer(&direct, direct.say(&fixture.mara, "one"), "Yes.");
}

#[test]
fn a_message_that_is_deleted_while_its_turn_waits_at_another_node_is_not_answered() {
    let Some(fixture) = Fixture::with("", "") else { return };
    fixture.models.anthropic().queue(Response::text(["First."]).gate("first"));
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut client = fixture.client(0);
    let params = SendParams { agent: Some("x".into()), text: "terminal".into(), ..Default::default() };
    let terminal = std::thread::spawn(move || client.call::<Send>(&params).map(drop));
    fixture.models.wait_for_gate("first");
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
