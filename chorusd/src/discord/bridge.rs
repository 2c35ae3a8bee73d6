//! What every part of the front door shares.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::Running;
use super::commands::Slash;
use super::guilds::Guilds;
use super::inbound::Inbound;
use super::posts::Posts;
use super::rest::Rest;
use super::rooms::Rooms;
use crate::config::Secret;
use crate::ops::Ops;
use crate::ops::discord::State;

/// One application of Discord, as long as the daemon runs.
#[derive(Debug)]
pub struct Bridge {
    pub ops: Arc<Ops>,
    pub rest: Arc<Rest>,
    pub rooms: Rooms,
    pub token: Secret,
    pub stop: CancellationToken,
    /// Everything that runs for it, so that a stop can wait.
    pub tasks: TaskTracker,
    /// How roles are called.
    pub guilds: Guilds,
    pub slash: Slash,
    pub inbound: Inbound,
    /// What is on its way into channels.
    pub posts: Posts,
    /// Turns that channels asked for.
    pub running: Arc<Running>,
}

impl Bridge {
    /// `None`: there is no token, or it cannot be used, which the state says.
    pub async fn new(ops: Arc<Ops>, stop: CancellationToken, tasks: TaskTracker) -> Option<Self> {
        let config = ops.config.discord.clone();
        let stopping = stop.clone();
        let made = tokio::task::spawn_blocking(move || {
            let Some(token) = config.read_token()? else { return Ok(None) };
            let rest = Rest::new(&config, &token, stopping).map_err(|e| e.to_string())?;
            Ok::<_, String>(Some((token, rest, Inbound::new(&config)?)))
        });
        match made.await.unwrap_or_else(|e| Err(e.to_string())) {
            Ok(None) => None,
            Ok(Some((token, rest, inbound))) => {
                let rooms = Rooms::new(ops.directory.clone(), ops.config.discord.guilds.clone());
                let (guilds, slash) = (Guilds::default(), Slash::default());
                let rest = Arc::new(rest);
                let posts = Posts::new(ops.clone(), rest.clone(), stop.clone(), tasks.clone());
                let running = Arc::default();
                Some(Self { ops, rest, rooms, token, stop, tasks, guilds, slash, inbound, posts, running })
            }
            Err(why) => {
                tracing::warn!(why, "Discord is off");
                let hint = "mend [discord] in config.toml or the environment, then `chorusctl daemon restart`".into();
                ops.discord.set_state(State::Stopped { why, hint });
                None
            }
        }
    }
}

impl Bridge {
    /// `text` without secrets.
    #[must_use]
    pub fn clean(&self, text: &str) -> String {
        self.ops.models.redactor().text(text).into_owned()
    }
}
