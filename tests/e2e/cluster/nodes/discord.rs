//! Nodes that share one bot: messages to the agents of any node are answered once, whichever node has the gateway.

use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, process, wait_until};
use rustix::process::Signal;

use super::Cluster;

/// Time in which another node takes over, with room for a busy machine.
pub(super) const TAKEOVER: Duration = DEADLINE.saturating_mul(4);

/// Two nodes with one bot. The agent `x` is on the node a, `y` on b, which has the gateway.
pub(super) struct Fixture {
    pub models: ModelServer,
    pub discord: FakeDiscord,
    pub server: GuildHandle,
    pub mara: UserHandle,
    pub rooms: [ChannelHandle; 2],
    pub homes: [Home; 2],
    daemons: [Option<Daemon>; 2],
    pub cluster: Cluster,
}

impl Fixture {
    /// `None` if PostgreSQL is not installed.
    fn new() -> Option<Self> {
        Self::with("", "")
    }

    /// With more tables, and more keys of `[discord]`.
    pub(super) fn with(tables: &str, keys: &str) -> Option<Self> {
        let cluster = Cluster::create()?;
        let (models, discord) = (ModelServer::start(), FakeDiscord::start());
        let server = discord.create_guild("home");
        let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
        discord.set_identify_interval(Duration::ZERO);
        let config = format!("{}\n{tables}{}{keys}", models.config_toml(), discord.config_toml());
        let homes = ["a", "b"].map(|name| cluster.node_with(name, &config));
        let a = Daemon::start(&homes[0]);
        wait_for_gateway(&a);
        let b = Daemon::start(&homes[1]);
        wait_for_reason(&b, "the node a is connected");
        // The other node has the gateway at once.
        assert!(a.terminate().success());
        wait_for_gateway(&b);
        let a = Daemon::start(&homes[0]);
        wait_for_reason(&a, "the node b is connected");
        let rooms = [(&a, "x", "of a"), (&b, "y", "of b")].map(|(daemon, name, text)| {
            let mut client = daemon.client();
            client.init(name);
            let room = server.wait_for_channel(name);
            room.wait_for_post(name);
            client.append(name, text);
            room
        });
        assert_eq!(b.client().agent_status("x").node.as_deref(), Some("a"));
        assert_eq!(a.client().agent_status("y").node.as_deref(), Some("b"));
        let daemons = [Some(a), Some(b)];
        Some(Self { models, discord, server, mara, rooms, homes, daemons, cluster })
    }

    pub(super) fn client(&self, node: usize) -> Client {
        self.daemons[node].as_ref().expect("a daemon").client()
    }

    /// Waits until a node has the gateway.
    pub(super) fn wait_for_gateway(&self, node: usize) {
        wait_for_gateway(self.daemons[node].as_ref().expect("a daemon"));
    }

    /// Returns the log of a node.
    pub(super) fn log(&self, node: usize) -> String {
        self.daemons[node].as_ref().expect("a daemon").read_log()
    }

    fn kill(&mut self, node: usize) {
        self.daemons[node].take().expect("a daemon").kill9();
    }

    fn start(&mut self, node: usize) {
        self.daemons[node] = Some(Daemon::start(&self.homes[node]));
    }

    /// Writes in a room, and returns the message.
    pub(super) fn say(&self, room: usize, text: &str) -> (usize, u64) {
        (room, self.rooms[room].say(&self.mara, text))
    }

    /// Waits until all messages have an answer, and each has one only.
    pub(super) fn expect_one_answer_each(&self, said: &[(usize, u64)]) {
        for (room, message) in said {
            wait_until("an answer", TAKEOVER, || (self.answers(*room, *message).len() == 1).then_some(()));
        }
    }

    fn answers(&self, room: usize, message: u64) -> Vec<VisibleMessage> {
        let mut posts = self.rooms[room].application_posts();
        posts.retain(|post| post.reply_to == Some(message) && post.buttons.is_empty());
        posts
    }

    /// The texts of the messages of an agent, however long it takes until a node has it.
    pub(super) fn texts(&self, node: usize, agent: &str) -> Vec<String> {
        let mut client = self.client(node);
        client.set_timeout(Some(TAKEOVER)).expect("a time-out");
        client.message_texts(agent)
    }
}

pub(super) fn wait_for_gateway(daemon: &Daemon) {
    wait_until("the gateway", TAKEOVER, || {
        let status = daemon.client().call::<Status>(&StatusParams::default()).expect("status");
        (status.discord.connected && status.discord.guilds == 1).then_some(())
    });
}

fn wait_for_reason(daemon: &Daemon, why: &str) {
    wait_until("the other node to have the gateway", TAKEOVER, || {
        let status = daemon.client().call::<Status>(&StatusParams::default()).expect("status");
        (!status.discord.connected && status.discord.why.as_deref() == Some(why)).then_some(())
    });
}

#[test]
fn each_node_answers_for_its_agents_and_one_is_connected() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let said = [fixture.say(0, "to x"), fixture.say(1, "to y"), fixture.say(0, "again to x")];
    fixture.expect_one_answer_each(&said);
    assert_eq!(fixture.texts(0, "x"), ["of a", "to x", "Yes.", "again to x", "Yes."]);
    assert_eq!(fixture.texts(1, "y"), ["of b", "to y", "Yes."]);
    // The owner of the agent carries out commands in its channel.
    fixture.mara.run_slash_command(&fixture.rooms[0], "status", &[]).response_with("5 messages");
    fixture.mara.run_slash_command(&fixture.rooms[1], "status", &[]).response_with("3 messages");
    assert_eq!(fixture.discord.identifies(), 1, "the session is resumed by the other node");
}

#[test]
fn a_message_that_waits_at_another_node_says_what_it_says_in_the_end_or_nothing() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.models.anthropic().queue(Response::text(["First."]).gate("first"));
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let first = fixture.say(0, "one");
    fixture.models.wait_for_gate("first");
    let (changed, deleted) = (fixture.say(0, "two"), fixture.say(0, "three"));
    let last = fixture.say(0, "four");
    fixture.rooms[0].edit_message(changed.1, "two as it is meant");
    fixture.rooms[0].delete_message(deleted.1);
    // What comes later in another channel was received later.
    let other = fixture.say(1, "to y");
    fixture.expect_one_answer_each(&[other]);
    fixture.models.open_gate("first");
    fixture.expect_one_answer_each(&[first, changed, last]);
    assert_eq!(fixture.texts(0, "x"), ["of a", "one", "First.", "two as it is meant", "Yes.", "four", "Yes."]);
    assert!(fixture.answers(0, deleted.1).is_empty());
}

#[test]
fn messages_are_answered_once_though_the_node_that_receives_them_is_killed() {
    let Some(mut fixture) = Fixture::new() else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut said = Vec::new();
    // First b has the gateway, then a, which has both agents by then.
    for (round, victim) in [1, 0].into_iter().enumerate() {
        for number in 0..3 {
            said.extend([0, 1].map(|room| fixture.say(room, &format!("before {round}.{number}"))));
        }
        fixture.kill(victim);
        for number in 0..3 {
            said.extend([0, 1].map(|room| fixture.say(room, &format!("after {round}.{number}"))));
        }
        fixture.expect_one_answer_each(&said);
        fixture.start(victim);
    }
    // Nothing comes later.
    let last = [0, 1].map(|room| fixture.say(room, "Is that all?"));
    fixture.expect_one_answer_each(&last);
    fixture.expect_one_answer_each(&said);
    for agent in ["x", "y"] {
        let texts = fixture.texts(0, agent);
        for round in 0..2 {
            for text in ["before", "after"].iter().flat_map(|when| (0..3).map(move |n| format!("{when} {round}.{n}"))) {
                assert_eq!(texts.iter().filter(|said| **said == text).count(), 1, "{agent}: {text} in {texts:?}");
            }
        }
    }
}

#[test]
fn a_node_that_was_paused_with_the_gateway_answers_nothing_twice() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut said = vec![fixture.say(0, "one"), fixture.say(1, "two")];
    let pid = fixture.homes[1].running_pid().expect("a pid");
    process::signal(pid, Signal::STOP);
    said.extend([fixture.say(0, "three"), fixture.say(1, "four")]);
    fixture.wait_for_gateway(0);
    fixture.expect_one_answer_each(&said);
    process::signal(pid, Signal::CONT);
    said.extend([fixture.say(0, "five"), fixture.say(1, "six")]);
    fixture.expect_one_answer_each(&said);
    wait_for_reason(fixture.daemons[1].as_ref().expect("a daemon"), "the node a is connected");
    said.extend([fixture.say(0, "seven"), fixture.say(1, "eight")]);
    fixture.expect_one_answer_each(&said);
}

#[test]
fn an_agent_of_a_node_that_is_not_connected_gets_a_channel_and_answers_in_it() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    fixture.client(0).init("z");
    let room = fixture.server.wait_for_channel("z");
    room.wait_for_post("z");
    let asked = room.say(&fixture.mara, "to z");
    let answer = wait_until("an answer", TAKEOVER, || {
        room.application_posts().into_iter().find(|post| post.reply_to == Some(asked) && post.buttons.is_empty())
    });
    assert_eq!(answer.content, "Yes.");
    assert_eq!(fixture.texts(0, "z"), ["to z", "Yes."]);
}
