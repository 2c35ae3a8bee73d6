//! Decides which channels are told of a start or stop of the daemon. Starts and stops are announced in pairs where a
//! conversation goes on: a channel that is told of a stop is told of the next start. To keep channels quiet when the
//! daemon restarts again and again, no channel is told of either within ten minutes of the last start that it was told
//! of.

use std::collections::BTreeMap;

use chorus_base::error::{Error, Result};
use chorus_engine::ops::discord::{Announcements, DiscordTables, NewPost};
use jiff::Timestamp;
use serenity::model::id::ChannelId;

use super::super::app::DiscordApp;
use super::super::outbox::{MessageBody, Post};

/// Seconds in which a channel is told of one start only.
const QUIET_SECONDS: i64 = 600;

/// Stands for the time of a channel that was told of a stop and of no start since.
const STOPPED: i64 = -1;

/// The announcement of a start.
#[derive(Debug, Default)]
pub(super) struct StartAnnouncement {
    pub posts: Vec<NewPost>,
    /// The new start times to store; `None` if they are unchanged.
    pub start_times: Option<String>,
}

/// When channels were last told of a start: channel ids with seconds since 1970, or [`STOPPED`].
type StartTimes = BTreeMap<u64, i64>;

async fn load_start_times(tables: &DiscordTables) -> Result<StartTimes> {
    let before = tables.announcements.last_starts().await?;
    Ok(before.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

fn encode_start_times(told: &StartTimes) -> Result<String> {
    serde_json::to_string(told).map_err(|e| Error::internal(e.to_string()))
}

/// Builds the announcement of this start: for the `live` channels, and for those that were told of the stop before it.
pub(super) async fn announce_start(app: &DiscordApp, live: &[ChannelId]) -> Result<StartAnnouncement> {
    let (mut due, now) = channels_for_start(load_start_times(&app.tables).await?, live, app.ops.clock.now());
    // The agent of the channel may have been destroyed since the stop.
    due.retain(|channel| app.channels.agent_of(*channel).is_some());
    if due.is_empty() {
        return Ok(StartAnnouncement::default());
    }
    let post = |channel: ChannelId| {
        let text = match live.contains(&channel) {
            true => "Chorus restarted. The conversation continues.",
            false => "Chorus restarted. The conversation is saved. To load it: `/context restore`",
        };
        Post { channel, about: None, body: MessageBody::from_text(text), reply_to: None }.into_row()
    };
    Ok(StartAnnouncement {
        posts: due.into_iter().map(post).collect::<Result<_>>()?,
        start_times: Some(encode_start_times(&now)?),
    })
}

/// Returns the channels of `live` that are to be told of a stop, after recording that they are.
///
/// # Errors
/// If the database cannot be read or written, nobody is told.
pub(super) async fn record_stop(
    tables: &DiscordTables,
    now: Timestamp,
    live: Vec<ChannelId>,
) -> Result<Vec<ChannelId>> {
    let (due, now) = channels_for_stop(load_start_times(tables).await?, live, now);
    if !due.is_empty() {
        let announcements =
            Announcements { posts: Vec::new(), upto: None, starts: Some(encode_start_times(&now)?), dropped: None };
        tables.announcements.enqueue(announcements).await?;
    }
    Ok(due)
}

/// Returns whether a channel was told of a start a short while ago. A time in the future does not count: the clock may
/// have been set back.
fn is_recent(at: i64, now: i64) -> bool {
    at != STOPPED && (0..QUIET_SECONDS).contains(&(now - at))
}

/// Returns the channels to tell of a start, and the new start times.
fn channels_for_start(mut told: StartTimes, live: &[ChannelId], now: Timestamp) -> (Vec<ChannelId>, StartTimes) {
    let now = now.as_second();
    let stopped = told.iter().filter(|(id, at)| **at == STOPPED && **id != 0).map(|(id, _)| ChannelId::new(*id));
    let mut due: Vec<ChannelId> = stopped.collect();
    told.retain(|_, at| is_recent(*at, now));
    due.extend(live.iter().filter(|channel| !told.contains_key(&channel.get())));
    due.sort_unstable();
    due.dedup();
    told.extend(due.iter().map(|channel| (channel.get(), now)));
    (due, told)
}

/// Returns the channels to tell of a stop, and the new start times.
fn channels_for_stop(mut told: StartTimes, live: Vec<ChannelId>, now: Timestamp) -> (Vec<ChannelId>, StartTimes) {
    let now = now.as_second();
    let lately = |channel: &ChannelId| told.get(&channel.get()).is_some_and(|at| is_recent(*at, now));
    let due: Vec<ChannelId> = live.into_iter().filter(|channel| !lately(channel)).collect();
    told.extend(due.iter().map(|channel| (channel.get(), STOPPED)));
    (due, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_hears_of_one_start_in_ten_minutes() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let (a, b) = (ChannelId::new(1), ChannelId::new(2));
        let (heard, told) = channels_for_start(StartTimes::new(), &[a], at(1000));
        assert_eq!(heard, [a]);
        let (heard, told) = channels_for_start(told, &[a, b], at(1599));
        assert_eq!(heard, [b]);
        let (heard, told) = channels_for_start(told, &[a, b], at(1600));
        assert_eq!(heard, [a]);
        assert_eq!(channels_for_start(told, &[a, b], at(10)).0, [a, b], "the clock was set back");
    }

    #[test]
    fn whoever_hears_of_a_stop_hears_of_the_next_start_and_nobody_else_of_either() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let (a, b) = (ChannelId::new(1), ChannelId::new(2));
        let (heard, told) = channels_for_stop(StartTimes::new(), vec![a], at(1000));
        assert_eq!(heard, [a]);
        // A channel is told even if its conversation does not go on.
        let (heard, told) = channels_for_start(told, &[b], at(1001));
        assert_eq!(heard, [a, b]);
        // A second stop within ten minutes is not announced, so that its start need not be.
        let (heard, told) = channels_for_stop(told, vec![a, b], at(1300));
        assert!(heard.is_empty());
        let (heard, told) = channels_for_start(told, &[a, b], at(1301));
        assert!(heard.is_empty());
        let (heard, told) = channels_for_stop(told, vec![a], at(1601));
        assert_eq!(heard, [a]);
        assert_eq!(channels_for_start(told, &[a], at(1602)).0, [a]);
    }
}
