//! Channels of servers.

use serde::Deserialize;
use serde_json::json;
use serenity::builder::CreateChannel;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::channel::ChannelType;
use serenity::model::id::{ChannelId, GuildId, MessageId};

use super::{BackgroundClient, RestClient, RestError, json_request as with_json};

/// What is asked of a channel.
#[derive(Debug, Clone, Deserialize)]
pub struct Channel {
    pub id: ChannelId,
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// Not of conversations outside of servers.
    pub guild_id: Option<GuildId>,
    /// The category it stands in.
    pub parent_id: Option<ChannelId>,
    pub name: Option<String>,
    pub last_message_id: Option<MessageId>,
}

impl RestClient {
    /// One channel.
    ///
    /// # Errors
    /// `Gone` where it is not there, `Refused` where it may not be seen.
    pub async fn channel(&self, channel_id: ChannelId) -> Result<Channel, RestError> {
        self.call(Request::new(Route::Channel { channel_id }, LightMethod::Get)).await
    }

    /// All channels of a server.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn guild_channels(&self, guild_id: GuildId) -> Result<Vec<Channel>, RestError> {
        self.call(Request::new(Route::GuildChannels { guild_id }, LightMethod::Get)).await
    }

    /// Makes a channel, or a category.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub async fn create_channel(&self, guild_id: GuildId, channel: &CreateChannel<'_>) -> Result<Channel, RestError> {
        self.call(with_json(LightMethod::Post, Route::GuildChannels { guild_id }, channel)?).await
    }
}

/// What nobody waits for, or may take its time.
impl BackgroundClient<'_> {
    /// As [`Rest::channel`], whatever limit there is.
    ///
    /// # Errors
    /// As [`Rest::channel`].
    pub async fn channel(&self, channel_id: ChannelId) -> Result<Channel, RestError> {
        self.call(Request::new(Route::Channel { channel_id }, LightMethod::Get)).await
    }

    /// Gives a channel another name. Discord takes two in ten minutes.
    ///
    /// # Errors
    /// As [`Waiting::tell`].
    pub async fn rename_channel(&self, channel_id: ChannelId, name: &str) -> Result<(), RestError> {
        self.execute(with_json(LightMethod::Patch, Route::Channel { channel_id }, &json!({"name": name}))?).await
    }

    /// Deletes a channel.
    ///
    /// # Errors
    /// As [`Waiting::tell`].
    pub async fn delete_channel(&self, channel_id: ChannelId) -> Result<(), RestError> {
        self.execute(Request::new(Route::Channel { channel_id }, LightMethod::Delete)).await
    }
}
