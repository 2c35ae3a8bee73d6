//! Bench: 1,000 slash commands at once while disk and model are frozen; measures the time to the first responses.

use std::time::{Duration, Instant};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::discord::{FakeDiscord, Interaction};
use chorus_tests::frozen_disk::FrozenDisk;
use chorus_tests::measure::{median, print_report};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, home, wait_until};

const INTERACTIONS: usize = 1000;
const ROUNDS: usize = 5;
/// Longest time from the first interaction to the last first response.
const TARGET: Duration = Duration::from_secs(1);

fn main() {
    let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home!());
    discord.set_interaction_timeout(DEADLINE);
    let server = discord.create_guild("home");
    let hall = server.create_channel("hall");
    let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
    mara.run_slash_command(&hall, "ping", &[]).response_with("is online");
    daemon.client().init("scribe");
    let room = server.wait_for_channel("scribe");
    model.anthropic().queue(Response::text(["So far"]).gate("held"));
    room.say(&mara, "go on");
    model.wait_for_gate("held");
    for round in 1..=ROUNDS {
        let held = FrozenDisk::freeze(&home, daemon.pid).expect("strace");
        let begun = Instant::now();
        let given: Vec<Interaction> =
            (0..INTERACTIONS).map(|_| mara.run_slash_command(&room, "context history", &[])).collect();
        let told = begun.elapsed();
        wait_until("first answers", DEADLINE, || given.iter().all(Interaction::is_acknowledged).then_some(()));
        let whole = begun.elapsed();
        drop(held);
        let each: Vec<Duration> = given.iter().map(|one| one.wait_for_acknowledgement().1).collect();
        let longest = each.iter().max().copied().unwrap_or_default();
        let verdict = if whole <= TARGET { "met" } else { "MISSED" };
        print_report(format_args!(
            "{INTERACTIONS} interactions, round {round}: told within {told:.3?}, deferred within {whole:.3?} \
             (each: median {:.3?}, longest {longest:.3?})  target {TARGET:.0?}  {verdict}",
            median(each)
        ));
        wait_until("answers", DEADLINE * 3, || given.iter().all(|one| !one.responses().is_empty()).then_some(()));
    }
    model.open_gate("held");
}
