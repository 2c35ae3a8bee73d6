//! Answers in channels: one message that grows with what the model says, and what is left of it in the end.

mod ear;
mod heard;
mod last;
mod live;
mod running;

use std::sync::Arc;

use chorus_proto::methods::send::SendResult;
pub use running::{Asked, Running, stop};
use serenity::all::{ChannelId, MessageId};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::ear::Ear;
use self::live::Place;
use super::bridge::Bridge;
use super::posts::{Body, Post};
use crate::agent::voice;
use crate::failure::Result;
use crate::ops::discord::settle;

/// The answer to one message. Dropped before it is finished, it leaves what is shown as it is; after a restart it is taken up again.
#[derive(Debug)]
pub struct Answer {
    bridge: Arc<Bridge>,
    place: Place,
    ear: Arc<Ear>,
    live: JoinHandle<()>,
    end: DropGuard,
}

impl Answer {
    /// Begins to answer `message`, which asked for a turn.
    #[must_use]
    pub fn begin(bridge: &Arc<Bridge>, channel: ChannelId, message: MessageId, asked: Asked) -> Self {
        let place = Place { channel, message, about: format!("answer:{message}") };
        let ear = Arc::new(Ear::new(bridge.running.clone(), asked));
        let end = CancellationToken::new();
        let live = live::show(bridge.clone(), place.clone(), ear.clone(), end.clone());
        let live = bridge.tasks.spawn(live);
        Self { bridge: bridge.clone(), place, ear, live, end: end.drop_guard() }
    }

    /// Who hears the turn.
    #[must_use]
    pub fn ear(&self) -> Arc<dyn voice::Ear> {
        self.ear.clone()
    }

    /// There is nothing to answer any more: what was shown says so.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`.
    pub async fn withdraw(self) -> Result<()> {
        drop(self.end);
        let _ = self.live.await;
        let posts = &self.bridge.posts;
        posts.change(&self.place.about, Body::text("-# The message was taken back.")).await?;
        posts.forget(&self.place.about).await
    }

    /// Posts what came of the turn, in the place of what was shown of it, and is done with the message, in one commit.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`: nothing is posted, and the message is not done with.
    pub async fn finish(self, result: Result<SendResult>) -> Result<()> {
        drop(self.end);
        // So that nothing it says comes after the end. A request of it has a deadline of its own.
        let _ = self.live.await;
        let heard = self.ear.so_far();
        let redactor = self.bridge.ops.models.redactor();
        let bodies = last::bodies(&result, &heard.text, self.ear.stopped_by().as_deref(), redactor);
        let Place { channel, message, about } = self.place;
        let mut rows = Vec::with_capacity(bodies.len());
        for (at, body) in bodies.into_iter().enumerate() {
            let first = at == 0;
            let about = first.then(|| about.clone());
            rows.push(Post { channel, about, body, reply_to: first.then_some(message) }.row()?);
        }
        settle(&self.bridge.ops, message.get(), rows).await?;
        self.bridge.posts.wake(channel);
        Ok(())
    }
}
