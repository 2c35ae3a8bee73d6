//! Routes gateway events to the parts of the front end.

use std::sync::Arc;

use serenity::model::event::Event as Dispatch;
use tokio::sync::mpsc;

use super::app::DiscordApp;
use super::gateway_event::GatewayEvent;
use super::{channels, commands, inbound, sharing, threads};

/// Routes the events of a shard until its connection has ended. Nothing here waits for the disk or for Discord.
pub(crate) async fn run(app: &Arc<DiscordApp>, shard: u32, mut events: mpsc::Receiver<GatewayEvent>) {
    while let Some(event) = events.recv().await {
        match event {
            GatewayEvent::Dispatch(dispatch) => route_event(app, shard, *dispatch),
            GatewayEvent::Connected { resumed } => {
                app.ops.discord.on_guilds_loaded(shard);
                channels::on_connected(app, shard, resumed);
                threads::on_connected(app, shard);
                inbound::on_connected(app, shard);
                if resumed {
                    commands::on_resumed(app, shard);
                }
            }
            GatewayEvent::Disconnected => inbound::on_disconnected(app, shard),
        }
    }
}

fn route_event(app: &Arc<DiscordApp>, shard: u32, dispatch: Dispatch) {
    app.roles.apply(&dispatch);
    channels::handle_event(app, &dispatch);
    if matches!(
        dispatch,
        Dispatch::ChannelUpdate(_)
            | Dispatch::GuildRoleUpdate(_)
            | Dispatch::GuildMemberUpdate(_)
            | Dispatch::GuildCreate(_)
    ) {
        app.outbox.retry_forbidden();
    }
    match dispatch {
        Dispatch::MessageCreate(event) => inbound::on_message(app, event.message),
        Dispatch::MessageUpdate(event) => inbound::on_edit(app, event),
        Dispatch::MessageDelete(event) => {
            inbound::on_delete(app, event.channel_id, event.guild_id, vec![event.message_id]);
        }
        Dispatch::MessageDeleteBulk(event) => inbound::on_delete(app, event.channel_id, event.guild_id, event.ids),
        Dispatch::Ready(event) => {
            let guilds = event.ready.guilds.iter().map(|guild| guild.id);
            commands::on_ready(app, shard, event.ready.application.id, guilds);
        }
        Dispatch::GuildCreate(event) => {
            inbound::on_guild_available(app, event.guild.id);
            commands::on_guild_joined(app, event.guild.id);
        }
        Dispatch::ChannelUpdate(event) => {
            inbound::on_channel_rights_changed(app, event.channel.id, event.channel.guild_id)
        }
        Dispatch::GuildRoleUpdate(event) => inbound::on_guild_rights_changed(app, event.role.guild_id),
        Dispatch::GuildMemberUpdate(event) => inbound::on_guild_rights_changed(app, event.guild_id),
        Dispatch::GuildDelete(event) if !event.guild.unavailable => commands::on_guild_left(app, event.guild.id),
        Dispatch::InteractionCreate(event) => sharing::route_interaction(app, event.interaction),
        _ => {}
    }
}
