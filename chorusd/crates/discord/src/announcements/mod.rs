//! Announcements in the channels of agents: idle notices, compactions, replies to schedules, approvals, starts and stops. Each is posted
//! once, however often the daemon ends in between.
//!
//! Events become posts in the same commit that records the last announced event. Turns that were requested elsewhere
//! are not announced: a channel shows only what was said in it.

mod start_stop;

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::{Announcements, ConnectionState, MAX_NOTICE_AGE, NewPost};
use chorus_engine::ops::events::subscribe::{Subscription, SubscriptionItem, subscribe};
use chorus_proto::methods::events::SubscribeParams;
use chorus_proto::{Event, EventType};
use futures_util::StreamExt as _;
use serenity::model::id::ChannelId;
use tokio::time::timeout;
use uuid::Uuid;

use super::app::DiscordApp;
use super::outbox::{Button, MessageBody, Outbox, Post, Style};
use super::{approvals, channels, conversations, render};
use crate::channels::AgentChannels;
use crate::commands::rewrite_message;

/// After this many events that need no announcement, the last one seen is recorded all the same.
const MAX_UNRECORDED_EVENTS: u64 = 1000;

/// Wait before a retry if the database cannot be used.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time for the announcement of a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How the notice of an idle conversation begins.
const IDLE_NOTICE: &str = "Session saved:";

/// Channels that are told of a stop concurrently.
const MAX_CONCURRENT_POSTS: usize = 8;

/// Announces events until the daemon stops, then announces the stop.
pub(crate) async fn run(app: &Arc<DiscordApp>) {
    let telling = async {
        let (mut last, mut begun) = (None, false);
        loop {
            if let Err(failure) = approvals::close_stale(&app.ops, &app.outbox).await {
                tracing::warn!(%failure, "cannot close approval posts of the previous run");
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            }
            break;
        }
        loop {
            let told = match last {
                None => app.tables.announcements.last_event().await,
                known => Ok(known),
            };
            match told {
                Ok(told) => match subscribe_after(app, told, &mut begun).await {
                    Ok((seq, subscription)) => {
                        last = Some(seq);
                        announce_events(app, subscription, &mut last).await;
                    }
                    Err(failure) => tracing::warn!(%failure, "cannot announce events in channels"),
                },
                Err(failure) => tracing::warn!(%failure, "cannot announce events in channels"),
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    };
    tokio::select! {
        () = telling => {}
        () = app.stop.cancelled() => {}
    }
    let _ = timeout(STOP_TIMEOUT, announce_stop(app)).await;
}

/// Subscribes to the events after the last announced one. On the very first start nothing older is announced.
async fn subscribe_after(app: &DiscordApp, told: Option<u64>, begun: &mut bool) -> Result<(u64, Subscription)> {
    let (now, subscription) = subscribe(&app.ops.store.journal, SubscribeParams { after: told }).await?;
    // A journal that lost its end reuses the numbers of the lost events.
    let from = told.map_or(now.seq, |told| told.min(now.seq));
    if !*begun {
        let started = match told {
            Some(_) => start_stop::announce_start(app, &active_channels(&app.ops, &app.channels)).await?,
            None => start_stop::StartAnnouncement::default(),
        };
        let channels: Vec<u64> = started.posts.iter().map(|post| post.channel_id).collect();
        app.tables
            .announcements
            .enqueue(Announcements {
                posts: started.posts,
                upto: Some(from),
                starts: started.start_times,
                dropped: None,
            })
            .await?;
        wake_senders(&app.outbox, channels);
        *begun = true;
    }
    Ok((from, subscription))
}

/// Announces events until the subscription ends.
async fn announce_events(app: &DiscordApp, mut subscription: Subscription, last: &mut Option<u64>) {
    let (mut noted, mut heard_any) = (*last, false);
    while let Some(heard) = subscription.next(&app.ops.store.journal).await {
        let event = match heard {
            SubscriptionItem::Event(event) if event.kind == EventType::TurnDelta => continue,
            SubscriptionItem::Event(event) => {
                heard_any = true;
                event
            }
            // The journal has lost them, too.
            SubscriptionItem::Lagged(missed) if !heard_any => {
                tracing::warn!(missed, "events were not announced in channels");
                *last = Some(last.unwrap_or(0) + missed);
                continue;
            }
            // The events that were missed while this waited are in the journal: subscribe again.
            SubscriptionItem::Lagged(_) => return,
        };
        loop {
            match announce_event(app, &event, noted.unwrap_or(0)).await {
                Ok(true) => noted = Some(event.seq),
                Ok(false) => {}
                Err(failure) => {
                    tracing::warn!(%failure, event = event.seq, "cannot announce an event yet; retrying");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
            }
            break;
        }
        *last = Some(event.seq);
    }
}

/// Announces one event. Returns whether it was recorded as announced.
async fn announce_event(app: &DiscordApp, event: &Event, noted: u64) -> Result<bool> {
    let now = app.ops.clock.now();
    let mut dropped = None;
    let posts = match event.kind {
        EventType::Notice | EventType::ContextCompacted => {
            let posts = if event.kind == EventType::Notice {
                notice_posts(&app.ops, &app.channels, event)?
            } else {
                compaction_posts(&app.ops, &app.channels, event)?
            };
            if now.duration_since(event.time) > MAX_NOTICE_AGE {
                dropped = Some((posts.len() as u64, now));
                Vec::new()
            } else {
                posts.into_iter().map(|post| NewPost { notice_at: Some(event.time), ..post }).collect()
            }
        }
        EventType::ScheduleFinished => schedule_posts(&app.ops, &app.channels, event)?,
        EventType::ApprovalAsked => {
            approvals::question_post(&app.ops, &app.channels, event).await?.into_iter().collect()
        }
        EventType::ApprovalDecided => {
            approvals::on_decided(&app.outbox, event).await?;
            Vec::new()
        }
        _ if event.seq < noted + MAX_UNRECORDED_EVENTS => return Ok(false),
        _ => Vec::new(),
    };
    let channels: Vec<u64> = posts.iter().map(|post| post.channel_id).collect();
    app.tables.announcements.enqueue(Announcements { posts, upto: Some(event.seq), starts: None, dropped }).await?;
    wake_senders(&app.outbox, channels);
    Ok(true)
}

fn wake_senders(outbox: &Outbox, channels: Vec<u64>) {
    channels.into_iter().for_each(|channel| outbox.wake_sender(ChannelId::new(channel.max(1))));
}

/// Returns the channel for the announcement of an event: that of the agent, or the thread or the direct messages of the
/// conversation.
fn event_channel(ops: &Ops, channels: &AgentChannels, event: &Event) -> Option<ChannelId> {
    let agent = ops.agents.by_name(event.agent.as_deref()?)?;
    conversations::notice_channel(ops, channels, agent.settings.id, event.conversation.as_deref())
}

/// Posts a notice. The notice of an idle context gets a Restore button if everybody who sees the channel may press it;
/// if not, the notice names the command.
fn notice_posts(ops: &Ops, channels: &AgentChannels, event: &Event) -> Result<Vec<NewPost>> {
    let (Some(channel), Some(text)) = (event_channel(ops, channels, event), event.data["text"].as_str()) else {
        return Ok(Vec::new());
    };
    let session = event.data["id"].as_str().and_then(|id| id.parse::<Uuid>().ok());
    let approvers = &ops.config.discord.approvers;
    let button = session.filter(|_| channels.all_may_change(channel, approvers)).map(|session| Button {
        custom_id: channels::restore_button(session),
        label: "Restore".into(),
        style: Style::Primary,
        disabled: false,
        seen_whole: false,
    });
    // Commands in a thread act on its conversation.
    let text = match &event.conversation {
        Some(name) => text.replace(&format!("chorusctl -C {name} "), "chorusctl "),
        None => text.to_owned(),
    };
    // The idle notice is written for Discord, and most of it is the summary. A conversation in a thread is also saved and
    // cleared to make room for another one.
    let is_idle = session.is_some() && (event.conversation.is_none() || text.starts_with(IDLE_NOTICE));
    let text = if is_idle { text } else { rewrite_message(&text) };
    let parts = render::split(&text);
    let last = parts.len().saturating_sub(1);
    let post = |(at, content): (usize, String)| {
        let buttons = button.iter().filter(|_| at == last).cloned().collect();
        Post { channel, about: None, body: MessageBody { content, buttons, file: None }, reply_to: None }.into_row()
    };
    parts.into_iter().filter(|part| !part.trim().is_empty()).enumerate().map(post).collect()
}

/// Posts the reply to the message of a schedule, or why it has none, into the agent's channel.
fn schedule_posts(ops: &Ops, channels: &AgentChannels, event: &Event) -> Result<Vec<NewPost>> {
    let agent = event.agent.as_deref().and_then(|name| ops.agents.by_name(name));
    let channel = agent.and_then(|agent| channels.channel_of(agent.settings.id));
    let (Some((channel, _)), Some(name)) = (channel, event.data["name"].as_str()) else { return Ok(Vec::new()) };
    let text = match (event.data["reply"].as_str().map(str::trim), event.data["error"].as_str()) {
        (Some(reply), _) if !reply.is_empty() => format!("**Schedule {name}:**\n{reply}"),
        (_, Some(error)) => format!("**Schedule {name}** failed: {}", rewrite_message(error)),
        _ => return Ok(Vec::new()),
    };
    let post = |content: String| {
        let body = MessageBody::from_text(content);
        Ok(NewPost { notice_at: Some(event.time), ..Post { channel, about: None, body, reply_to: None }.into_row()? })
    };
    render::split(&text).into_iter().filter(|part| !part.trim().is_empty()).map(post).collect()
}

/// Announces an automatic compaction. One that somebody requested is not announced.
fn compaction_posts(ops: &Ops, channels: &AgentChannels, event: &Event) -> Result<Vec<NewPost>> {
    let by_hand = event.data.get("id").is_some();
    let Some(channel) = event_channel(ops, channels, event).filter(|_| !by_hand) else { return Ok(Vec::new()) };
    let (Some(before), Some(after)) = (event.data["tokens_before"].as_u64(), event.data["tokens_after"].as_u64())
    else {
        return Ok(Vec::new());
    };
    let content = format!(
        "The conversation was long, so Chorus summarized older messages for the model (from about {before} to {after} tokens). \
         Nothing was deleted. To undo this: `/context compact undo:True`"
    );
    Ok(vec![Post { channel, about: None, body: MessageBody::from_text(content), reply_to: None }.into_row()?])
}

/// Returns the channels of the agents whose conversation `main` is live. Threads are told nothing: one that was archived
/// meanwhile would be unarchived by that. Neither are direct messages.
fn active_channels(ops: &Ops, channels: &AgentChannels) -> Vec<ChannelId> {
    let live = ops.registry.live_conversations(None);
    let mut channels: Vec<ChannelId> = live
        .into_iter()
        .filter(|conversation| conversation.is_main())
        .filter_map(|conversation| channels.channel_of(conversation.agent))
        .map(|(channel, _)| channel)
        .collect();
    channels.sort_unstable();
    channels.dedup();
    channels
}

/// Announces the stop in active channels. It is not retried, since it means nothing later.
async fn announce_stop(app: &DiscordApp) {
    // The gateway connection may have ended already.
    if !matches!(app.ops.discord.state(), ConnectionState::Connected | ConnectionState::Off) {
        return;
    }
    let resumes = if app.ops.config.resume_on_start { " and continues when Chorus is back" } else { "" };
    let text = format!("Chorus is stopping. The conversation is saved{resumes}.");
    let body = MessageBody::from_text(text);
    let components = body.components();
    let active = active_channels(&app.ops, &app.channels);
    let channels = match start_stop::record_stop(&app.tables, app.ops.clock.now(), active).await {
        Ok(channels) => channels,
        Err(failure) => return tracing::warn!(%failure, "cannot announce the shutdown in channels"),
    };
    futures_util::stream::iter(channels)
        .for_each_concurrent(MAX_CONCURRENT_POSTS, |channel| {
            let looks = body.as_content(&components);
            let nonce: String = Uuid::new_v4().simple().to_string().chars().take(25).collect();
            async move {
                if let Err(error) = app.rest.create_message(channel, looks, &nonce, None).await {
                    tracing::debug!(%channel, %error, "cannot announce the shutdown");
                }
            }
        })
        .await;
}
