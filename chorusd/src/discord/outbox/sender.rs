//! The sender of one channel: one post at a time, each until it is there or never will be.

use std::time::Duration;

use jiff::Timestamp;
use serenity::all::ChannelId;
use tokio::time::Instant;

use super::Outbox;
use super::post::{MessageBody, StoredPost};
use super::send_try::{PossibleDuplicate, SendOutcome, try_send};
use crate::discord::rest::RestError;
use crate::error::Result;
use crate::ops::discord::outbox::{self, DuePost};

/// Before what came to nothing is tried again; twice as long each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The same for a channel that Chorus may not post in: other rights are told.
const MAX_FORBIDDEN_BACKOFF: Duration = Duration::from_secs(300);
/// How long a channel that Chorus may not post in is waited for.
const FORBIDDEN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Stands where Discord takes no text, or not this one.
const REJECTED_NOTE: &str = "-# Discord does not take what belongs here. At the terminal `chorusctl context show` has it, or `chorusctl approvals`.";

/// Sends what is to be posted in `channel` until nothing is left, or the daemon stops and it would have to wait.
pub async fn run(posts: Outbox, channel: ChannelId) {
    let mut pause = INITIAL_BACKOFF;
    // Since when the post that is next may be there without our knowing.
    let mut unsure = None;
    // Since when Chorus may not post here.
    let mut barred = None;
    loop {
        let wait = match send_next(&posts, channel, (&mut unsure, &mut barred)).await {
            Ok(Step::Done) => {
                posts.0.ops.discord.set_post_block(channel.get(), None);
                (pause, unsure, barred) = (INITIAL_BACKOFF, None, None);
                continue;
            }
            Ok(Step::Empty) if posts.has_more(channel) => continue,
            Ok(Step::Empty) => return,
            Ok(Step::Wait(wait)) => wait,
            Err(failure) => {
                tracing::warn!(%channel, %failure, "the outbox cannot be used");
                // What was sent may not be noted as such.
                unsure = None;
                None
            }
        };
        let wait = wait.unwrap_or_else(|| {
            let wait = pause;
            pause = (pause * 2).min(MAX_BACKOFF);
            wait
        });
        tokio::select! {
            () = posts.0.stop.cancelled() => break,
            () = posts.0.rights_changed.notified(), if barred.is_some() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    posts.0.active_senders.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&channel.get());
}

/// What came of one try.
enum Step {
    /// It is there, or never will be.
    Done,
    Empty,
    /// It is tried again then; `None`: as often as others.
    Wait(Option<Duration>),
}

async fn send_next(
    posts: &Outbox,
    channel: ChannelId,
    (unsure, barred): (&mut Option<PossibleDuplicate>, &mut Option<Instant>),
) -> Result<Step> {
    let inner = &posts.0;
    let now = inner.ops.clock.now();
    let Some(due) = outbox::begin_next(&inner.ops, channel.get(), now).await? else { return Ok(Step::Empty) };
    let Ok(kept) = serde_json::from_str::<StoredPost>(&due.body) else {
        tracing::error!(%channel, post = due.id, "a post cannot be read, and is dropped");
        return give_up_post(posts, &due).await;
    };
    // One that was on its way before the daemon was started may have arrived.
    let known = *unsure.get_or_insert_with(|| due.tried_at.map_or(PossibleDuplicate::No, PossibleDuplicate::Since));
    match try_send(posts, channel, &due, &kept, known).await {
        SendOutcome::Posted(message) => {
            outbox::mark_sent(&inner.ops, due.id, message.get()).await?;
            posts.notify_watcher(&due.nonce, Some(message));
            Ok(Step::Done)
        }
        SendOutcome::Obsolete => give_up_post(posts, &due).await,
        SendOutcome::Retry { error, may_have_arrived: arrived } => {
            *unsure = Some(if arrived { known.or_since(now) } else { known });
            if *unsure == Some(PossibleDuplicate::No) {
                outbox::mark_unsent(&inner.ops, due.id).await?;
            }
            tracing::warn!(%channel, %error, "a post has to wait");
            inner.ops.discord.set_post_block(channel.get(), Some(error.to_string()));
            Ok(Step::Wait(retry_after(&error)))
        }
        SendOutcome::NotFound => {
            *unsure = Some(PossibleDuplicate::No);
            // A notice that is too old by now is dropped and not posted again.
            outbox::mark_unsent(&inner.ops, due.id).await?;
            Ok(Step::Wait(Some(Duration::ZERO)))
        }
        SendOutcome::Forbidden(error) => {
            // An earlier try may have arrived all the same.
            if known == PossibleDuplicate::No {
                outbox::mark_unsent(&inner.ops, due.id).await?;
            }
            let since = barred.get_or_insert_with(Instant::now).elapsed();
            if since < FORBIDDEN_TIMEOUT {
                tracing::warn!(%channel, %error, "a post has to wait until Chorus may post here");
                inner.ops.discord.set_post_block(channel.get(), Some(error.to_string()));
                posts.report_lost_channel(channel, &error);
                return Ok(Step::Wait(Some(since.clamp(INITIAL_BACKOFF, MAX_FORBIDDEN_BACKOFF))));
            }
            tracing::warn!(%channel, %error, "a post is given up");
            give_up_post(posts, &due).await
        }
        SendOutcome::Rejected(error) => {
            tracing::warn!(%channel, %error, "a post is given up");
            // Somebody waits for it: that it is not there is said in its place.
            let instead = StoredPost { body: MessageBody::from_text(REJECTED_NOTE), ..kept };
            match try_send(posts, channel, &due, &instead, PossibleDuplicate::No).await {
                SendOutcome::Posted(message) => {
                    outbox::mark_sent(&inner.ops, due.id, message.get()).await?;
                    posts.notify_watcher(&due.nonce, Some(message));
                    Ok(Step::Done)
                }
                _ => give_up_post(posts, &due).await,
            }
        }
        SendOutcome::ChannelGone(error) => {
            let waited = outbox::abandon_channel(&inner.ops, channel.get()).await?;
            tracing::warn!(%channel, waited, "a channel is gone, and what was to be posted in it dropped");
            posts.notify_watcher(&due.nonce, None);
            posts.report_lost_channel(channel, &error);
            Ok(Step::Done)
        }
    }
}

async fn give_up_post(posts: &Outbox, due: &DuePost) -> Result<Step> {
    outbox::abandon(&posts.0.ops, due.id).await?;
    posts.notify_watcher(&due.nonce, None);
    Ok(Step::Done)
}

/// When Discord said that it may be tried again.
fn retry_after(error: &RestError) -> Option<Duration> {
    match error {
        RestError::RateLimited { after, .. } => Some((*after).max(INITIAL_BACKOFF)),
        _ => None,
    }
}

impl PossibleDuplicate {
    fn or_since(self, now: Timestamp) -> Self {
        match self {
            Self::No => Self::Since(now),
            since => since,
        }
    }
}
