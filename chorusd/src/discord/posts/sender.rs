//! The sender of one channel: one post at a time, each until it is there or never will be.

use std::time::Duration;

use jiff::Timestamp;
use serenity::all::ChannelId;
use tokio::time::Instant;

use super::Posts;
use super::post::{Body, Kept};
use super::send::{Outcome, Unsure, send};
use crate::discord::rest::RestError;
use crate::failure::Result;
use crate::ops::discord::outbox::{self, Due};

/// Before what came to nothing is tried again; twice as long each time.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// The same for a channel that Chorus may not post in: other rights are told.
const LONGEST_BARRED: Duration = Duration::from_secs(300);
/// How long a channel that Chorus may not post in is waited for.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Stands where Discord takes no text, or not this one.
const REFUSED: &str = "-# Discord does not take what belongs here. At the terminal `chorusctl context show` has it, or `chorusctl approvals`.";

/// Sends what is to be posted in `channel` until nothing is left, or the daemon stops and it would have to wait.
pub async fn run(posts: Posts, channel: ChannelId) {
    let mut pause = FIRST;
    // Since when the post that is next may be there without our knowing.
    let mut unsure = None;
    // Since when Chorus may not post here.
    let mut barred = None;
    loop {
        let wait = match one(&posts, channel, (&mut unsure, &mut barred)).await {
            Ok(Step::Done) => {
                posts.0.ops.discord.post_waits(channel.get(), None);
                (pause, unsure, barred) = (FIRST, None, None);
                continue;
            }
            Ok(Step::Nothing) if posts.more(channel) => continue,
            Ok(Step::Nothing) => return,
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
            pause = (pause * 2).min(LONGEST);
            wait
        });
        tokio::select! {
            () = posts.0.stop.cancelled() => break,
            () = posts.0.rights.notified(), if barred.is_some() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    posts.0.sending.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&channel.get());
}

/// What came of one try.
enum Step {
    /// It is there, or never will be.
    Done,
    Nothing,
    /// It is tried again then; `None`: as often as others.
    Wait(Option<Duration>),
}

async fn one(
    posts: &Posts,
    channel: ChannelId,
    (unsure, barred): (&mut Option<Unsure>, &mut Option<Instant>),
) -> Result<Step> {
    let inner = &posts.0;
    let now = inner.ops.clock.now();
    let Some(due) = outbox::take(&inner.ops, channel.get(), now).await? else { return Ok(Step::Nothing) };
    let Ok(kept) = serde_json::from_str::<Kept>(&due.body) else {
        tracing::error!(%channel, post = due.id, "a post cannot be read, and is dropped");
        return dropped(posts, &due).await;
    };
    // One that was on its way before the daemon was started may have arrived.
    let known = *unsure.get_or_insert_with(|| due.tried_at.map_or(Unsure::No, Unsure::Since));
    match send(posts, channel, &due, &kept, known).await {
        Outcome::There(message) => {
            outbox::posted(&inner.ops, due.id, message.get()).await?;
            posts.tell(&due.nonce, Some(message));
            Ok(Step::Done)
        }
        Outcome::Moot => dropped(posts, &due).await,
        Outcome::Later { error, arrived } => {
            *unsure = Some(if arrived { known.or(now) } else { known });
            if *unsure == Some(Unsure::No) {
                outbox::untake(&inner.ops, due.id).await?;
            }
            tracing::warn!(%channel, %error, "a post has to wait");
            inner.ops.discord.post_waits(channel.get(), Some(error.to_string()));
            Ok(Step::Wait(after(&error)))
        }
        Outcome::NotThere => {
            *unsure = Some(Unsure::No);
            // A notice that is too old by now is dropped and not posted again.
            outbox::untake(&inner.ops, due.id).await?;
            Ok(Step::Wait(Some(Duration::ZERO)))
        }
        Outcome::Barred(error) => {
            // An earlier try may have arrived all the same.
            if known == Unsure::No {
                outbox::untake(&inner.ops, due.id).await?;
            }
            let since = barred.get_or_insert_with(Instant::now).elapsed();
            if since < PATIENCE {
                tracing::warn!(%channel, %error, "a post has to wait until Chorus may post here");
                inner.ops.discord.post_waits(channel.get(), Some(error.to_string()));
                posts.lose_if_lost(channel, &error);
                return Ok(Step::Wait(Some(since.clamp(FIRST, LONGEST_BARRED))));
            }
            tracing::warn!(%channel, %error, "a post is given up");
            dropped(posts, &due).await
        }
        Outcome::Never(error) => {
            tracing::warn!(%channel, %error, "a post is given up");
            // Somebody waits for it: that it is not there is said in its place.
            let instead = Kept { body: Body::text(REFUSED), ..kept };
            match send(posts, channel, &due, &instead, Unsure::No).await {
                Outcome::There(message) => {
                    outbox::posted(&inner.ops, due.id, message.get()).await?;
                    posts.tell(&due.nonce, Some(message));
                    Ok(Step::Done)
                }
                _ => dropped(posts, &due).await,
            }
        }
        Outcome::NoChannel(error) => {
            let waited = outbox::give_up_channel(&inner.ops, channel.get()).await?;
            tracing::warn!(%channel, waited, "a channel is gone, and what was to be posted in it dropped");
            posts.tell(&due.nonce, None);
            posts.lose_if_lost(channel, &error);
            Ok(Step::Done)
        }
    }
}

async fn dropped(posts: &Posts, due: &Due) -> Result<Step> {
    outbox::give_up(&posts.0.ops, due.id).await?;
    posts.tell(&due.nonce, None);
    Ok(Step::Done)
}

/// When Discord said that it may be tried again.
fn after(error: &RestError) -> Option<Duration> {
    match error {
        RestError::Limited { after, .. } => Some((*after).max(FIRST)),
        _ => None,
    }
}

impl Unsure {
    fn or(self, now: Timestamp) -> Self {
        match self {
            Self::No => Self::Since(now),
            since => since,
        }
    }
}
