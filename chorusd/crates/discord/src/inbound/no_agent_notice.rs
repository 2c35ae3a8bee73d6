//! Answers to people who talk to Chorus where no agent reads: in a direct message, or by a mention in a channel that has
//! no agent. Also to people who may not write direct messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_runtime::SpawnTracked as _;
use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, GuildId};

use super::request::is_from_person;
use crate::app::DiscordApp;
use crate::direct;
use crate::outbox::{MessageBody, Post};

/// A channel gets at most one answer in this time.
const MIN_INTERVAL: Duration = Duration::from_secs(60);
/// Channels that are remembered; if there are more, all are forgotten.
const MAX_CHANNELS: usize = 10_000;
/// Channels of agents that an answer names.
const MAX_NAMED: usize = 5;

const DIRECT_MESSAGE_TEXT: &str = "Chorus does not answer direct messages. Write in the channel of an agent in your server; \
                                   `/help` there shows what you can do.";

/// When channels without an agent were last answered.
#[derive(Debug, Default)]
pub(super) struct NoAgentAnswers(Mutex<HashMap<ChannelId, Ticks>>);

impl NoAgentAnswers {
    /// Returns whether the channel may be answered now, and records that it is.
    fn take_turn(&self, channel: ChannelId, now: Ticks) -> bool {
        let mut answered = self.0.lock();
        if answered.get(&channel).is_some_and(|last| now.since(*last) < MIN_INTERVAL) {
            return false;
        }
        if answered.len() >= MAX_CHANNELS {
            answered.clear();
        }
        answered.insert(channel, now);
        true
    }
}

/// Handles a message in a channel without an agent. A direct message is recorded as unanswered before that is said, so that
/// no agent answers it later.
pub(super) fn on_message(app: &Arc<DiscordApp>, message: &Message) {
    let text = match message.guild_id {
        None => Some(DIRECT_MESSAGE_TEXT.to_owned()),
        Some(guild) if app.channels.serves(guild) && mentions_chorus(app, message) => Some(no_agent_text(app, guild)),
        Some(_) => None,
    };
    let post = text.and_then(|text| due_answer(app, message, text));
    let (channel, id) = (message.channel_id, message.id);
    let task_app = app.clone();
    if direct::is_recorded(app, channel) {
        app.tasks.spawn_tracked(async move {
            direct::mark_unserved(&task_app, channel, id).await;
            if let Some(post) = post {
                send(&task_app, post).await;
            }
        });
    } else if let Some(post) = post {
        app.tasks.spawn_tracked(async move { send(&task_app, post).await });
    }
}

/// Answers a direct message of a person who may not write to the agent.
pub(super) fn on_refused(app: &Arc<DiscordApp>, message: &Message) {
    if let Some(post) = due_answer(app, message, direct::refusal_text(app).to_owned()) {
        let task_app = app.clone();
        app.tasks.spawn_tracked(async move { send(&task_app, post).await });
    }
}

/// Returns the answer to a message, unless the channel was answered a short while ago.
fn due_answer(app: &DiscordApp, message: &Message, text: String) -> Option<Post> {
    let channel = message.channel_id;
    let is_due = is_from_person(message) && app.inbound.no_agent_answers.take_turn(channel, app.ops.clock.ticks());
    is_due.then(|| Post { channel, about: None, body: MessageBody::from_text(text), reply_to: Some(message.id) })
}

async fn send(app: &DiscordApp, post: Post) {
    let channel = post.channel;
    if let Err(failure) = app.outbox.enqueue_watched(post).await {
        tracing::warn!(%channel, %failure, "cannot answer where no agent reads");
    }
}

/// Returns whether a message mentions Chorus itself, not everybody or a role.
fn mentions_chorus(app: &DiscordApp, message: &Message) -> bool {
    let own = app.commands.application_id();
    message.mentions.iter().any(|user| user.bot && user.id.get() == own)
}

/// Says that no agent reads the channel, and where agents do.
fn no_agent_text(app: &DiscordApp, guild: GuildId) -> String {
    let agents = app.ops.agents.all();
    let channels = agents.iter().filter_map(|agent| app.channels.channel_of(agent.settings.id));
    let here: Vec<String> = channels
        .filter(|(_, of)| *of == Some(guild))
        .take(MAX_NAMED)
        .map(|(channel, _)| format!("<#{channel}>"))
        .collect();
    match here.as_slice() {
        [] => {
            "No agent reads this channel, and this server has none yet. Somebody with Manage Channels can create one: \
               `/agent init`."
                .to_owned()
        }
        [only] => format!("No agent reads this channel. Write in {only} instead."),
        several => {
            format!("No agent reads this channel. Write in the channel of an agent instead: {}.", several.join(", "))
        }
    }
}
