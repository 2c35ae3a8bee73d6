//! The message history of a channel.

use super::{Request, Route};
use serde_json::Value;
use serenity::model::channel::Message;
use serenity::model::id::{ChannelId, MessageId};

use super::{RestClient, RestError, describe_json_error};

/// Messages of one page.
const PAGE_SIZE: usize = 100;

/// A page of a channel's messages, the newest first.
#[derive(Debug, Default)]
pub(crate) struct MessagePage {
    pub messages: Vec<Message>,
    /// The ids of all messages of the page, including those that cannot be parsed.
    pub listed: Vec<MessageId>,
    /// The oldest message of the page, including those that cannot be parsed; `None` if the page is empty.
    pub oldest: Option<MessageId>,
    /// The newest of them.
    pub newest: Option<MessageId>,
    /// There may be older messages.
    pub has_more: bool,
}

impl RestClient {
    /// Returns the newest messages of a channel, or those before `before`. Messages that cannot be parsed are logged
    /// and left out.
    pub(crate) async fn message_page(
        &self,
        channel: ChannelId,
        before: Option<MessageId>,
    ) -> Result<MessagePage, RestError> {
        let mut params = vec![("limit", PAGE_SIZE.to_string())];
        params.extend(before.map(|before| ("before", before.to_string())));
        let route = Route::ChannelMessages { channel_id: channel };
        let listed: Vec<Value> = self.call(Request::get(route).query(params)).await?;
        let ids: Vec<MessageId> =
            listed.iter().filter_map(|message| message.get("id")?.as_str()?.parse().ok()).collect();
        let read = |message: Value| {
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            serde_json::from_value(message)
                .inspect_err(|e| tracing::warn!(%channel, message = %id, error = describe_json_error(e), "cannot parse a message"))
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
