//! What was written in a channel.

use serde_json::Value;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, MessageId};

use super::{RestClient, RestError, describe_json_error};

/// Messages of one answer.
const PAGE_SIZE: usize = 100;

/// Messages of a channel, the newest first.
#[derive(Debug, Default)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// All that were listed, whether they can be read or not.
    pub listed: Vec<MessageId>,
    /// The oldest that was listed, whether it can be read or not; `None`: there is none.
    pub oldest: Option<MessageId>,
    /// The newest of those.
    pub newest: Option<MessageId>,
    /// There may be older ones.
    pub has_more: bool,
}

impl RestClient {
    /// The newest messages of a channel, or those before one. What cannot be read is logged and left out.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn message_page(&self, channel: ChannelId, before: Option<MessageId>) -> Result<MessagePage, RestError> {
        let mut params = vec![("limit", PAGE_SIZE.to_string())];
        params.extend(before.map(|before| ("before", before.to_string())));
        let route = Route::ChannelMessages { channel_id: channel };
        let listed: Vec<Value> = self.call(Request::new(route, LightMethod::Get).params(Some(params))).await?;
        let ids: Vec<MessageId> =
            listed.iter().filter_map(|message| message.get("id")?.as_str()?.parse().ok()).collect();
        let read = |message: Value| {
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            serde_json::from_value(message)
                .inspect_err(|e| tracing::warn!(%channel, message = %id, error = describe_json_error(e), "a message cannot be read"))
                .ok()
        };
        Ok(MessagePage {
            has_more: listed.len() >= PAGE_SIZE,
            oldest: ids.iter().min().copied(),
            newest: ids.iter().max().copied(),
            messages: listed.into_iter().filter_map(read).collect(),
            listed: ids,
        })
    }
}
