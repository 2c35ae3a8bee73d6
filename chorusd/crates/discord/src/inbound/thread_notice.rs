//! Threads below the channels of agents. Agents do not read threads; a post in each thread says so once to those who
//! write there.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_runtime::SpawnTracked as _;
use serenity::model::channel::{ChannelType, Message};
use serenity::model::id::ChannelId;

use super::request::is_from_person;
use crate::app::DiscordApp;
use crate::outbox::{MessageBody, Post};

/// Channels that are remembered as checked; if there are more, the set is cleared.
const MAX_CHECKED_THREADS: usize = 10_000;

/// Channels without an agent that were checked.
#[derive(Debug, Default)]
pub(super) struct CheckedThreads(Mutex<HashSet<ChannelId>>);

impl CheckedThreads {
    /// Returns whether the channel was not in the set.
    fn insert(&self, channel: ChannelId) -> bool {
        let mut looked = self.0.lock();
        if looked.len() >= MAX_CHECKED_THREADS {
            looked.clear();
        }
        looked.insert(channel)
    }

    fn remove(&self, channel: ChannelId) {
        self.0.lock().remove(&channel);
    }
}

/// Handles a message in a channel without an agent. The channels of a guild are known; threads are not among them, so
/// an unknown channel may be a thread.
pub(super) fn on_message(app: &Arc<DiscordApp>, message: &Message) {
    let served = message.guild_id.is_some_and(|guild| app.channels.serves(guild));
    let channel = message.channel_id;
    if served
        && is_from_person(message)
        && !app.channels.is_known(channel)
        && app.inbound.checked_threads.insert(channel)
    {
        app.tasks.spawn_tracked(post_thread_notice(app.clone(), channel));
    }
}

/// Posts in a thread below an agent's channel where the agent reads messages.
async fn post_thread_notice(app: Arc<DiscordApp>, thread: ChannelId) {
    let found = tokio::select! {
        found = app.rest.channel(thread) => found,
        () = app.stop.cancelled() => return,
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(channel = %thread, %error, "cannot check a channel without an agent");
            return app.inbound.checked_threads.remove(thread);
        }
    };
    let below = matches!(found.kind, ChannelType::PublicThread | ChannelType::PrivateThread | ChannelType::NewsThread);
    let Some(parent) = found.parent_id.filter(|_| below) else { return };
    let Some(agent) = app.channels.agent_of(parent) else { return };
    let about = format!("thread:{thread}");
    let text = format!("**{}** does not read threads. Write in <#{parent}> instead.", agent.settings.name);
    let told = async {
        if app.outbox.keys_with_prefix(&about).await?.contains(&about) {
            return Ok(());
        }
        let post =
            Post { channel: thread, about: Some(about.clone()), body: MessageBody::from_text(text), reply_to: None };
        app.outbox.enqueue_watched(post).await.map(drop)
    };
    if let Err(failure) = told.await {
        tracing::warn!(channel = %thread, %failure, "cannot post the notice in a thread");
        app.inbound.checked_threads.remove(thread);
    }
}
