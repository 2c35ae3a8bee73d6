//! What is posted in channels: kept first, then sent, in each channel in its order, until it is there.

mod post;
mod send;
mod sender;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use post::{Body, Button, File, Post, Style};
use serenity::all::{ChannelId, MessageId, UserId};
use tokio::sync::{Notify, OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::post::Kept;
use super::rest::{Rest, RestError};
use crate::failure::Result;
use crate::ops::Ops;
use crate::ops::discord::outbox;

/// A channel may not be seen, or not be written in.
const NO_ACCESS: u64 = 50_001;
const NO_PERMISSION: u64 = 50_013;

/// Hears of channels that nothing can be posted in.
pub trait Lost: Debug + Send + Sync {
    /// A channel was deleted; what was to be posted in it is dropped.
    fn gone(&self, channel: ChannelId);
    /// The application may not post in a channel; what is to be posted waits for a day.
    fn forbidden(&self, channel: ChannelId);
}

/// All that is on its way into channels. Cheap to share.
#[derive(Debug, Clone)]
pub struct Posts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ops: Arc<Ops>,
    rest: Arc<Rest>,
    /// What waits is not waited for any more.
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Channels that a task sends in; whether something came since it looked.
    sending: Mutex<HashMap<u64, bool>>,
    /// Who wants to know which message a post became, by its nonce.
    waiting: Mutex<HashMap<String, oneshot::Sender<MessageId>>>,
    /// Chorus may have other rights somewhere.
    rights: Notify,
    lost: OnceLock<Arc<dyn Lost>>,
    us: OnceCell<UserId>,
}

impl Posts {
    #[must_use]
    pub fn new(ops: Arc<Ops>, rest: Arc<Rest>, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self(Arc::new(Inner {
            ops,
            rest,
            stop,
            tasks,
            sending: Mutex::default(),
            waiting: Mutex::default(),
            rights: Notify::new(),
            lost: OnceLock::new(),
            us: OnceCell::new(),
        }))
    }

    /// Has `lost` hear of channels that are lost; the first one is told.
    pub fn tell_lost(&self, lost: Arc<dyn Lost>) {
        let _ = self.0.lost.set(lost);
    }

    /// Goes on with what was not there yet when the daemon stopped.
    pub async fn begin(&self) {
        match outbox::channels(&self.0.ops).await {
            Ok(channels) => channels.into_iter().for_each(|channel| self.wake(ChannelId::new(channel.max(1)))),
            Err(failure) => tracing::error!(%failure, "what is to be posted cannot be read"),
        }
    }

    /// Keeps a post, which is sent without anybody waiting for it; what comes back tells which message it became, or nothing where it never
    /// does. One that is about the same as an earlier one changes that.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`: nothing is posted.
    pub async fn put_watched(&self, post: Post) -> Result<oneshot::Receiver<MessageId>> {
        let (tell, told) = oneshot::channel();
        let channel = post.channel;
        let row = post.row()?;
        let nonce = row.nonce.clone();
        self.watching().insert(nonce.clone(), tell);
        if let Err(failure) = outbox::put(&self.0.ops, vec![row]).await {
            self.watching().remove(&nonce);
            return Err(failure);
        }
        self.wake(channel);
        Ok(told)
    }

    /// Has the message that is about `about` look like `body`, or the post that waits to become it; false: there is none. One that was deleted
    /// in Discord stays so.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn change(&self, about: &str, body: Body) -> Result<bool> {
        let kept = Kept { body, reply_to: None, anew: false }.json()?;
        let channel = outbox::change(&self.0.ops, about.to_owned(), kept, post::nonce()).await?;
        if let Some(channel) = channel {
            self.wake(ChannelId::new(channel.max(1)));
        }
        Ok(channel.is_some())
    }

    /// Nothing will change what is about `about` any more; what waits is still posted.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn forget(&self, about: &str) -> Result<()> {
        outbox::forget(&self.0.ops, about.to_owned()).await
    }

    /// What there are posts about, of those that begin with `prefix`, the oldest first.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn about(&self, prefix: &str) -> Result<Vec<String>> {
        outbox::about(&self.0.ops, prefix.to_owned()).await
    }

    /// Has sent what was put into the outbox of a channel by another commit.
    pub fn wake(&self, channel: ChannelId) {
        let mut sending = self.0.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(more) = sending.get_mut(&channel.get()) {
            *more = true;
        } else {
            sending.insert(channel.get(), false);
            self.0.tasks.spawn(sender::run(self.clone(), channel));
        }
    }

    /// Chorus may have other rights: what waited for them is tried now.
    pub fn rights(&self) {
        self.0.rights.notify_waiters();
    }

    /// Whether something came since the sender of a channel looked; where not, it ends.
    fn more(&self, channel: ChannelId) -> bool {
        let mut sending = self.0.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let more = sending.get_mut(&channel.get()).is_some_and(std::mem::take);
        if !more {
            sending.remove(&channel.get());
        }
        more
    }

    /// A post is there, or never will be.
    fn tell(&self, nonce: &str, message: Option<MessageId>) {
        let mut watching = self.watching();
        if let (Some(tell), Some(message)) = (watching.remove(nonce), message) {
            let _ = tell.send(message);
        }
        watching.retain(|_, tell| !tell.is_closed());
    }

    fn watching(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<MessageId>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who we are.
    async fn us(&self) -> Result<UserId, RestError> {
        self.0.us.get_or_try_init(|| self.0.rest.us()).await.copied()
    }

    /// Says that a channel is lost, where it is and somebody wants to hear it.
    fn lose_if_lost(&self, channel: ChannelId, error: &RestError) {
        match (self.0.lost.get(), error) {
            (Some(lost), RestError::Gone { .. }) => lost.gone(channel),
            (Some(lost), RestError::Refused { code: NO_ACCESS | NO_PERMISSION, .. }) => lost.forbidden(channel),
            _ => {}
        }
    }
}
