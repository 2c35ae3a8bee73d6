//! Messages in Discord while everything fails. The nodes reach Discord all the time: also one that the database does not reach.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_GUILD, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, FakeDiscord, UserHandle};
use chorus_tests::rng::{Rng, rounds_from_env, seed_from_env};
use chorus_tests::wait_until;

use super::super::discord::TAKEOVER;
use super::super::start_all;
use super::{Chaos, LONG, PATIENCE, pick, put_faults};

/// Seconds of faults; `CHORUS_CLUSTER_SECONDS` overrides it.
const SECONDS: u64 = 40;

/// Agents that people write to.
const ROOMS: usize = 6;

/// A message that somebody wrote.
struct Said {
    room: usize,
    message: u64,
    text: String,
}

/// Somebody who writes to the agents.
struct Speaker {
    rooms: Vec<ChannelHandle>,
    mara: UserHandle,
    said: Vec<Said>,
}

impl Speaker {
    fn run(&mut self, chaos: &Chaos, seed: u64) {
        let mut rng = Rng::new(seed);
        while !chaos.over.load(Ordering::Relaxed) {
            self.say(pick(&mut rng, self.rooms.len()));
            chaos.pause(100 + rng.below(600));
        }
    }

    fn say(&mut self, room: usize) {
        let text = format!("m0.{}", self.said.len());
        let message = self.rooms[room].say(&self.mara, &format!("This is {text} !"));
        self.said.push(Said { room, message, text });
    }

    /// The posts that answer a message.
    fn answers(&self, said: &Said) -> Vec<String> {
        let posts = self.rooms[said.room].application_posts().into_iter();
        let answers = posts.filter(|post| post.reply_to == Some(said.message) && post.buttons.is_empty());
        answers.map(|post| post.content).collect()
    }

    /// Waits until each message has its answer. None has two.
    fn expect_one_answer_each(&self) {
        for said in &self.said {
            let what = format!("an answer to {}", said.text);
            let answers =
                wait_until(&what, PATIENCE, || Some(self.answers(said)).filter(|answers| !answers.is_empty()));
            assert_eq!(answers, [format!("re {}", said.text)], "answers to {}", said.text);
        }
    }
}

#[test]
fn each_message_in_discord_is_answered_once_whatever_fails() {
    let seconds = rounds_from_env("CHORUS_CLUSTER_SECONDS", SECONDS);
    let seed = seed_from_env("CHORUS_CLUSTER_SEED", 27);
    println!("{seconds} s with the seed {seed}");
    let discord = FakeDiscord::start();
    let server = discord.create_guild("home");
    let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_GUILD | MANAGE_MESSAGES);
    discord.set_identify_interval(Duration::ZERO);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let Some(chaos) = runtime.block_on(Chaos::create(seconds >= LONG, Some(discord))) else { return };
    let chaos = Arc::new(chaos);
    let daemons = start_all(&chaos.homes).map(Some);
    for daemon in daemons.iter().flatten() {
        wait_until("the gateway, here or elsewhere", TAKEOVER, || {
            let discord = daemon.client().call::<Status>(&StatusParams::default()).expect("status").discord;
            let is_elsewhere = discord.why.is_some_and(|why| why.ends_with("is connected"));
            (discord.guilds == 1 || is_elsewhere).then_some(())
        });
    }
    let rooms = (0..ROOMS).map(|number| {
        let name = format!("room-{number}");
        let params = InitParams { name: name.clone(), ..Default::default() };
        let made = daemons[number % 3].as_ref().expect("a daemon").client().call::<Init>(&params).expect("agent.init");
        assert_eq!(made.warnings, [""; 0]);
        let room = server.wait_for_channel(&name);
        room.wait_for_post(&name);
        room
    });
    let mut speaker = Speaker { rooms: rooms.collect(), mara, said: Vec::new() };
    let speaking = chaos.clone();
    let speaker = std::thread::spawn(move || {
        speaker.run(&speaking, seed);
        speaker
    });
    let (mut daemons, report, _) = runtime.block_on(put_faults(&chaos, daemons, (seconds, seed)));
    let healed = Instant::now();
    chaos.over.store(true, Ordering::Relaxed);
    let mut speaker = speaker.join().expect("the speaker");
    speaker.expect_one_answer_each();
    let settled = healed.elapsed();
    // What comes late comes before the answers to these.
    (0..ROOMS).for_each(|room| speaker.say(room));
    speaker.expect_one_answer_each();
    println!("faults: {report}");
    let (count, settled) = (speaker.said.len(), settled.as_millis());
    println!("{count} messages have one answer each, the last of them {settled} ms after the last fault");
    daemons.iter_mut().flatten().for_each(chorus_tests::Daemon::assert_alive);
}
