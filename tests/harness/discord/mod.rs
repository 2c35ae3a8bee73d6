//! A fake Discord on loopback ports with the wire formats of the real one: REST and gateway, version 10. It accepts
//! what Discord accepts, refuses what Discord refuses, and records violations: what a correct application never does.
//!
//! ```text
//! let discord = FakeDiscord::start();
//! let guild = discord.create_guild("home");
//! let (mara, general) = (guild.add_member("mara", &["admin"], MANAGE_CHANNELS), guild.create_channel("general"));
//! Daemon::start_with(&home, &discord.config_toml()); // [discord] with the token and this address
//! let made = mara.run_slash_command(&general, "agent init", &[("name", "scribe")]).response();
//! guild.wait_for_channel("scribe").say(&mara, "hello");
//! discord.assert_no_violations(); // also called on drop
//! ```

mod actions;
mod api_error;
mod channel;
mod control;
mod faults;
mod gateway;
mod guild;
mod http;
mod interaction;
mod invocations;
mod messages;
mod objects;
pub mod permissions;
mod request_parse;
mod rest;
mod rules;
mod snowflake;
mod state;
mod user;
mod visible_message;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use channel::ChannelHandle;
pub use faults::Fault;
pub use guild::GuildHandle;
pub use http::RecordedRequest;
pub use interaction::Interaction;
pub use messages::File;
use state::{Shared, StartLimit, State};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
pub use user::UserHandle;
pub use visible_message::{Button, VisibleMessage};

/// The token of the application, in the form of Discord's tokens.
pub const TOKEN: &str = "MTI2MzQ1Njc4OTAxMjM0NTY3OA.GzPq2a.x8Wf0vT3mN5cR7bL1kJ9hD4sG6yE2uQ0iO8pA5";

/// The fake. Dropping it closes every connection, and panics if the application violated a rule.
#[derive(Debug)]
pub struct FakeDiscord {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    temp_dir: TempDir,
}

impl FakeDiscord {
    /// Starts the fake without guilds.
    ///
    /// # Panics
    /// If no port can be bound.
    #[must_use]
    pub fn start() -> Self {
        let temp_dir = tempfile::tempdir().expect("a folder for the token");
        std::fs::write(temp_dir.path().join("token"), format!("{TOKEN}\n")).expect("the token");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads");
        let bound = runtime.block_on(async {
            (
                TcpListener::bind("127.0.0.1:0").await.expect("a port"),
                TcpListener::bind("127.0.0.1:0").await.expect("another"),
            )
        });
        let (rest, gateway) = bound;
        let base = format!("http://{}", rest.local_addr().expect("its number"));
        let gateway_url = format!("ws://{}", gateway.local_addr().expect("its number"));
        let shared = Arc::new(Shared::new(initial_state(base, gateway_url)));
        runtime.spawn(http::accept_connections(rest, shared.clone()));
        runtime.spawn(gateway::serve::accept_connections(gateway, shared.clone()));
        Self { shared, runtime: Some(runtime), temp_dir }
    }

    /// Returns `[discord]` for config.toml, with the token in a file. Further keys of the table can be appended.
    #[must_use]
    pub fn config_toml(&self) -> String {
        format!("[discord]\ntoken_file = \"{}\"\napi_base = \"{}\"\n", self.token_file().display(), self.url())
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        self.shared.state().rest_url.clone()
    }

    /// `ws://127.0.0.1:PORT`.
    #[must_use]
    pub fn gateway_url(&self) -> String {
        self.shared.state().gateway_url.clone()
    }

    #[must_use]
    pub fn token_file(&self) -> std::path::PathBuf {
        self.temp_dir.path().join("token")
    }

    /// Returns the id of the application and of its user.
    #[must_use]
    pub fn application(&self) -> u64 {
        self.shared.state().application_id
    }

    /// Creates a guild and invites the application to it.
    pub fn create_guild(&self, name: &str) -> GuildHandle {
        GuildHandle::new(&self.shared, name)
    }

    /// Returns the application as a user, for messages that another client of it writes.
    #[must_use]
    pub fn own_user(&self) -> UserHandle {
        UserHandle::application(&self.shared)
    }

    /// Returns the direct message channel of the application and a person.
    #[must_use]
    pub fn direct_channel(&self, person: &UserHandle) -> ChannelHandle {
        ChannelHandle::direct(&self.shared, person)
    }

    /// Returns the recorded violations.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.state().violations.clone()
    }

    /// Returns the recorded violations and clears them, for tests that cause them on purpose.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().violations)
    }

    /// Panics with the recorded violations, if there are any.
    #[track_caller]
    pub fn assert_no_violations(&self) {
        let violations = self.take_violations();
        assert!(violations.is_empty(), "Discord would not have it:\n{}", violations.join("\n"));
    }
}

impl Drop for FakeDiscord {
    fn drop(&mut self) {
        self.shared.change(|state| state.closing = true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if !std::thread::panicking() {
            self.assert_no_violations();
        }
    }
}

fn initial_state(base: String, gateway: String) -> State {
    let mut state = State {
        snowflakes: snowflake::Snowflakes::default(),
        rest_url: base,
        gateway_url: gateway,
        token: TOKEN.to_owned(),
        application_id: 0,
        users: BTreeMap::new(),
        guilds: Vec::new(),
        channels: BTreeMap::new(),
        messages: BTreeMap::new(),
        deleted: Vec::new(),
        commands: BTreeMap::new(),
        registrations: 0,
        interactions: BTreeMap::new(),
        sessions: BTreeMap::new(),
        connections: BTreeMap::new(),
        is_refusing: false,
        message_content: true,
        heartbeat: Duration::from_millis(41_250),
        longest_heartbeat_gap: Duration::ZERO,
        interaction_timeout: Duration::from_secs(3),
        start_limit: StartLimit { total: 1000, remaining: 1000, reset_after: Duration::from_secs(14_400) },
        identify_interval: Duration::from_secs(5),
        before_ready: Vec::new(),
        identified_at: BTreeMap::new(),
        max_concurrency: 1,
        recommended_shards: 1,
        max_guilds: 2500,
        identifies: 0,
        identifies_refused: 0,
        resumes: 0,
        resumes_to_fail: 0,
        failed_resumes: Vec::new(),
        nonce_window: Duration::from_secs(300),
        buckets: rest::rate_limit::RateLimits::default(),
        faults: Vec::new(),
        open_gates: HashSet::new(),
        reached_gates: HashSet::new(),
        requests: Vec::new(),
        violations: Vec::new(),
        closing: false,
    };
    state.application_id = state.add_user("Chorus", true);
    state
}
