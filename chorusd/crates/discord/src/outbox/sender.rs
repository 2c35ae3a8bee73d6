//! The sender of a channel: sends one post at a time, each until it is delivered or given up.

use std::time::Duration;

use chorus_base::Backoff;
use chorus_base::error::Result;
use chorus_engine::ops::discord::DuePost;
use jiff::Timestamp;
use serenity::all::ChannelId;
use tokio::time::Instant;

use super::Outbox;
use super::post::{MessageBody, StoredPost};
use super::send_try::{PossibleDuplicate, SendOutcome, try_send};
use crate::rest::RestError;

/// The first wait before a retry, and the longest.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Longest wait in a channel where Chorus may not post. A change of permissions ends the wait.
const MAX_FORBIDDEN_BACKOFF: Duration = Duration::from_secs(300);
/// How long posts wait in a channel where Chorus may not post.
const FORBIDDEN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Posted instead of a post that Discord rejects.
const REJECTED_NOTE: &str = "-# Discord does not take what belongs here. At the terminal `chorusctl context show` has it, or `chorusctl approvals`.";

/// Sends the posts of `channel` until none is left, or the daemon stops while it would have to wait.
pub(super) async fn run(posts: Outbox, channel: ChannelId) {
    let mut backoff = Backoff::new(INITIAL_BACKOFF, MAX_BACKOFF);
    // Since when the next post may have been posted without a response.
    let mut unsure = None;
    // Since when Chorus may not post here.
    let mut barred = None;
    loop {
        let wait = match send_next(&posts, channel, (&mut unsure, &mut barred)).await {
            Ok(Step::Done) => {
                posts.0.ops.discord.set_post_block(channel.get(), None);
                backoff.reset();
                (unsure, barred) = (None, None);
                continue;
            }
            Ok(Step::Empty) if posts.has_more(channel) => continue,
            Ok(Step::Empty) => return,
            Ok(Step::Wait(wait)) => wait,
            Err(failure) => {
                tracing::warn!(%channel, %failure, "the outbox cannot be used");
                // The failed write may be the record of a post that was sent.
                unsure = None;
                None
            }
        };
        let wait = wait.unwrap_or_else(|| backoff.next_wait());
        tokio::select! {
            () = posts.0.stop.cancelled() => break,
            () = posts.0.rights_changed.notified(), if barred.is_some() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    posts.0.active_senders.lock().remove(&channel.get());
}

/// The outcome of a try.
enum Step {
    /// The post was delivered or given up.
    Done,
    Empty,
    /// Retry after this time; `None` stands for the usual backoff.
    Wait(Option<Duration>),
}

async fn send_next(
    posts: &Outbox,
    channel: ChannelId,
    (unsure, barred): (&mut Option<PossibleDuplicate>, &mut Option<Instant>),
) -> Result<Step> {
    let inner = &posts.0;
    let now = inner.ops.clock.now();
    let Some(due) = inner.table.begin_next(channel.get(), now).await? else { return Ok(Step::Empty) };
    let Ok(kept) = serde_json::from_str::<StoredPost>(&due.body) else {
        tracing::error!(%channel, post = due.id, "a post cannot be read, and is dropped");
        return give_up_post(posts, &due).await;
    };
    // A post that the previous daemon was sending may have been posted.
    let known = *unsure.get_or_insert_with(|| due.tried_at.map_or(PossibleDuplicate::No, PossibleDuplicate::Since));
    match try_send(posts, channel, &due, &kept, known).await {
        SendOutcome::Posted(message) => {
            inner.table.mark_sent(due.id, message.get()).await?;
            posts.notify_watcher(&due.nonce, Some(message));
            Ok(Step::Done)
        }
        SendOutcome::Obsolete => give_up_post(posts, &due).await,
        SendOutcome::Retry { error, may_have_arrived: arrived } => {
            *unsure = Some(if arrived { known.or_since(now) } else { known });
            if *unsure == Some(PossibleDuplicate::No) {
                inner.table.mark_unsent(due.id).await?;
            }
            tracing::warn!(%channel, %error, "a post has to wait");
            inner.ops.discord.set_post_block(channel.get(), Some(error.to_string()));
            Ok(Step::Wait(retry_after(&error)))
        }
        SendOutcome::NotFound => {
            *unsure = Some(PossibleDuplicate::No);
            // Do not post again at once: a notice that is too old by now is dropped.
            inner.table.mark_unsent(due.id).await?;
            Ok(Step::Wait(Some(Duration::ZERO)))
        }
        SendOutcome::Forbidden(error) => {
            // An earlier try may have succeeded all the same.
            if known == PossibleDuplicate::No {
                inner.table.mark_unsent(due.id).await?;
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
            // Somebody waits for the post, so say in its place that it cannot be shown.
            let instead = StoredPost { body: MessageBody::from_text(REJECTED_NOTE), ..kept };
            match try_send(posts, channel, &due, &instead, PossibleDuplicate::No).await {
                SendOutcome::Posted(message) => {
                    inner.table.mark_sent(due.id, message.get()).await?;
                    posts.notify_watcher(&due.nonce, Some(message));
                    Ok(Step::Done)
                }
                _ => give_up_post(posts, &due).await,
            }
        }
        SendOutcome::ChannelGone(error) => {
            let waited = inner.table.abandon_channel(channel.get()).await?;
            tracing::warn!(%channel, waited, "a channel is gone, and what was to be posted in it dropped");
            posts.notify_watcher(&due.nonce, None);
            posts.report_lost_channel(channel, &error);
            Ok(Step::Done)
        }
    }
}

async fn give_up_post(posts: &Outbox, due: &DuePost) -> Result<Step> {
    posts.0.table.abandon(due.id).await?;
    posts.notify_watcher(&due.nonce, None);
    Ok(Step::Done)
}

/// Returns the wait that Discord asked for.
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
