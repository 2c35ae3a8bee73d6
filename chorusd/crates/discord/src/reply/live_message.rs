//! The live message, which shows a reply while the turn runs.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_redact::Redactor;
use serenity::all::{ChannelId, MessageId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::turn_listener::ReplyListener;
use crate::app::DiscordApp;
use crate::outbox::{Button, MessageBody, Post, Style};
use crate::rest::{RestClient, RestError};

/// How long a turn runs before it gets a live message: a short reply needs none.
const SHOW_DELAY: Duration = Duration::from_millis(800);
/// Time between two edits.
const EDIT_INTERVAL: Duration = Duration::from_millis(1200);
/// Longest time between two edits after failures.
const MAX_EDIT_INTERVAL: Duration = Duration::from_secs(60);

/// Characters of a name on the Stop button.
const MAX_OWNER_CHARS: usize = 60;

/// Where the reply goes.
#[derive(Debug, Clone)]
pub(super) struct ReplyTarget {
    pub channel: ChannelId,
    /// The message that is replied to.
    pub message: MessageId,
    /// The key of the post in the outbox.
    pub about: String,
}

/// `TYPING_DELAY`: how long a turn runs before the typing indicator is shown. `TYPING_INTERVAL`: how often the
/// indicator is renewed, since Discord shows it for ten seconds. `TYPING_POLL_INTERVAL`: how often a turn that waits is
/// checked.
const TYPING_DELAY: Duration = Duration::from_millis(400);
const TYPING_INTERVAL: Duration = Duration::from_secs(9);
const TYPING_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Shows the progress that `listener` collects until `end` is cancelled; after that nothing is edited.
pub(super) async fn show_progress(
    app: Arc<DiscordApp>,
    place: ReplyTarget,
    listener: Arc<ReplyListener>,
    end: CancellationToken,
) {
    let typing = keep_typing(app.rest.clone(), place.channel, listener.clone());
    tokio::select! {
        () = post_and_edit(app, place, listener, end) => {}
        () = typing => {}
    }
}

/// Shows the typing indicator while the turn is working. Failures are ignored.
async fn keep_typing(rest: Arc<RestClient>, channel: ChannelId, listener: Arc<ReplyListener>) {
    let mut wait = TYPING_DELAY;
    loop {
        tokio::time::sleep(wait).await;
        wait = TYPING_POLL_INTERVAL;
        if listener.progress().is_working() {
            wait = TYPING_INTERVAL;
            if let Err(error) = rest.trigger_typing(channel).await {
                tracing::debug!(%channel, %error, "cannot show the typing indicator");
            }
        }
    }
}

async fn post_and_edit(app: Arc<DiscordApp>, place: ReplyTarget, listener: Arc<ReplyListener>, end: CancellationToken) {
    tokio::select! {
        () = end.cancelled() => return,
        () = listener.wait_for_change() => {}
    }
    tokio::select! {
        () = end.cancelled() => return,
        () = tokio::time::sleep(SHOW_DELAY) => {}
    }
    let body = progress_body(&app.ops.redactor, &listener);
    let post = Post {
        channel: place.channel,
        about: Some(place.about.clone()),
        body: body.clone(),
        reply_to: Some(place.message),
    };
    let posted = match app.outbox.enqueue_watched(post).await {
        Ok(posted) => posted,
        Err(failure) => {
            tracing::warn!(%failure, "cannot show the progress of a reply");
            return;
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        message = posted => {
            if let Ok(message) = message {
                edit_until_end(&app.rest, &app.ops.redactor, (place.channel, message), &listener, (body, end)).await;
            }
        }
    }
}

/// Edits the message as the turn progresses.
async fn edit_until_end(
    rest: &RestClient,
    redactor: &Redactor,
    (channel, message): (ChannelId, MessageId),
    listener: &ReplyListener,
    (mut shown, end): (MessageBody, CancellationToken),
) {
    let mut backoff = Backoff::new(EDIT_INTERVAL * 2, MAX_EDIT_INTERVAL);
    let mut next = Instant::now() + EDIT_INTERVAL;
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            () = sleep_until(next) => {}
        }
        let body = progress_body(redactor, listener);
        if body == shown {
            tokio::select! {
                () = end.cancelled() => return,
                () = listener.wait_for_change() => continue,
            }
        }
        let components = body.components();
        // Do not cancel a request that was sent: its edit could arrive after the final message.
        let pause = match rest.edit_message(channel, message, body.as_content(&components)).await {
            Ok(()) => {
                backoff.reset();
                shown = body;
                EDIT_INTERVAL
            }
            Err(RestError::RateLimited { after, .. }) => after.max(backoff.next_wait()),
            Err(error) if error.is_transient() => backoff.next_wait(),
            Err(error) => {
                tracing::info!(%channel, %error, "cannot show the progress of a reply");
                return;
            }
        };
        next = Instant::now().checked_add(pause).unwrap_or_else(|| Instant::now() + MAX_EDIT_INTERVAL);
    }
}

fn progress_body(redactor: &Redactor, listener: &ReplyListener) -> MessageBody {
    let mut heard = listener.progress();
    // The agent may be allowed to see secrets; a channel never is.
    heard.text = redactor.redact_truncated(heard.text);
    let stop = heard.turn.map(|turn| Button {
        custom_id: format!("stop:{turn}"),
        label: stop_label(redactor, listener.owner_name()),
        style: Style::Secondary,
        disabled: false,
        seen_whole: false,
    });
    MessageBody {
        content: redactor.redact_text(&heard.live_text()).into_owned(),
        buttons: stop.into_iter().collect(),
        file: None,
    }
}

/// Labels the button with the person whose turn it stops, so that nobody takes it for theirs.
fn stop_label(redactor: &Redactor, owner: Option<&str>) -> String {
    let Some(name) = owner else { return "Stop".to_owned() };
    let name: String = redactor.redact_text(name).split_whitespace().collect::<Vec<_>>().join(" ");
    format!("Stop ({})", name.chars().take(MAX_OWNER_CHARS).collect::<String>())
}
