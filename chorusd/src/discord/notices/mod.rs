//! What the daemon tells in the channels of agents, each thing once however often it ends in between.
//!
//! Events become posts in the commit that notes how far they were told. What happens in a turn that came from elsewhere is not
//! told: a channel shows what was said in it.

mod starts;

use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::events::SubscribeParams;
use chorus_proto::{Event, EventType};
use futures_util::StreamExt as _;
use serenity::model::id::ChannelId;
use tokio::time::timeout;
use uuid::Uuid;

use super::bridge::Bridge;
use super::posts::{Body, Button, Post, Style};
use super::{approvals, render, rooms};
use crate::failure::Result;
use crate::ops::discord::news::{self, News};
use crate::ops::discord::outbox::NEWS;
use crate::ops::discord::{NewPost, State};
use crate::ops::events::subscribe::{Heard, Subscription, subscribe};

/// Events that say nothing to a channel; after as many it is noted all the same that they were seen.
const SILENT: u64 = 1000;

/// Before the next try, where the database takes nothing.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a stop may be told of.
const FAREWELL: Duration = Duration::from_secs(3);

/// Channels that are told at once.
const AT_ONCE: usize = 8;

/// Tells until the daemon stops, then says that it does.
pub async fn run(bridge: &Arc<Bridge>) {
    let telling = async {
        let (mut last, mut begun) = (None, false);
        loop {
            if let Err(failure) = approvals::close_left_open(bridge).await {
                tracing::warn!(%failure, "questions of the run before look as if they were open");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            break;
        }
        loop {
            let told = match last {
                None => news::told(&bridge.ops).await,
                known => Ok(known),
            };
            match told {
                Ok(told) => match begin(bridge, told, &mut begun).await {
                    Ok((seq, subscription)) => {
                        last = Some(seq);
                        tell_all(bridge, subscription, &mut last).await;
                    }
                    Err(failure) => tracing::warn!(%failure, "events cannot be told in channels"),
                },
                Err(failure) => tracing::warn!(%failure, "events cannot be told in channels"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::select! {
        () = telling => {}
        () = bridge.stop.cancelled() => {}
    }
    let _ = timeout(FAREWELL, say_farewell(bridge)).await;
}

/// Listens from where telling ended. The first time ever nothing of before is told.
async fn begin(bridge: &Bridge, told: Option<u64>, begun: &mut bool) -> Result<(u64, Subscription)> {
    let (now, subscription) = subscribe(&bridge.ops, SubscribeParams { after: told }).await?;
    // A journal that lost its end numbers anew what comes.
    let from = told.map_or(now.seq, |told| told.min(now.seq));
    if !*begun {
        let started = match told {
            Some(_) => starts::started(bridge, &active(bridge)).await?,
            None => starts::Started::default(),
        };
        let channels: Vec<u64> = started.posts.iter().map(|post| post.channel_id).collect();
        news::tell(&bridge.ops, News { posts: started.posts, upto: Some(from), starts: started.note, dropped: None })
            .await?;
        wake(bridge, channels);
        *begun = true;
    }
    Ok((from, subscription))
}

/// Tells events until they cannot be heard any more.
async fn tell_all(bridge: &Bridge, mut subscription: Subscription, last: &mut Option<u64>) {
    let (mut noted, mut heard_any) = (*last, false);
    while let Some(heard) = subscription.next(&bridge.ops).await {
        let event = match heard {
            Heard::Event(event) if event.kind == EventType::TurnDelta => continue,
            Heard::Event(event) => {
                heard_any = true;
                event
            }
            // Those are gone from the journal, too.
            Heard::Lagged(missed) if !heard_any => {
                tracing::warn!(missed, "events were not told in channels");
                *last = Some(last.unwrap_or(0) + missed);
                continue;
            }
            // The journal has what was missed while it waited.
            Heard::Lagged(_) => return,
        };
        loop {
            match tell(bridge, &event, noted.unwrap_or(0)).await {
                Ok(true) => noted = Some(event.seq),
                Ok(false) => {}
                Err(failure) => {
                    tracing::warn!(%failure, event = event.seq, "an event is not told in its channel yet");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            }
            break;
        }
        *last = Some(event.seq);
    }
}

/// Tells one event; whether it was noted that it was.
async fn tell(bridge: &Bridge, event: &Event, noted: u64) -> Result<bool> {
    let now = bridge.ops.clock.now();
    let mut dropped = None;
    let posts = match event.kind {
        EventType::Notice | EventType::ContextCompacted => {
            let posts =
                if event.kind == EventType::Notice { notice(bridge, event)? } else { compacted(bridge, event)? };
            if now.duration_since(event.time) > NEWS {
                dropped = Some((posts.len() as u64, now));
                Vec::new()
            } else {
                posts.into_iter().map(|post| NewPost { notice_at: Some(event.time), ..post }).collect()
            }
        }
        EventType::ApprovalAsked => approvals::asked(bridge, event).await?.into_iter().collect(),
        EventType::ApprovalDecided => {
            approvals::decided(bridge, event).await?;
            Vec::new()
        }
        _ if event.seq < noted + SILENT => return Ok(false),
        _ => Vec::new(),
    };
    let channels: Vec<u64> = posts.iter().map(|post| post.channel_id).collect();
    news::tell(&bridge.ops, News { posts, upto: Some(event.seq), starts: None, dropped }).await?;
    wake(bridge, channels);
    Ok(true)
}

fn wake(bridge: &Bridge, channels: Vec<u64>) {
    channels.into_iter().for_each(|channel| bridge.posts.wake(ChannelId::new(channel.max(1))));
}

/// The channel of the agent that an event concerns.
fn channel(bridge: &Bridge, event: &Event) -> Option<ChannelId> {
    let agent = bridge.ops.directory.by_name(event.agent.as_deref()?)?;
    bridge.rooms.channel_of(agent.facts.id).map(|(channel, _)| channel)
}

/// A notice as it is; below that of an idle context a button that brings it back, where everybody who sees it may press it. Others have the command
/// that the notice names.
fn notice(bridge: &Bridge, event: &Event) -> Result<Vec<NewPost>> {
    let (Some(channel), Some(text)) = (channel(bridge, event), event.data["text"].as_str()) else {
        return Ok(Vec::new());
    };
    let session = event.data["id"].as_str().and_then(|id| id.parse::<Uuid>().ok());
    let approvers = &bridge.ops.config.discord.approvers;
    let button = session.filter(|_| bridge.rooms.all_change(channel, approvers)).map(|session| Button {
        custom_id: rooms::restore_button(session),
        label: "Restore".into(),
        style: Style::Primary,
        disabled: false,
        seen_whole: false,
    });
    let parts = render::split(text);
    let last = parts.len().saturating_sub(1);
    let post = |(at, content): (usize, String)| {
        let buttons = button.iter().filter(|_| at == last).cloned().collect();
        Post { channel, about: None, body: Body { content, buttons, file: None }, reply_to: None }.row()
    };
    parts.into_iter().filter(|part| !part.trim().is_empty()).enumerate().map(post).collect()
}

/// That older messages left the window by themselves. By hand somebody knows.
fn compacted(bridge: &Bridge, event: &Event) -> Result<Vec<NewPost>> {
    let by_hand = event.data.get("id").is_some();
    let Some(channel) = channel(bridge, event).filter(|_| !by_hand) else { return Ok(Vec::new()) };
    let (Some(before), Some(after)) = (event.data["tokens_before"].as_u64(), event.data["tokens_after"].as_u64())
    else {
        return Ok(Vec::new());
    };
    let content = format!(
        "The conversation got long: older messages are summarised for the model (about {before} tokens, now {after}). All of it is \
         kept; `/context compact` with `undo` shows the model all again."
    );
    Ok(vec![Post { channel, about: None, body: Body::text(content), reply_to: None }.row()?])
}

/// Agents in the middle of a conversation, and where that is.
fn active(bridge: &Bridge) -> Vec<ChannelId> {
    let live = bridge.ops.registry.live();
    let mut channels: Vec<ChannelId> =
        live.into_iter().filter_map(|agent| bridge.rooms.channel_of(agent)).map(|(channel, _)| channel).collect();
    channels.sort_unstable();
    channels
}

/// Says in active channels that the daemon stops: at once or not at all, since it means nothing later.
async fn say_farewell(bridge: &Bridge) {
    // The gateway may have gone already.
    if !matches!(bridge.ops.discord.state(), State::Connected | State::Off) {
        return;
    }
    let goes_on = if bridge.ops.config.resume_on_start { "; it goes on when Chorus is back" } else { "" };
    let text = format!("Chorus stops now. The conversation is saved{goes_on}.");
    let body = Body::text(text);
    let components = body.components();
    let channels = match starts::stopping(bridge, active(bridge)).await {
        Ok(channels) => channels,
        Err(failure) => return tracing::warn!(%failure, "the stop is not told in channels"),
    };
    futures_util::stream::iter(channels)
        .for_each_concurrent(AT_ONCE, |channel| {
            let looks = body.looks(&components);
            let nonce: String = Uuid::new_v4().simple().to_string().chars().take(25).collect();
            async move {
                if let Err(error) = bridge.rest.create_message(channel, looks, &nonce, None).await {
                    tracing::debug!(%channel, %error, "a stop was not told");
                }
            }
        })
        .await;
}
