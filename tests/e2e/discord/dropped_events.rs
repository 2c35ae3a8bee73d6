//! P14: whatever the gateway does, and however the daemon ends, each message is handled once, in the order in which it was written.

use std::collections::HashSet;
use std::time::Duration;

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

/// One message: the room, its number, what it says.
struct Said(usize, u64, String);

struct World {
    discord: FakeDiscord,
    rooms: Vec<ChannelHandle>,
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
        home.write_config(&format!("{}{}reconnect_max = \"50ms\"\n", model.config_toml(), discord.config_toml()));
        let daemon = Daemon::start(&home);
        wait_until("the daemon to be connected", DEADLINE, || {
            let status = daemon.client().call::<chorus_proto::methods::daemon::Status>(&Default::default());
            status.expect("status").discord.connected.then_some(())
        });
        let rooms = AGENTS.map(|agent| {
            daemon.client().init(agent);
            guild.wait_for_channel(agent)
        });
        let (said, done) = (Vec::new(), Vec::new());
        Self { discord, rooms: rooms.into(), mara, model, home, daemon: Some(daemon), said, given: 0, done }
    }

    fn say(&mut self, rng: &mut Rng) {
        let room = rng.below(AGENTS.len() as u64) as usize;
        let text = format!("message {} to {}", self.said.len(), AGENTS[room]);
        // A turn that is cut off may have used one up.
        for _ in 0..3 {
            self.given += 1;
            self.model.anthropic().queue_text([format!("answer {}", self.given)]);
        }
        let id = self.rooms[room].say(&self.mara, &text);
        self.said.push(Said(room, id, text));
    }

    /// One thing that goes wrong.
    fn trouble(&mut self, rng: &mut Rng) {
        let kind = rng.below(13);
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
            _ => {
                self.daemon.take().expect("a daemon").terminate();
                self.discord.wait_disconnected();
                self.discord.forget_sessions();
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
        for Said(room, id, text) in &self.said {
            let mut seen = Vec::new();
            let end = std::time::Instant::now() + DEADLINE * 2;
            wait_until(text, DEADLINE * 3, || {
                seen = self.rooms[*room].application_posts();
                let answer = seen.iter().find(|post| post.reply_to == Some(*id));
                let whole = answer.is_some_and(|answer| answer.button("Stop").is_none());
                let log = || self.daemon.as_ref().expect("a daemon").read_log();
                assert!(whole || std::time::Instant::now() < end, "{text}: {:?}\n{seen:#?}\n{}", self.done, log());
                whole.then_some(())
            });
        }
    }

    /// Every message stands in its conversation once and in order, and has one answer, which nothing else has.
    fn check(&self) {
        self.answered();
        let mut answers = HashSet::new();
        for (room, agent) in AGENTS.iter().enumerate() {
            let said: Vec<&str> =
                self.said.iter().filter(|said| said.0 == room).map(|Said(_, _, text)| &**text).collect();
            let record = self.daemon.as_ref().expect("a daemon").client().message_texts(agent);
            let kept: Vec<&str> =
                record.iter().map(|text| &**text).filter(|text| text.starts_with("message ")).collect();
            assert_eq!(kept, said, "{:?}", self.done);
            let posts = self.rooms[room].application_posts();
            for Said(_, id, text) in self.said.iter().filter(|said| said.0 == room) {
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
