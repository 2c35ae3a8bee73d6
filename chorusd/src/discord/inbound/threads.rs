//! Threads below the channels of agents: an agent hears its channel only, and whoever writes in a thread of it is told so, once in each.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serenity::model::channel::{ChannelType, Message};
use serenity::model::id::ChannelId;

use super::heard::is_said;
use crate::discord::bridge::Bridge;
use crate::discord::posts::{Body, Post};

/// Channels that are remembered as looked at; then it begins anew.
const MOST: usize = 10_000;

/// Channels of no agent that were looked at.
#[derive(Debug, Default)]
pub struct Looked(Mutex<HashSet<ChannelId>>);

impl Looked {
    /// Whether this is the first time.
    fn first(&self, channel: ChannelId) -> bool {
        let mut looked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.len() >= MOST {
            looked.clear();
        }
        looked.insert(channel)
    }

    fn again(&self, channel: ChannelId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&channel);
    }
}

/// Somebody wrote where no agent is. Channels of a server are told of when it is; threads are not among them.
pub fn message(bridge: &Arc<Bridge>, message: &Message) {
    let served = message.guild_id.is_some_and(|guild| bridge.rooms.serves(guild));
    let channel = message.channel_id;
    if served && is_said(message) && !bridge.rooms.knows(channel) && bridge.inbound.looked.first(channel) {
        bridge.tasks.spawn(look(bridge.clone(), channel));
    }
}

/// Tells people in a thread below an agent's channel where the agent hears them.
async fn look(bridge: Arc<Bridge>, thread: ChannelId) {
    let found = tokio::select! {
        found = bridge.rest.channel(thread) => found,
        () = bridge.stop.cancelled() => return,
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(channel = %thread, %error, "a channel without an agent cannot be looked at");
            return bridge.inbound.looked.again(thread);
        }
    };
    let below = matches!(found.kind, ChannelType::PublicThread | ChannelType::PrivateThread | ChannelType::NewsThread);
    let Some(parent) = found.parent_id.filter(|_| below) else { return };
    let Some(agent) = bridge.rooms.agent_of(parent) else { return };
    let about = format!("thread:{thread}");
    let text = format!("**{}** does not hear threads. Write in <#{parent}>.", agent.facts.name);
    let told = async {
        if bridge.posts.about(&about).await?.contains(&about) {
            return Ok(());
        }
        let post = Post { channel: thread, about: Some(about.clone()), body: Body::text(text), reply_to: None };
        bridge.posts.put_watched(post).await.map(drop)
    };
    if let Err(failure) = told.await {
        tracing::warn!(channel = %thread, %failure, "a thread is not told that nobody hears it");
        bridge.inbound.looked.again(thread);
    }
}
