//! `shards`: the servers are divided among several connections, and each message is answered once.

use std::time::Duration;

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::{SOON, becomes};
use crate::home;

/// A server of each shard of two, with an agent.
struct Fixture {
    models: ModelServer,
    discord: FakeDiscord,
    servers: [GuildHandle; 2],
    people: [UserHandle; 2],
    home: Home,
}

impl Fixture {
    fn new() -> Self {
        let (models, discord) = (ModelServer::start(), FakeDiscord::start());
        discord.set_identify_interval(Duration::from_secs(1));
        let servers = [0, 1].map(|shard| discord.create_guild_of_shard("home", (shard, 2)));
        let rights = MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES;
        let people = servers.each_ref().map(|server| server.add_member("mara", &[], rights));
        models.anthropic().set_fallback(Response::text(["Yes."]));
        Self { models, discord, servers, people, home: home() }
    }

    fn start(&self, shards: &str) -> Daemon {
        let config = self.discord.config_toml();
        Daemon::start_with(&self.home, &format!("{}{config}{SOON}shards = {shards}\n", self.models.config_toml()))
    }

    /// Creates an agent in each server by its command.
    fn init(&self) -> [ChannelHandle; 2] {
        [0, 1].map(|shard| {
            let name = ["x", "y"][shard];
            let lobby = self.servers[shard].create_channel("lobby");
            let asked = self.people[shard].run_slash_command(&lobby, "agent init", &[("name", name)]);
            _ = asked.response_with(name);
            self.servers[shard].wait_for_channel(name)
        })
    }
}

/// Waits until a message has one answer.
fn expect_answer(room: &ChannelHandle, message: u64) {
    wait_until("an answer", DEADLINE, || {
        let posts = room.application_posts();
        let answers = posts.iter().filter(|post| post.reply_to == Some(message) && post.buttons.is_empty()).count();
        assert!(answers < 2, "{posts:?}");
        (answers == 1).then_some(())
    });
}

#[test]
fn one_daemon_serves_the_servers_of_all_shards_and_resumes_each() {
    let fixture = Fixture::new();
    let daemon = fixture.start("2");
    assert_eq!(becomes(&daemon, DiscordState::Connected).guilds, 2);
    assert_eq!(fixture.discord.connected_shards(), [(0, 2), (1, 2)]);
    let rooms = fixture.init();
    for ((room, person), server) in rooms.iter().zip(&fixture.people).zip(&fixture.servers) {
        expect_answer(room, room.say(person, "one"));
        assert!(!server.commands().is_empty());
    }
    assert_eq!(fixture.discord.registrations(), 2, "once in each server");
    daemon.terminate();
    let missed = [0, 1].map(|shard| rooms[shard].say(&fixture.people[shard], "two"));
    let daemon = fixture.start("2");
    becomes(&daemon, DiscordState::Connected);
    for ((room, person), missed) in rooms.iter().zip(&fixture.people).zip(missed) {
        expect_answer(room, missed);
        expect_answer(room, room.say(person, "three"));
    }
    assert_eq!((fixture.discord.identifies(), fixture.discord.resumes()), (2, 2));
    let mut client = daemon.client();
    for agent in ["x", "y"] {
        assert_eq!(client.message_texts(agent), ["one", "Yes.", "two", "Yes.", "three", "Yes."]);
    }
}

#[test]
fn another_number_of_shards_loses_and_repeats_nothing() {
    let fixture = Fixture::new();
    fixture.discord.recommend_shards(2, 2);
    let daemon = fixture.start("1");
    becomes(&daemon, DiscordState::Connected);
    let rooms = fixture.init();
    let say = |text: String| [0, 1].map(|room| (room, rooms[room].say(&fixture.people[room], &text)));
    let mut said = say("with 1".to_owned()).to_vec();
    said.iter().for_each(|(room, message)| expect_answer(&rooms[*room], *message));
    daemon.kill9();
    for shards in ["2", "3", "\"auto\""] {
        said.extend(say(format!("before {shards}")));
        let daemon = fixture.start(shards);
        becomes(&daemon, DiscordState::Connected);
        said.extend(say(format!("with {shards}")));
        said.iter().for_each(|(room, message)| expect_answer(&rooms[*room], *message));
        daemon.kill9();
    }
}

#[test]
fn too_few_shards_are_said_with_what_to_set() {
    let fixture = Fixture::new();
    fixture.discord.set_max_guilds_per_shard(1);
    let daemon = fixture.start("1");
    let info = becomes(&daemon, DiscordState::Stopped);
    assert!(info.why.is_some_and(|why| why.contains("too many servers for its number of shards")));
    assert!(info.hint.is_some_and(|hint| hint.contains("shards = \"auto\"")));
    daemon.terminate();
    fixture.discord.recommend_shards(2, 2);
    let daemon = fixture.start("\"auto\"");
    becomes(&daemon, DiscordState::Connected);
    assert_eq!(fixture.discord.connected_shards(), [(0, 2), (1, 2)]);
    assert_eq!(fixture.discord.identifies_refused(), 0);
}
