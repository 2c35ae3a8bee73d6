//! Channels of guilds.

use super::{Request, Route};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serenity::builder::CreateChannel;
use serenity::model::channel::ChannelType;
use serenity::model::id::{ChannelId, GuildId, MessageId};

use super::{BackgroundClient, RestClient, RestError};

/// Archived threads of a channel that are listed; Discord's limit.
const MAX_ARCHIVED_THREADS: u64 = 100;

/// The fields of a channel that are used.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Channel {
    pub id: ChannelId,
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// `None` for direct messages.
    pub guild_id: Option<GuildId>,
    /// The category of the channel.
    pub parent_id: Option<ChannelId>,
    pub name: Option<String>,
    pub last_message_id: Option<MessageId>,
    /// Of a thread.
    pub thread_metadata: Option<ThreadState>,
}

/// The state of a thread.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct ThreadState {
    pub archived: bool,
}

impl RestClient {
    /// Returns a channel.
    ///
    /// # Errors
    /// `Gone` if it does not exist, `Refused` if it may not be seen.
    pub(crate) async fn channel(&self, channel_id: ChannelId) -> Result<Channel, RestError> {
        self.call(Request::get(Route::Channel { channel_id })).await
    }

    /// Returns all channels of a guild.
    pub(crate) async fn guild_channels(&self, guild_id: GuildId) -> Result<Vec<Channel>, RestError> {
        self.call(Request::get(Route::GuildChannels { guild_id })).await
    }

    /// Creates a channel or a category.
    pub(crate) async fn create_channel(
        &self,
        guild_id: GuildId,
        channel: &CreateChannel<'_>,
    ) -> Result<Channel, RestError> {
        self.call(Request::json(Method::POST, Route::GuildChannels { guild_id }, channel)?).await
    }

    /// Creates a thread of this kind below a channel, without a message that it starts from.
    pub(crate) async fn create_thread(
        &self,
        channel_id: ChannelId,
        kind: ChannelType,
        name: &str,
    ) -> Result<Channel, RestError> {
        let body = json!({"name": name, "type": u8::from(kind)});
        self.call(Request::json(Method::POST, Route::ChannelThreads { channel_id }, &body)?).await
    }
}

/// Requests that nobody waits for, or that may take their time.
impl BackgroundClient<'_> {
    /// Like [`RestClient::channel`], but waits for any rate limit.
    pub(crate) async fn channel(&self, channel_id: ChannelId) -> Result<Channel, RestError> {
        self.call(Request::get(Route::Channel { channel_id })).await
    }

    /// Returns the public threads below a channel that were archived last.
    pub(crate) async fn archived_threads(&self, channel_id: ChannelId) -> Result<Vec<Channel>, RestError> {
        #[derive(Deserialize)]
        struct ThreadList {
            threads: Vec<Channel>,
        }
        let limit = vec![("limit", MAX_ARCHIVED_THREADS.to_string())];
        let list = self.call(Request::get(Route::ArchivedPublicThreads { channel_id }).query(limit)).await;
        list.map(|list: ThreadList| list.threads)
    }

    /// Renames a channel. Discord allows two renames in ten minutes.
    pub(crate) async fn rename_channel(&self, channel_id: ChannelId, name: &str) -> Result<(), RestError> {
        self.execute(Request::json(Method::PATCH, Route::Channel { channel_id }, &json!({"name": name}))?).await
    }

    /// Deletes a channel.
    pub(crate) async fn delete_channel(&self, channel_id: ChannelId) -> Result<(), RestError> {
        self.execute(Request::new(Method::DELETE, Route::Channel { channel_id })).await
    }
}
