//! The outbox: posts are stored first, then sent, in each channel in order, until they are delivered.

mod outgoing_message;
mod retry_wait;
mod send_try;
mod sender;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::{DiscordTables, OutboxTable, SharedDiscord};
use chorus_runtime::SpawnTracked as _;
use serenity::all::{ChannelId, MessageId, UserId};
use tokio::sync::{Notify, OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::outgoing_message::StoredPost;
use super::rest::{RestClient, RestError};
pub(crate) use outgoing_message::{Button, File, MessageBody, Post, Style};

/// Discord's codes for a channel that the application may not see or not write in.
const NO_ACCESS: u64 = 50_001;
const NO_PERMISSION: u64 = 50_013;

/// Is notified of channels that cannot be posted in.
pub(crate) trait LostChannelListener: Debug + Send + Sync {
    /// The channel was deleted; its posts are dropped.
    fn channel_deleted(&self, channel: ChannelId);
    /// The application may not post in the channel; its posts wait for a day.
    fn channel_forbidden(&self, channel: ChannelId);
}

/// The outbox of all channels. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Arc<dyn OutboxTable>,
    /// The leases of channels, if several nodes send.
    shared: Option<Arc<dyn SharedDiscord>>,
    ops: Arc<Ops>,
    rest: Arc<RestClient>,
    /// Ends the waits for retries.
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Channels with a running sender task; `true` if a post was added since it last looked.
    active_senders: Mutex<HashMap<u64, bool>>,
    /// Receivers of the ids of posted messages, by nonce.
    watchers: Mutex<HashMap<String, oneshot::Sender<MessageId>>>,
    /// Notified when Chorus's permissions may have changed.
    rights_changed: Notify,
    lost_channels: OnceLock<Arc<dyn LostChannelListener>>,
    own_user: OnceCell<UserId>,
}

impl Outbox {
    #[must_use]
    pub(crate) fn new(
        tables: &DiscordTables,
        ops: Arc<Ops>,
        rest: Arc<RestClient>,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        Self(Arc::new(Inner {
            table: tables.outbox.clone(),
            shared: tables.shared.clone(),
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

    /// Sets the listener for lost channels; only the first one counts.
    pub(crate) fn set_lost_channel_listener(&self, lost: Arc<dyn LostChannelListener>) {
        let _ = self.0.lost_channels.set(lost);
    }

    /// Resumes sending the posts that the previous daemon did not deliver.
    pub(crate) async fn resume(&self) {
        match self.0.table.list_channels().await {
            Ok(channels) => channels.into_iter().for_each(|channel| self.wake_sender(ChannelId::new(channel.max(1)))),
            Err(failure) => tracing::error!(%failure, "cannot load pending posts"),
        }
    }

    /// Stores a post and sends it in the background. The receiver gets the id of the message, or is closed if the post
    /// is given up. A post with the key of an earlier one edits that one's message.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`: nothing is posted.
    pub(crate) async fn enqueue_watched(&self, post: Post) -> Result<oneshot::Receiver<MessageId>> {
        let (tell, told) = oneshot::channel();
        let channel = post.channel;
        let row = post.into_row()?;
        let nonce = row.nonce.clone();
        self.0.watchers.lock().insert(nonce.clone(), tell);
        if let Err(failure) = self.0.table.enqueue(vec![row]).await {
            self.0.watchers.lock().remove(&nonce);
            return Err(failure);
        }
        self.wake_sender(channel);
        Ok(told)
    }

    /// Edits the message, or the waiting post, whose key is `about`. Returns false if there is none. A message that was
    /// deleted in Discord is not posted again.
    pub(crate) async fn update(&self, about: &str, body: MessageBody) -> Result<bool> {
        let kept = StoredPost { body, reply_to: None, anew: false }.to_json()?;
        let channel = self.0.table.edit(about.to_owned(), kept, outgoing_message::nonce()).await?;
        if let Some(channel) = channel {
            self.wake_sender(ChannelId::new(channel.max(1)));
        }
        Ok(channel.is_some())
    }

    /// Forgets the key `about`, which nothing will edit any more; what waits is still posted.
    pub(crate) async fn forget_key(&self, about: &str) -> Result<()> {
        self.0.table.finalize(about.to_owned()).await
    }

    /// Lists the keys of posts that begin with `prefix`, the oldest post first.
    pub(crate) async fn keys_with_prefix(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.table.list_keys(prefix.to_owned()).await
    }

    /// Starts to send posts that another commit added to the outbox of a channel.
    pub(crate) fn wake_sender(&self, channel: ChannelId) {
        let mut sending = self.0.active_senders.lock();
        if let Some(more) = sending.get_mut(&channel.get()) {
            *more = true;
        } else {
            sending.insert(channel.get(), false);
            self.0.tasks.spawn_tracked(sender::run(self.clone(), channel, false));
        }
    }

    /// Starts to send posts of a channel that any node may send, unless another one does or they are being sent.
    pub(crate) fn offer_sender(&self, channel: ChannelId) {
        let mut sending = self.0.active_senders.lock();
        if let Entry::Vacant(vacant) = sending.entry(channel.get()) {
            vacant.insert(false);
            self.0.tasks.spawn_tracked(sender::run(self.clone(), channel, true));
        }
    }

    /// Retries posts that waited for permissions, because Chorus's permissions may have changed.
    pub(crate) fn retry_forbidden(&self) {
        self.0.rights_changed.notify_waiters();
    }

    /// Returns whether posts were added since the sender of a channel looked; if not, the sender is removed.
    fn has_more(&self, channel: ChannelId) -> bool {
        let mut sending = self.0.active_senders.lock();
        let more = sending.get_mut(&channel.get()).is_some_and(std::mem::take);
        if !more {
            sending.remove(&channel.get());
        }
        more
    }

    /// Sends the id of a posted message to its watcher, or drops the watcher if the post is given up.
    fn notify_watcher(&self, nonce: &str, message: Option<MessageId>) {
        let mut watching = self.0.watchers.lock();
        if let (Some(tell), Some(message)) = (watching.remove(nonce), message) {
            let _ = tell.send(message);
        }
        watching.retain(|_, tell| !tell.is_closed());
    }

    /// Returns the id of Chorus's own user.
    async fn own_user(&self) -> Result<UserId, RestError> {
        self.0.own_user.get_or_try_init(|| self.0.rest.own_user_id()).await.copied()
    }

    /// Notifies the listener if `error` means that the channel is lost.
    fn report_lost_channel(&self, channel: ChannelId, error: &RestError) {
        match (self.0.lost_channels.get(), error) {
            (Some(lost), RestError::Gone { .. }) => lost.channel_deleted(channel),
            (Some(lost), RestError::Refused { code: NO_ACCESS | NO_PERMISSION, .. }) => lost.channel_forbidden(channel),
            _ => {}
        }
    }
}
