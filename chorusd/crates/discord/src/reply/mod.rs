//! Replies in channels: a message that is edited while the turn runs, and the final messages that take its place.

mod final_message;
mod live_message;
mod progress;
mod turn_listener;
mod turn_owners;

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::send::SendResult;
use chorus_runtime::SpawnTracked as _;
use serenity::all::{ChannelId, MessageId};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::live_message::ReplyTarget;
use super::app::DiscordApp;
use super::outbox::{MessageBody, Post};
pub(crate) use final_message::RESTARTED_MESSAGE;
pub(crate) use turn_listener::{ReplyListener, TurnStage};
pub(crate) use turn_owners::{TurnOwner, TurnOwners, stop_running_turn, stop_turn};

/// The reply to one message. If it is dropped before `finish`, the live message stays as it is; the turn is resumed
/// after a restart.
#[derive(Debug)]
pub(crate) struct LiveReply {
    app: Arc<DiscordApp>,
    target: ReplyTarget,
    listener: Arc<ReplyListener>,
    live_task: JoinHandle<()>,
    live_stop: DropGuard,
}

impl LiveReply {
    /// Starts to reply to `message`, which requested a turn.
    #[must_use]
    pub(crate) fn start(app: &Arc<DiscordApp>, channel: ChannelId, message: MessageId, asked: TurnOwner) -> Self {
        let target = ReplyTarget { channel, message, about: format!("answer:{message}") };
        let listener = Arc::new(ReplyListener::new(app.running_turns.clone(), asked));
        let end = CancellationToken::new();
        let live = live_message::show_progress(app.clone(), target.clone(), listener.clone(), end.clone());
        let live_task = app.tasks.spawn_tracked(live);
        Self { app: app.clone(), target, listener, live_task, live_stop: end.drop_guard() }
    }

    /// Returns the listener for the next time that the message is sent.
    #[must_use]
    pub(crate) fn listener_for_send(&self) -> Arc<ReplyListener> {
        self.listener.reset_stage();
        self.listener.clone()
    }

    /// Shows that a turn was interrupted and the message waits. Returns whether the turn had started.
    pub(crate) fn pause(&self) -> bool {
        self.listener.pause()
    }

    /// Ends the reply of a message that was deleted, and says so in the live message if there is one.
    pub(crate) async fn withdraw(self) -> Result<()> {
        drop(self.live_stop);
        let _ = self.live_task.await;
        let posts = &self.app.outbox;
        posts.update(&self.target.about, MessageBody::from_text("-# The message was deleted.")).await?;
        posts.forget_key(&self.target.about).await
    }

    /// Replaces the live message by the result of the turn and settles the claim of the message, in one commit.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`: nothing is posted, and the claim stays open.
    pub(crate) async fn finish(self, result: Result<SendResult>) -> Result<()> {
        drop(self.live_stop);
        // Wait for it, so that no edit arrives after the final message. Each of its requests has a deadline.
        let _ = self.live_task.await;
        let heard = self.listener.progress();
        let redactor = &self.app.ops.redactor;
        let bodies = final_message::final_bodies(&result, &heard.text, self.listener.stopped_by().as_deref(), redactor);
        let ReplyTarget { channel, message, about } = self.target;
        let mut rows = Vec::with_capacity(bodies.len());
        for (at, body) in bodies.into_iter().enumerate() {
            let first = at == 0;
            let about = first.then(|| about.clone());
            rows.push(Post { channel, about, body, reply_to: first.then_some(message) }.into_row()?);
        }
        self.app.tables.claims.finish(message.get(), rows).await?;
        self.app.outbox.wake_sender(channel);
        Ok(())
    }
}
