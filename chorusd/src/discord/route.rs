//! Who hears which event.

use std::sync::Arc;

use serenity::model::event::Event as Dispatch;
use tokio::sync::mpsc;

use super::bridge::Bridge;
use super::commands;
use super::event::Event;
use super::inbound;
use super::rooms;

/// Hands events on until the gateway has ended. Nothing here waits for a disk or for Discord.
pub async fn run(bridge: &Arc<Bridge>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Dispatch(dispatch) => hear(bridge, *dispatch),
            Event::Connected { resumed } => {
                bridge.ops.discord.taken_in();
                rooms::connected(bridge, resumed);
                inbound::connected(bridge);
                if resumed {
                    commands::look_over(bridge);
                }
            }
            Event::Disconnected => {}
        }
    }
}

fn hear(bridge: &Arc<Bridge>, dispatch: Dispatch) {
    bridge.guilds.hear(&dispatch);
    rooms::hear(bridge, &dispatch);
    if matches!(
        dispatch,
        Dispatch::ChannelUpdate(_)
            | Dispatch::GuildRoleUpdate(_)
            | Dispatch::GuildMemberUpdate(_)
            | Dispatch::GuildCreate(_)
    ) {
        bridge.posts.rights();
    }
    match dispatch {
        Dispatch::MessageCreate(event) => inbound::message(bridge, event.message),
        Dispatch::MessageUpdate(event) => inbound::edited(bridge, event),
        Dispatch::MessageDelete(event) => {
            inbound::deleted(bridge, event.channel_id, event.guild_id, vec![event.message_id]);
        }
        Dispatch::MessageDeleteBulk(event) => inbound::deleted(bridge, event.channel_id, event.guild_id, event.ids),
        Dispatch::Ready(event) => {
            let guilds = event.ready.guilds.iter().map(|guild| guild.id);
            commands::ready(bridge, event.ready.application.id, guilds);
        }
        Dispatch::GuildCreate(event) => {
            inbound::there(bridge, event.guild.id);
            commands::joined(bridge, event.guild.id);
        }
        Dispatch::ChannelUpdate(event) => inbound::rights(bridge, event.channel.id, event.channel.guild_id),
        Dispatch::GuildRoleUpdate(event) => inbound::rights_in(bridge, event.role.guild_id),
        Dispatch::GuildMemberUpdate(event) => inbound::rights_in(bridge, event.guild_id),
        Dispatch::GuildDelete(event) if !event.guild.unavailable => commands::forget(bridge, event.guild.id),
        Dispatch::InteractionCreate(event) => commands::hear(bridge, event.interaction),
        _ => {}
    }
}
