//! Nodes that share the shards of one bot.

use std::time::Duration;

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::Cluster;

/// Time in which another node takes over, with room for a busy machine.
const TAKEOVER: Duration = DEADLINE.saturating_mul(4);

/// Two nodes, and a server of each of two shards with an agent.
struct Fixture {
    _models: ModelServer,
    discord: FakeDiscord,
    people: Vec<UserHandle>,
    rooms: Vec<ChannelHandle>,
    homes: [Home; 2],
    daemons: [Option<Daemon>; 2],
    _cluster: Cluster,
}

impl Fixture {
    /// `None` if PostgreSQL is not installed.
    fn new() -> Option<Self> {
        Self::with([2, 2], "")
    }

    /// With these numbers of shards in the configurations of the nodes, and more keys of `[discord]`. Only the first one has
    /// shards if they differ.
    fn with(counts: [u32; 2], keys: &str) -> Option<Self> {
        let cluster = Cluster::create()?;
        let (models, discord) = (ModelServer::start(), FakeDiscord::start());
        models.anthropic().set_fallback(Response::text(["Yes."]));
        discord.set_identify_interval(Duration::from_secs(5));
        let servers = [0, 1].map(|shard| discord.create_guild_of_shard("home", (shard, 2)));
        let rights = MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES;
        let people: Vec<_> = servers.iter().map(|server| server.add_member("mara", &[], rights)).collect();
        let config = |count| format!("{}\n{}{keys}shards = {count}\n", models.config_toml(), discord.config_toml());
        let homes = [("a", counts[0]), ("b", counts[1])].map(|(name, count)| cluster.node_with(name, &config(count)));
        let a = Daemon::start(&homes[0]);
        let is_same = counts[0] == counts[1];
        if !is_same {
            wait_until("the first node to be connected", TAKEOVER, || {
                (discord.connected_shards() == [(0, 2), (1, 2)]).then_some(())
            });
        }
        let daemons = [Some(a), Some(Daemon::start(&homes[1]))];
        let mut fixture =
            Self { _models: models, discord, people, rooms: Vec::new(), homes, daemons, _cluster: cluster };
        fixture.wait_for_shares(if is_same { [1, 1] } else { [2, 0] });
        assert_eq!(fixture.discord.identifies_refused(), 0, "the nodes begin sessions one after the other");
        fixture.rooms = servers.iter().zip(&fixture.people).zip(["x", "y"]).map(create).collect();
        Some(fixture)
    }

    /// Waits until each node is connected with so many servers, one of each shard.
    fn wait_for_shares(&self, shares: [u64; 2]) {
        wait_until("each node to have its shards", TAKEOVER, || {
            let is_so = |(daemon, share): (&Option<Daemon>, u64)| match daemon {
                Some(daemon) => {
                    let status = daemon.client().call::<Status>(&StatusParams::default()).expect("status");
                    status.discord.guilds == share && status.discord.connected == (share > 0)
                }
                None => share == 0,
            };
            let all = self.daemons.iter().zip(shares).all(is_so);
            (all && self.discord.connected_shards() == [(0, 2), (1, 2)]).then_some(())
        });
    }

    fn say(&self, text: &str) -> [(usize, u64); 2] {
        [0, 1].map(|room| (room, self.rooms[room].say(&self.people[room], text)))
    }

    /// Waits until all messages have an answer, and each has one only.
    fn expect_one_answer_each(&self, said: &[(usize, u64)]) {
        for (room, message) in said {
            wait_until("an answer", TAKEOVER, || {
                let posts = self.rooms[*room].application_posts();
                let is_answer = |post: &&_| is_answer_to(post, *message);
                let answers = posts.iter().filter(is_answer).count();
                assert!(answers < 2, "{posts:?}");
                (answers == 1).then_some(())
            });
        }
    }
}

fn is_answer_to(post: &chorus_tests::discord::VisibleMessage, message: u64) -> bool {
    post.reply_to == Some(message) && post.buttons.is_empty()
}

/// Creates an agent in a server by its command.
fn create(((server, person), name): ((&GuildHandle, &UserHandle), &str)) -> ChannelHandle {
    let lobby = server.create_channel("lobby");
    let asked = person.run_slash_command(&lobby, "agent init", &[("name", name)]);
    _ = asked.response_with(name);
    server.wait_for_channel(name)
}

#[test]
fn each_node_has_a_shard_and_another_takes_it_over_when_the_node_is_killed() {
    let Some(mut fixture) = Fixture::new() else { return };
    let mut said = fixture.say("one").to_vec();
    fixture.expect_one_answer_each(&said);
    said.extend(fixture.say("just before"));
    fixture.daemons[0].take().expect("a daemon").kill9();
    said.extend(fixture.say("while nobody listens"));
    fixture.expect_one_answer_each(&said);
    fixture.wait_for_shares([0, 2]);
    // The node that comes back gets its share.
    fixture.daemons[0] = Some(Daemon::start(&fixture.homes[0]));
    said.extend(fixture.say("two"));
    fixture.wait_for_shares([1, 1]);
    said.extend(fixture.say("three"));
    fixture.expect_one_answer_each(&said);
    let mut client = fixture.daemons[1].as_ref().expect("a daemon").client();
    client.set_timeout(Some(TAKEOVER)).expect("a time-out");
    for agent in ["x", "y"] {
        let texts = client.message_texts(agent);
        for text in ["one", "just before", "while nobody listens", "two", "three"] {
            assert_eq!(texts.iter().filter(|said| **said == text).count(), 1, "{agent}: {text} in {texts:?}");
        }
    }
}

#[test]
fn direct_messages_reach_an_agent_in_a_server_whose_shard_another_node_has() {
    let Some(fixture) = Fixture::with([2, 2], "dm_agent = \"y\"\n") else { return };
    let person = &fixture.people[1];
    let direct = fixture.discord.direct_channel(person);
    let asked = direct.say(person, "one");
    wait_until("an answer", TAKEOVER, || {
        direct.application_posts().iter().any(|post| is_answer_to(post, asked)).then_some(())
    });
    person.run_slash_command(&direct, "status", &[]).response_with("2 messages");
}

#[test]
fn a_node_that_drains_hands_its_shards_over() {
    let Some(fixture) = Fixture::new() else { return };
    _ = chorusctl(&fixture.homes[0], ["cluster", "drain", "a"]);
    fixture.wait_for_shares([0, 2]);
    fixture.expect_one_answer_each(&fixture.say("one"));
}

#[test]
fn a_node_with_another_number_of_shards_waits_until_the_others_have_ended() {
    let Some(mut fixture) = Fixture::with([2, 3], "") else { return };
    let status = |daemon: &Option<Daemon>| {
        let daemon = daemon.as_ref().expect("a daemon");
        daemon.client().call::<Status>(&StatusParams::default()).expect("status").discord
    };
    wait_until("the reason", TAKEOVER, || {
        let why = status(&fixture.daemons[1]).why.unwrap_or_default();
        let is_said = why.contains("the node a has 2 shards, and this node is to have 3")
            && why.contains("set the same `shards` in [discord] on all nodes");
        is_said.then_some(())
    });
    let mut said = fixture.say("with 2").to_vec();
    fixture.expect_one_answer_each(&said);
    fixture.daemons[0].take().expect("a daemon").kill9();
    said.extend(fixture.say("before 3"));
    wait_until("the new shards", TAKEOVER, || {
        (fixture.discord.connected_shards() == [(0, 3), (1, 3), (2, 3)]).then_some(())
    });
    said.extend(fixture.say("with 3"));
    fixture.expect_one_answer_each(&said);
}
