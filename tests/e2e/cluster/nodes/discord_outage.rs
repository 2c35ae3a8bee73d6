//! Messages in Discord whose turn ends because the node loses its database.

use std::time::Duration;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::wait_until;
use serde_json::json;

use super::Cluster;
use super::discord::{TAKEOVER, wait_for_gateway};
use super::left_behind::cut_off;

/// Lets `answers` be those of the model, of which the last one waits until the node has noticed that its database is gone. Returns
/// the answer in the channel, and how often the model was called.
fn ask_while_the_database_goes(answers: Vec<Response>) -> Option<(String, usize)> {
    let cluster = Cluster::create()?;
    let (models, discord) = (ModelServer::start(), FakeDiscord::start());
    let server = discord.create_guild("home");
    let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
    discord.set_identify_interval(Duration::ZERO);
    let (_runtime, proxy, url) = cut_off(&cluster);
    let home = cluster.node_at("a", &url, &format!("{}\n{}", models.config_toml(), discord.config_toml()));
    let daemon = Daemon::start(&home);
    wait_for_gateway(&daemon);
    daemon.client().init("x");
    let room = server.wait_for_channel("x");
    room.wait_for_post("x");
    answers.into_iter().for_each(|answer| models.anthropic().queue(answer));
    models.anthropic().set_fallback(Response::text(["Yes."]));
    let message = room.say(&mara, "Well?");
    models.wait_for_gate("gone");
    proxy.refuse();
    let noticed = "no heartbeat for six seconds";
    wait_until("the node to notice it", TAKEOVER, || daemon.read_log().contains(noticed).then_some(()));
    models.open_gate("gone");
    wait_until("the message to wait", TAKEOVER, || daemon.read_log().contains("the message waits").then_some(()));
    proxy.heal();
    let answer = wait_until("an answer", TAKEOVER, || {
        let mut posts = room.application_posts();
        posts.retain(|post| post.reply_to == Some(message) && post.buttons.is_empty());
        posts.pop().map(|post| post.content)
    });
    Some((answer, models.requests().len()))
}

#[test]
fn a_message_whose_answer_could_not_be_stored_is_answered_once_the_database_is_back() {
    let lost = Response::empty().gate("gone").then_text("Lost.");
    let Some((answer, calls)) = ask_while_the_database_goes(vec![lost]) else { return };
    assert_eq!((&*answer, calls), ("Yes.", 2));
}

#[test]
fn a_turn_that_had_called_a_tool_is_not_repeated_and_the_channel_is_told() {
    let call = Response::empty().then_call("c1", "list_models", &json!({}));
    let lost = Response::empty().gate("gone").then_text("Lost.");
    let Some((answer, calls)) = ask_while_the_database_goes(vec![call, lost]) else { return };
    assert!(answer.contains("lost its connection to PostgreSQL"), "{answer}");
    assert!(answer.ends_with("\n-# Send the message again to retry."), "{answer}");
    assert_eq!(calls, 2);
}
