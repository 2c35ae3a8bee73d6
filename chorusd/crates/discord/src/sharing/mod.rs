//! Several nodes share one bot: one of them has the gateway, the owner of an agent answers its messages, and whoever has posts
//! for a channel sends them, one node at a time. See docs/design/discord.md.

mod gateway_lease;
mod handover;
mod work;

use std::sync::Arc;

use chorus_engine::ops::discord::SharedDiscord;

use crate::announcements;
use crate::app::DiscordApp;
pub(crate) use handover::route_interaction;

/// Does this node's part until the daemon stops.
pub(crate) async fn run(app: &Arc<DiscordApp>, shared: &Arc<dyn SharedDiscord>) {
    tokio::join!(gateway_lease::run(app, shared), work::run(app, &**shared), announcements::run(app));
}
