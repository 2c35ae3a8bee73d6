//! The fake Discord itself: what it takes, what it refuses, and that what it tells is what Discord tells.

mod client;
mod faults;
mod gateway;
mod interactions;
mod messages;
mod strict;
mod threads;

use chorus_tests::discord::permissions::ADMINISTRATOR;
use chorus_tests::discord::{ChannelHandle, FakeDiscord, GuildHandle, UserHandle};
use client::Client;

/// A server with somebody in it and a channel, and an application that is connected.
fn connected() -> (FakeDiscord, GuildHandle, UserHandle, ChannelHandle, Client) {
    let discord = FakeDiscord::start();
    let guild = discord.create_guild("home");
    let (mara, room) = (guild.add_member("mara", &["admin"], ADMINISTRATOR), guild.create_channel("general"));
    let mut client = Client::identified(&discord);
    client.until("GUILD_CREATE");
    (discord, guild, mara, room, client)
}
