//! The sender of a channel: sends one post at a time, each until it is delivered or given up.

use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::discord::{DiscordLease, DuePost, LeaseClaim};
use jiff::Timestamp;
use serenity::all::ChannelId;
use tokio::time::Instant;

use super::Outbox;
use super::outgoing_message::{MessageBody, StoredPost};
use super::retry_wait::{INITIAL_BACKOFF, RetryAfter, RetryWaits};
use super::send_try::{PossibleDuplicate, SendOutcome, try_send};
use crate::rest::RestError;

/// Longest wait in a channel where Chorus may not post. A change of permissions ends the wait.
const MAX_FORBIDDEN_BACKOFF: Duration = Duration::from_secs(300);
/// How long posts wait in a channel where Chorus may not post.
const FORBIDDEN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Posted instead of a post that Discord rejects.
const REJECTED_NOTE: &str =
    "-# Discord rejected this message, so it cannot be shown here. List pending approvals: `/approvals`";

/// Time between two attempts to get the lease of a channel in which another node sends.
const LEASE_INTERVAL: Duration = Duration::from_millis(500);

/// Sends the posts of `channel` until none is left, or the daemon stops while it would have to wait. If another node sends
/// there, waits until it has ended; but ends at once if the posts were only `offered` to this node.
pub(super) async fn run(posts: Outbox, channel: ChannelId, mut offered: bool) {
    let mut waits = RetryWaits::new(posts.0.rest.successes());
    // Since when the next post may have been posted without a response.
    let mut unsure = None;
    // Since when Chorus may not post here.
    let mut barred = None;
    loop {
        waits.begin_try();
        let step = match take_lease(&posts, channel).await {
            Ok(true) => send_next(&posts, channel, (&mut unsure, &mut barred)).await,
            Ok(false) if offered && !posts.has_more(channel) => return,
            Ok(false) => {
                offered = false;
                Ok(Step::Wait(RetryAfter::Time(LEASE_INTERVAL)))
            }
            Err(failure) => Err(failure),
        };
        // Another node may be allowed to post, or know sooner that this is so.
        if matches!(step, Ok(Step::Empty)) || barred.is_some() {
            release_lease(&posts, channel).await;
        }
        if matches!(step, Ok(Step::Empty)) {
            // Another node may have sent what waited here.
            posts.0.ops.discord.set_post_block(channel.get(), None);
        }
        let after = match step {
            Ok(Step::Done) => {
                posts.0.ops.discord.set_post_block(channel.get(), None);
                waits.reset();
                (unsure, barred) = (None, None);
                continue;
            }
            Ok(Step::Empty) if posts.has_more(channel) => continue,
            Ok(Step::Empty) => return,
            Ok(Step::Wait(after)) => after,
            Err(failure) => {
                tracing::warn!(%channel, %failure, "cannot use the outbox");
                // The failed write may be the record of a post that was sent.
                unsure = None;
                RetryAfter::Backoff
            }
        };
        tokio::select! {
            () = posts.0.stop.cancelled() => break,
            () = posts.0.rights_changed.notified(), if barred.is_some() => {}
            () = waits.wait(after) => {}
        }
    }
    release_lease(&posts, channel).await;
    posts.0.active_senders.lock().remove(&channel.get());
}

/// Takes the right to send in a channel. Returns false if another node has it.
async fn take_lease(posts: &Outbox, channel: ChannelId) -> Result<bool> {
    let Some(shared) = &posts.0.shared else { return Ok(true) };
    let claim = shared.claim(DiscordLease::Channel(channel.get())).await?;
    Ok(matches!(claim, LeaseClaim::Granted { .. }))
}

/// Lets other nodes send in a channel.
async fn release_lease(posts: &Outbox, channel: ChannelId) {
    let lease = DiscordLease::Channel(channel.get());
    let Some(shared) = posts.0.shared.as_ref().filter(|shared| shared.holds(lease)) else { return };
    if let Err(failure) = shared.release(lease).await {
        tracing::debug!(%channel, %failure, "cannot let other nodes send in a channel");
    }
}

/// The outcome of a try.
enum Step {
    /// The post was delivered or given up.
    Done,
    Empty,
    /// Retry after this wait.
    Wait(RetryAfter),
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
        tracing::error!(%channel, post = due.id, "dropping an unreadable post");
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
            tracing::warn!(%channel, %error, "a post is delayed");
            inner.ops.discord.set_post_block(channel.get(), Some(error.to_string()));
            Ok(Step::Wait(retry_after(&error)))
        }
        SendOutcome::NotFound => {
            *unsure = Some(PossibleDuplicate::No);
            // Do not post again at once: a notice that is too old by now is dropped.
            inner.table.mark_unsent(due.id).await?;
            Ok(Step::Wait(RetryAfter::Time(Duration::ZERO)))
        }
        SendOutcome::Forbidden(error) => {
            // An earlier try may have succeeded all the same.
            if known == PossibleDuplicate::No {
                inner.table.mark_unsent(due.id).await?;
            }
            let since = barred.get_or_insert_with(Instant::now).elapsed();
            if since < FORBIDDEN_TIMEOUT {
                tracing::warn!(%channel, %error, "a post is delayed until Chorus has permission to post here");
                inner.ops.discord.set_post_block(channel.get(), Some(error.to_string()));
                posts.report_lost_channel(channel, &error);
                let time = since.clamp(INITIAL_BACKOFF, MAX_FORBIDDEN_BACKOFF);
                // Another request that succeeds shows that the token is accepted again, but not that Chorus may post here.
                return Ok(Step::Wait(match error {
                    RestError::Unauthorized => RetryAfter::TimeOrRecovery(time),
                    _ => RetryAfter::Time(time),
                }));
            }
            tracing::warn!(%channel, %error, "dropping a rejected post");
            give_up_post(posts, &due).await
        }
        SendOutcome::Rejected(error) => {
            tracing::warn!(%channel, %error, "dropping a rejected post");
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
            tracing::warn!(%channel, waited, "a channel was deleted; dropping its posts");
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

/// Returns what a retry after `error` waits for: the time that Discord asked for, if it did.
fn retry_after(error: &RestError) -> RetryAfter {
    match error {
        RestError::RateLimited { after, .. } => RetryAfter::Time((*after).max(INITIAL_BACKOFF)),
        _ => RetryAfter::Recovery,
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
