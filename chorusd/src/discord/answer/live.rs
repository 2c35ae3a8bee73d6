//! The message that shows an answer while it grows.

use std::sync::Arc;
use std::time::Duration;

use serenity::all::{ChannelId, MessageId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ear::Ear;
use super::heard::Heard;
use crate::discord::bridge::Bridge;
use crate::discord::posts::{Body, Button, Post, Style};
use crate::discord::rest::RestError;

/// How long a turn goes on before there is such a message: a short answer needs none.
const PATIENCE: Duration = Duration::from_millis(800);
/// Between two looks of it.
const EVERY: Duration = Duration::from_millis(1200);
/// However often it fails.
const SLOWEST: Duration = Duration::from_secs(60);

/// Where it is shown.
#[derive(Debug, Clone)]
pub struct Place {
    pub channel: ChannelId,
    /// The message that is answered.
    pub message: MessageId,
    /// What the post is about.
    pub about: String,
}

/// How long a turn works before that is shown as typing, how long Discord shows it, and when one that waits is looked at again.
const TYPES: Duration = Duration::from_millis(400);
const TYPED: Duration = Duration::from_secs(9);
const LOOK: Duration = Duration::from_secs(2);

/// Shows what `ear` hears until `end`, after which it changes nothing.
pub async fn show(bridge: Arc<Bridge>, place: Place, ear: Arc<Ear>, end: CancellationToken) {
    let typing = types(bridge.clone(), place.channel, ear.clone());
    tokio::select! {
        () = grow(bridge, place, ear, end) => {}
        () = typing => {}
    }
}

/// Shows that the model works, for as long as it does; whether that can be seen is of no importance.
async fn types(bridge: Arc<Bridge>, channel: ChannelId, ear: Arc<Ear>) {
    let mut wait = TYPES;
    loop {
        tokio::time::sleep(wait).await;
        wait = LOOK;
        if ear.so_far().works() {
            wait = TYPED;
            if let Err(error) = bridge.rest.typing(channel).await {
                tracing::debug!(%channel, %error, "that an answer is being written is not shown");
            }
        }
    }
}

async fn grow(bridge: Arc<Bridge>, place: Place, ear: Arc<Ear>, end: CancellationToken) {
    tokio::select! {
        () = end.cancelled() => return,
        () = ear.news() => {}
    }
    tokio::select! {
        () = end.cancelled() => return,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    let body = body(&bridge, ear.so_far());
    let post = Post {
        channel: place.channel,
        about: Some(place.about.clone()),
        body: body.clone(),
        reply_to: Some(place.message),
    };
    let posted = match bridge.posts.put_watched(post).await {
        Ok(posted) => posted,
        Err(failure) => {
            tracing::warn!(%failure, "an answer is not shown while it grows");
            return;
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        message = posted => {
            if let Ok(message) = message {
                go_on(&bridge, (place.channel, message), &ear, (body, end)).await;
            }
        }
    }
}

/// Changes the message as more is heard.
async fn go_on(
    bridge: &Bridge,
    (channel, message): (ChannelId, MessageId),
    ear: &Ear,
    (mut shown, end): (Body, CancellationToken),
) {
    let mut pause = EVERY;
    let mut next = Instant::now() + EVERY;
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            () = sleep_until(next) => {}
        }
        let body = body(bridge, ear.so_far());
        if body == shown {
            tokio::select! {
                () = end.cancelled() => return,
                () = ear.news() => continue,
            }
        }
        let components = body.components();
        // Waited for even where it ends meanwhile: what comes last must come last.
        match bridge.rest.edit_message(channel, message, body.looks(&components)).await {
            Ok(()) => (shown, pause) = (body, EVERY),
            Err(RestError::Limited { after, .. }) => pause = after.max(pause.saturating_mul(2)).max(EVERY),
            Err(error) if error.may_pass() => pause = (pause * 2).min(SLOWEST),
            Err(error) => {
                tracing::info!(%channel, %error, "an answer is not shown while it grows");
                return;
            }
        }
        next = Instant::now().checked_add(pause).unwrap_or_else(|| Instant::now() + SLOWEST);
    }
}

fn body(bridge: &Bridge, mut heard: Heard) -> Body {
    // An agent may be told to keep secrets; a channel is told none.
    let redactor = bridge.ops.models.redactor();
    heard.text = redactor.cut_text(heard.text);
    let stop = heard.turn.map(|turn| Button {
        custom_id: format!("stop:{turn}"),
        label: "Stop".into(),
        style: Style::Secondary,
        disabled: false,
        seen_whole: false,
    });
    Body { content: redactor.text(&heard.shown()).into_owned(), buttons: stop.into_iter().collect(), file: None }
}
