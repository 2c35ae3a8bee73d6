//! P14: whatever the gateway does, however the daemon ends, and whoever archives threads, each message is handled once, in the order
//! in which it was written in its conversation: channels, threads and direct messages.

use std::collections::HashSet;
use std::time::Duration;

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::conversations::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::{ChannelHandle, FakeDiscord, UserHandle};
use chorus_tests::model_server::ModelServer;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;
use crate::system_calls::all;

/// Scripts in one home: a day has fifty new sessions.
const EACH: u64 = 15;
/// Homes at a time.
const AT_ONCE: u64 = 2;
const AGENTS: [&str; 2] = ["scribe", "clerk"];

/// Threads below the channel of each agent.
const THREADS: [&str; 2] = ["colours", "numbers"];

/// Where people write, and whose conversation that is.
struct Place {
    channel: ChannelHandle,
    agent: &'static str,
    /// What made the conversation; `None` for the channel of the agent.
    origin: Option<String>,
    /// Only threads can be archived.
    is_thread: bool,
}

/// One message: the number of the place, its id, what it says.
struct Said(usize, u64, String);

struct World {
    discord: FakeDiscord,
    places: Vec<Place>,
    mara: UserHandle,
    model: ModelServer,
    home: Home,
    daemon: Option<Daemon>,
    said: Vec<Said>,
    /// Answers that the model has been given.
    given: usize,
    done: Vec<String>,
}

impl World {
    fn new() -> Self {
        let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
        discord.set_identify_interval(Duration::ZERO);
        discord.set_heartbeat(Duration::from_secs(1));
        let guild = discord.create_guild("home");
        let mara = guild.add_member("mara", &[], 0);
        let keys = format!("reconnect_max = \"50ms\"\ndm_agent = \"{}\"\n", AGENTS[0]);
        home.write_config(&format!("{}{}{keys}", model.config_toml(), discord.config_toml()));
        let daemon = Daemon::start(&home);
        wait_until("the daemon to be connected", DEADLINE, || {
            let status = daemon.client().call::<chorus_proto::methods::daemon::Status>(&Default::default());
            status.expect("status").discord.connected.then_some(())
        });
        let mut places = Vec::new();
        for agent in AGENTS {
            daemon.client().init(agent);
            let room = guild.wait_for_channel(agent);
            for name in THREADS {
                let channel = guild.create_thread(&room, name);
                let origin = Some(format!("discord:{}", channel.id));
                places.push(Place { channel, agent, origin, is_thread: true });
            }
            places.push(Place { channel: room, agent, origin: None, is_thread: false });
        }
        let (channel, origin) = (discord.direct_channel(&mara), Some(format!("discord-dm:{}", mara.id)));
        places.push(Place { channel, agent: AGENTS[0], origin, is_thread: false });
        let (said, done) = (Vec::new(), Vec::new());
        let mut world = Self { discord, places, mara, model, home, daemon: Some(daemon), said, given: 0, done };
        // Chorus knows direct messages from the first one on.
        world.say_in(world.places.len() - 1);
        world.answered();
        world
    }

    fn say(&mut self, rng: &mut Rng) {
        self.say_in(rng.below(self.places.len() as u64) as usize);
    }

    fn say_in(&mut self, place: usize) {
        let text = format!("message {} to {place}", self.said.len());
        // A turn that is cut off may have used one up.
        for _ in 0..3 {
            self.given += 1;
            self.model.anthropic().queue_text([format!("answer {}", self.given)]);
        }
        let id = self.places[place].channel.say(&self.mara, &text);
        self.said.push(Said(place, id, text));
    }

    /// One thing that goes wrong.
    fn trouble(&mut self, rng: &mut Rng) {
        let kind = rng.below(17);
        let thread = rng.below(self.places.len() as u64) as usize;
        self.done.push(format!("after {}: {kind}", self.said.len()));
        match kind {
            0 => self.discord.request_reconnect(),
            1 => self.discord.invalidate_sessions(true),
            2 => self.discord.invalidate_sessions(false),
            code @ 3..=7 => self.discord.close_connections([1000, 4000, 4007, 4008, 4009][code as usize - 3]),
            8 => self.discord.reset_connections(),
            9 => self.discord.silence_connections(),
            10 => self.daemon.take().expect("a daemon").kill9(),
            11 => _ = self.daemon.take().expect("a daemon").terminate(),
            12 => {
                self.daemon.take().expect("a daemon").terminate();
                self.discord.wait_disconnected();
                self.discord.forget_sessions();
            }
            // People close and open threads, also while nobody listens.
            _ if !self.places[thread].is_thread => {}
            13 | 14 => self.places[thread].channel.archive(),
            15 => self.places[thread].channel.unarchive(),
            _ => {
                self.daemon.take().expect("a daemon").kill9();
                self.places[thread].channel.archive();
            }
        }
        if self.daemon.is_none() {
            if rng.below(2) == 0 {
                self.say(rng);
            }
            self.daemon = Some(Daemon::start(&self.home));
        }
    }

    fn script(&mut self, rng: &mut Rng) {
        for _ in 0..1 + rng.below(3) {
            for _ in 0..rng.below(3) {
                self.say(rng);
            }
            self.trouble(rng);
            if rng.below(2) == 0 {
                self.discord.wait_connected();
            }
        }
        self.say(rng);
        self.answered();
    }

    /// Waits until each message has its answer.
    fn answered(&self) {
        for Said(place, id, text) in &self.said {
            let mut seen = Vec::new();
            let end = std::time::Instant::now() + DEADLINE * 2;
            wait_until(text, DEADLINE * 3, || {
                seen = self.places[*place].channel.application_posts();
                let answer = seen.iter().find(|post| post.reply_to == Some(*id));
                let whole = answer.is_some_and(|answer| answer.button("Stop").is_none());
                let log = || self.daemon.as_ref().expect("a daemon").read_log();
                assert!(whole || std::time::Instant::now() < end, "{text}: {:?}\n{seen:#?}\n{}", self.done, log());
                whole.then_some(())
            });
        }
    }

    /// What was said in the conversation of a place: in each of its sessions, the oldest first, and in the live context.
    fn records(&self, place: &Place) -> Vec<Vec<String>> {
        let mut client = self.daemon.as_ref().expect("a daemon").client();
        let Some(origin) = &place.origin else { return vec![client.message_texts(place.agent)] };
        let params = ListParams { agent: Some(place.agent.into()), all: true, ..ListParams::default() };
        let listed = client.call::<List>(&params).expect("conversations.list").conversations;
        let Some(own) = listed.into_iter().find(|one| one.origin.as_ref() == Some(origin)) else { return Vec::new() };
        let params = HistoryParams {
            agent: Some(place.agent.into()),
            conversation: Some(own.name.clone()),
            limit: Some(1000),
            ..HistoryParams::default()
        };
        let sessions = client.call::<History>(&params).expect("context.history").sessions;
        let mut records: Vec<Vec<String>> = Vec::new();
        for session in sessions.iter().rev() {
            let (_, messages) = client.get_session(place.agent, &session.header.id.to_string());
            records.push(messages.into_iter().map(|message| message.content).collect());
        }
        let live = client.messages_in(place.agent, &own.name);
        records.push(live.into_iter().map(|message| message.content).collect());
        records
    }

    /// Every message stands in its conversation once and in order, and has one answer, which nothing else has.
    fn check(&self) {
        self.answered();
        let mut answers = HashSet::new();
        for (number, place) in self.places.iter().enumerate() {
            let said: Vec<&str> =
                self.said.iter().filter(|said| said.0 == number).map(|Said(_, _, text)| &**text).collect();
            let records = self.records(place);
            let mut kept: Vec<&str> = Vec::new();
            for record in &records {
                // A session that was restored is continued.
                let mut seen = HashSet::new();
                for text in record.iter().map(|text| &**text).filter(|text| text.starts_with("message ")) {
                    assert!(seen.insert(text), "{text} twice: {:?}\n{record:#?}", self.done);
                    if !kept.contains(&text) {
                        kept.push(text);
                    }
                }
            }
            assert_eq!(kept, said, "{:?}\n{records:#?}", self.done);
            let posts = place.channel.application_posts();
            for Said(_, id, text) in self.said.iter().filter(|said| said.0 == number) {
                let count = posts.iter().filter(|post| post.reply_to == Some(*id)).count();
                assert_eq!(count, 1, "{text}: {:?}\n{posts:#?}", self.done);
            }
            for post in posts.iter().filter(|post| post.content.starts_with("answer ")) {
                assert!(answers.insert(post.content.clone()), "{} twice: {:?}", post.content, self.done);
            }
        }
        assert!(answers.len() * 10 >= self.said.len() * 7, "{} of {} were answered", answers.len(), self.said.len());
    }
}

#[test]
fn whatever_the_gateway_does_each_message_is_handled_once() {
    let scripts = rounds_from_env("CHORUS_DISCORD_SCRIPTS", if all() { 300 } else { 2 * EACH });
    let homes: Vec<u64> = (0..scripts.div_ceil(EACH)).collect();
    for some in homes.chunks(AT_ONCE as usize) {
        std::thread::scope(|scope| {
            for number in some {
                scope.spawn(move || {
                    let mut rng = Rng::new(0xd15c + number);
                    let mut world = World::new();
                    for _ in 0..EACH.min(scripts - number * EACH) {
                        world.script(&mut rng);
                    }
                    world.check();
                });
            }
        });
    }
}
