//! What every part of the front door shares.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::rest::Rest;
use crate::config::Secret;
use crate::ops::Ops;
use crate::ops::discord::State;

/// One application of Discord, as long as the daemon runs.
#[derive(Debug)]
pub struct Bridge {
    pub ops: Arc<Ops>,
    pub rest: Arc<Rest>,
    pub token: Secret,
    pub stop: CancellationToken,
    /// Everything that runs for it, so that a stop can wait.
    pub tasks: TaskTracker,
}

impl Bridge {
    /// `None`: there is no token, or it cannot be used, which the state says.
    pub async fn new(ops: Arc<Ops>, stop: CancellationToken, tasks: TaskTracker) -> Option<Self> {
        let config = ops.config.discord.clone();
        let made = tokio::task::spawn_blocking(move || {
            let Some(token) = config.read_token()? else { return Ok(None) };
            let rest = Rest::new(&config, &token).map_err(|e| e.to_string())?;
            Ok::<_, String>(Some((token, rest)))
        });
        match made.await.unwrap_or_else(|e| Err(e.to_string())) {
            Ok(None) => None,
            Ok(Some((token, rest))) => Some(Self { ops, rest: Arc::new(rest), token, stop, tasks }),
            Err(why) => {
                tracing::warn!(why, "Discord is off");
                let hint = "mend [discord] in config.toml or the environment, then `chorusctl daemon restart`".into();
                ops.discord.set_state(State::Stopped { why, hint });
                None
            }
        }
    }
}
