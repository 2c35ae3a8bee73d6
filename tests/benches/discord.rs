//! A thousand slash commands at once while every disk and model is held shut: how long until each has its first answer.

use std::time::{Duration, Instant};

use chorus_tests::chat::Chat as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::discord::{Discord, Interaction};
use chorus_tests::held::HeldDisk;
use chorus_tests::measure::{median, report};
use chorus_tests::model_server::{Answer, ModelServer};
use chorus_tests::{DEADLINE, Daemon, home, wait_until};

const INTERACTIONS: usize = 1000;
const ROUNDS: usize = 5;
/// From the first interaction to the last first answer.
const PROMISED: Duration = Duration::from_secs(1);

fn main() {
    let (discord, model, home) = (Discord::start(), ModelServer::start(), home!());
    discord.patience(DEADLINE);
    let server = discord.guild("home");
    let hall = server.channel("hall");
    let mara = server.member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
    mara.slash(&hall, "ping", &[]).answer_with("is there");
    daemon.client().init("scribe");
    let room = server.room("scribe");
    model.anthropic().answer(Answer::text(["So far"]).gate("held"));
    room.say(&mara, "go on");
    model.reached("held");
    for round in 1..=ROUNDS {
        let held = HeldDisk::of(&home, daemon.pid).expect("strace");
        let begun = Instant::now();
        let given: Vec<Interaction> = (0..INTERACTIONS).map(|_| mara.slash(&room, "context history", &[])).collect();
        let told = begun.elapsed();
        wait_until("first answers", DEADLINE, || given.iter().all(Interaction::is_acknowledged).then_some(()));
        let whole = begun.elapsed();
        drop(held);
        let each: Vec<Duration> = given.iter().map(|one| one.acknowledged().1).collect();
        let longest = each.iter().max().copied().unwrap_or_default();
        let verdict = if whole <= PROMISED { "met" } else { "MISSED" };
        report(format_args!(
            "{INTERACTIONS} interactions, round {round}: told within {told:.3?}, deferred within {whole:.3?} \
             (each: median {:.3?}, longest {longest:.3?})  target {PROMISED:.0?}  {verdict}",
            median(each)
        ));
        wait_until("answers", DEADLINE * 3, || given.iter().all(|one| !one.answers().is_empty()).then_some(()));
    }
    model.open("held");
}
