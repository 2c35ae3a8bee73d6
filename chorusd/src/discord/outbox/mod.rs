//! What is posted in channels: kept first, then sent, in each channel in its order, until it is there.

mod post;
mod send_try;
mod sender;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use post::{Button, File, MessageBody, Post, Style};
use serenity::all::{ChannelId, MessageId, UserId};
use tokio::sync::{Notify, OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::post::StoredPost;
use super::rest::{RestClient, RestError};
use crate::error::Result;
use crate::ops::Ops;
use crate::ops::discord::outbox;

/// A channel may not be seen, or not be written in.
const NO_ACCESS: u64 = 50_001;
const NO_PERMISSION: u64 = 50_013;

/// Hears of channels that nothing can be posted in.
pub trait LostChannelListener: Debug + Send + Sync {
    /// A channel was deleted; what was to be posted in it is dropped.
    fn channel_deleted(&self, channel: ChannelId);
    /// The application may not post in a channel; what is to be posted waits for a day.
    fn channel_forbidden(&self, channel: ChannelId);
}

/// All that is on its way into channels. Cheap to share.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ops: Arc<Ops>,
    rest: Arc<RestClient>,
    /// What waits is not waited for any more.
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Channels that a task sends in; whether something came since it looked.
    active_senders: Mutex<HashMap<u64, bool>>,
    /// Who wants to know which message a post became, by its nonce.
    watchers: Mutex<HashMap<String, oneshot::Sender<MessageId>>>,
    /// Chorus may have other rights somewhere.
    rights_changed: Notify,
    lost_channels: OnceLock<Arc<dyn LostChannelListener>>,
    own_user: OnceCell<UserId>,
}

impl Outbox {
    #[must_use]
    pub fn new(ops: Arc<Ops>, rest: Arc<RestClient>, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self(Arc::new(Inner {
            ops,
            rest,
            stop,
            tasks,
            active_senders: Mutex::default(),
            watchers: Mutex::default(),
            rights_changed: Notify::new(),
            lost_channels: OnceLock::new(),
            own_user: OnceCell::new(),
        }))
    }

    /// Has `lost` hear of channels that are lost; the first one is told.
    pub fn set_lost_channel_listener(&self, lost: Arc<dyn LostChannelListener>) {
        let _ = self.0.lost_channels.set(lost);
    }

    /// Goes on with what was not there yet when the daemon stopped.
    pub async fn resume(&self) {
        match outbox::channels_with_posts(&self.0.ops).await {
            Ok(channels) => channels.into_iter().for_each(|channel| self.wake_sender(ChannelId::new(channel.max(1)))),
            Err(failure) => tracing::error!(%failure, "what is to be posted cannot be read"),
        }
    }

    /// Keeps a post, which is sent without anybody waiting for it; what comes back tells which message it became, or nothing where it never
    /// does. One that is about the same as an earlier one changes that.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`: nothing is posted.
    pub async fn enqueue_watched(&self, post: Post) -> Result<oneshot::Receiver<MessageId>> {
        let (tell, told) = oneshot::channel();
        let channel = post.channel;
        let row = post.into_row()?;
        let nonce = row.nonce.clone();
        self.lock_watchers().insert(nonce.clone(), tell);
        if let Err(failure) = outbox::enqueue(&self.0.ops, vec![row]).await {
            self.lock_watchers().remove(&nonce);
            return Err(failure);
        }
        self.wake_sender(channel);
        Ok(told)
    }

    /// Has the message that is about `about` look like `body`, or the post that waits to become it; false: there is none. One that was deleted
    /// in Discord stays so.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn update(&self, about: &str, body: MessageBody) -> Result<bool> {
        let kept = StoredPost { body, reply_to: None, anew: false }.to_json()?;
        let channel = outbox::edit_post(&self.0.ops, about.to_owned(), kept, post::nonce()).await?;
        if let Some(channel) = channel {
            self.wake_sender(ChannelId::new(channel.max(1)));
        }
        Ok(channel.is_some())
    }

    /// Nothing will change what is about `about` any more; what waits is still posted.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn forget_key(&self, about: &str) -> Result<()> {
        outbox::finalize_post(&self.0.ops, about.to_owned()).await
    }

    /// What there are posts about, of those that begin with `prefix`, the oldest first.
    ///
    /// # Errors
    /// As of [`Posts::put_watched`].
    pub async fn keys_with_prefix(&self, prefix: &str) -> Result<Vec<String>> {
        outbox::subjects_with_prefix(&self.0.ops, prefix.to_owned()).await
    }

    /// Has sent what was put into the outbox of a channel by another commit.
    pub fn wake_sender(&self, channel: ChannelId) {
        let mut sending = self.0.active_senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(more) = sending.get_mut(&channel.get()) {
            *more = true;
        } else {
            sending.insert(channel.get(), false);
            self.0.tasks.spawn(sender::run(self.clone(), channel));
        }
    }

    /// Chorus may have other rights: what waited for them is tried now.
    pub fn retry_forbidden(&self) {
        self.0.rights_changed.notify_waiters();
    }

    /// Whether something came since the sender of a channel looked; where not, it ends.
    fn has_more(&self, channel: ChannelId) -> bool {
        let mut sending = self.0.active_senders.lock().unwrap_or_else(PoisonError::into_inner);
        let more = sending.get_mut(&channel.get()).is_some_and(std::mem::take);
        if !more {
            sending.remove(&channel.get());
        }
        more
    }

    /// A post is there, or never will be.
    fn notify_watcher(&self, nonce: &str, message: Option<MessageId>) {
        let mut watching = self.lock_watchers();
        if let (Some(tell), Some(message)) = (watching.remove(nonce), message) {
            let _ = tell.send(message);
        }
        watching.retain(|_, tell| !tell.is_closed());
    }

    fn lock_watchers(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<MessageId>>> {
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who we are.
    async fn own_user(&self) -> Result<UserId, RestError> {
        self.0.own_user.get_or_try_init(|| self.0.rest.own_user_id()).await.copied()
    }

    /// Says that a channel is lost, where it is and somebody wants to hear it.
    fn report_lost_channel(&self, channel: ChannelId, error: &RestError) {
        match (self.0.lost_channels.get(), error) {
            (Some(lost), RestError::Gone { .. }) => lost.channel_deleted(channel),
            (Some(lost), RestError::Refused { code: NO_ACCESS | NO_PERMISSION, .. }) => lost.channel_forbidden(channel),
            _ => {}
        }
    }
}
