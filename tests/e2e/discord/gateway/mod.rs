//! The connection to the gateway: taken up again after whatever ends it, within a budget of new ones, and never in anybody's way.

mod budget;
mod config;
mod fatal_errors;
mod outage;
mod proxy;
mod reconnect;
mod restart;
mod shards;

use chorus_proto::Client;
use chorus_proto::methods::daemon::{DiscordInfo, DiscordState, Status, StatusParams};
use chorus_tests::discord::FakeDiscord;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;

/// Waits between tries would take longer than tests have.
const SOON: &str = "reconnect_max = \"100ms\"\n";

/// A server with the application in one guild, and a home that knows it.
fn rig(more: &str) -> (FakeDiscord, Home) {
    let (discord, home) = (FakeDiscord::start(), home());
    discord.create_guild("home");
    home.write_config(&(discord.config_toml() + more));
    (discord, home)
}

fn info(client: &mut Client) -> DiscordInfo {
    client.call::<Status>(&StatusParams::default()).expect("status").discord
}

/// Waits until the daemon says that it is so.
#[track_caller]
fn becomes(daemon: &Daemon, state: DiscordState) -> DiscordInfo {
    let mut client = daemon.client();
    wait_until(&format!("{state:?}"), DEADLINE, || Some(info(&mut client)).filter(|info| info.state == Some(state)))
}
