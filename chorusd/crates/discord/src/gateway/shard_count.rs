//! The number of shards: configured, or the one that Discord recommends.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_config::discord::{MAX_SHARDS, Shards};
use chorus_engine::ops::discord::ConnectionState;
use tokio::time::sleep;

use super::close_codes::{INVALID_TOKEN, PermanentClose};
use crate::app::DiscordApp;
use crate::channels;
use crate::rest::RestError;

/// Waits between two tries to ask Discord.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Sets the number of shards, and learns which servers are allowed if several shards would each name some of them. `used` is
/// the number that other nodes have. Returns false if the daemon stops before, or Discord refuses the token.
pub(crate) async fn prepare_shards(app: &Arc<DiscordApp>, used: Option<u32>) -> bool {
    let configured = app.ops.config.discord.shards;
    let count = match (configured, used) {
        (Shards::Count(count), _) | (Shards::Auto, Some(count)) => Some(count),
        (Shards::Auto, None) => recommended(app).await,
    };
    let Some(count) = count else { return false };
    app.shards.set_count(count);
    if count > 1 && !learn_guilds(app).await {
        return false;
    }
    app.ops.discord.begin_shards(count);
    tracing::debug!(count, "shards of the gateway");
    true
}

/// Asks Discord for the number that it recommends, until it answers.
async fn recommended(app: &DiscordApp) -> Option<u32> {
    retry(app, || async { Ok(app.rest.gateway_info().await?.shards.clamp(1, MAX_SHARDS)) }).await
}

async fn learn_guilds(app: &DiscordApp) -> bool {
    retry(app, || channels::learn_guilds(app)).await.is_some()
}

/// Tries until it succeeds. Returns `None` if the daemon stops before, or Discord refuses the token.
async fn retry<T, F: Future<Output = Result<T, RestError>>>(app: &DiscordApp, work: impl Fn() -> F) -> Option<T> {
    let mut backoff = RETRY_BACKOFF;
    loop {
        match work().await {
            Ok(done) => return Some(done),
            Err(RestError::Unauthorized) => {
                let PermanentClose { why, hint } = INVALID_TOKEN;
                tracing::error!(why, hint, "Discord is off");
                app.ops.discord.set_state(ConnectionState::Stopped { why: why.into(), hint: hint.into() });
                return None;
            }
            Err(error) => tracing::warn!(%error, "cannot prepare the shards; retrying"),
        }
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = app.stop.cancelled() => return None,
        }
    }
}
