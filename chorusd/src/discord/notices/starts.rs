//! A start is told where a conversation goes on, and not again and again where the daemon ends all the time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serenity::model::id::ChannelId;

use super::super::bridge::Bridge;
use super::super::posts::{Body, Post};
use crate::failure::{Failure, Result};
use crate::ops::discord::{NewPost, news};

/// Seconds in which a channel hears of one start only.
const QUIET: i64 = 600;

/// What is said of a start.
#[derive(Debug, Default)]
pub struct Started {
    pub posts: Vec<NewPost>,
    /// When channels heard of one, to be noted; `None`: as before.
    pub note: Option<String>,
}

/// When channels last heard of a start: their ids with seconds since 1970.
type Told = BTreeMap<u64, i64>;

/// What is said of this start in `channels`.
///
/// # Errors
/// A database that cannot be read.
pub async fn told(bridge: &Bridge, channels: Vec<ChannelId>) -> Result<Started> {
    let before = news::starts(&bridge.ops).await?;
    let before: Told = before.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
    let (due, now) = due(before, &channels, bridge.ops.clock.now());
    if due.is_empty() {
        return Ok(Started::default());
    }
    let text = "Chorus was started anew. The conversation goes on where it was.";
    let post = |channel| Post { channel, about: None, body: Body::text(text), reply_to: None }.row();
    let note = serde_json::to_string(&now).map_err(|e| Failure::internal(e.to_string()))?;
    Ok(Started { posts: due.into_iter().map(post).collect::<Result<_>>()?, note: Some(note) })
}

/// The channels that hear of it, and what is noted then.
fn due(mut told: Told, channels: &[ChannelId], now: Timestamp) -> (Vec<ChannelId>, Told) {
    let now = now.as_second();
    // A clock that was set back must not keep a channel from hearing for ever.
    told.retain(|_, at| (0..QUIET).contains(&(now - *at)));
    let due: Vec<ChannelId> = channels.iter().copied().filter(|channel| !told.contains_key(&channel.get())).collect();
    told.extend(due.iter().map(|channel| (channel.get(), now)));
    (due, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_hears_of_one_start_in_ten_minutes() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let (a, b) = (ChannelId::new(1), ChannelId::new(2));
        let (heard, told) = due(Told::new(), &[a], at(1000));
        assert_eq!(heard, [a]);
        let (heard, told) = due(told, &[a, b], at(1599));
        assert_eq!(heard, [b]);
        let (heard, told) = due(told, &[a, b], at(1600));
        assert_eq!(heard, [a]);
        assert_eq!(due(told, &[a, b], at(10)).0, [a, b], "the clock was set back");
    }
}
