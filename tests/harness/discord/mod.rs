//! A Discord on loopback ports that speaks the real one's wire formats: REST and gateway, version 10. It takes what Discord takes,
//! refuses what Discord refuses, and writes down what a correct application never does.
//!
//! ```text
//! let discord = Discord::start();
//! let guild = discord.guild("home");
//! let (mara, room) = (guild.member("mara", &["admin"], MANAGE_CHANNELS), guild.channel("general"));
//! Daemon::start_with(&home, &discord.config_toml()); // [discord] with the token and this address
//! let made = mara.slash(&room, "agent init", &[("name", "scribe")]).answer();
//! guild.room("scribe").say(&mara, "hello");
//! discord.check(); // so does its end
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

/// The token of the application: of the form that Discord's have.
pub const TOKEN: &str = "MTI2MzQ1Njc4OTAxMjM0NTY3OA.GzPq2a.x8Wf0vT3mN5cR7bL1kJ9hD4sG6yE2uQ0iO8pA5";

/// The server. Dropping it closes every connection, and panics where the application did what it must not.
#[derive(Debug)]
pub struct FakeDiscord {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    temp_dir: TempDir,
}

impl FakeDiscord {
    /// Starts one, without any servers yet.
    ///
    /// # Panics
    /// Where there are no ports.
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

    /// `[discord]` for config.toml, with the token in a file. Further keys of the table go behind it.
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

    /// The number of the application, which is its user's too.
    #[must_use]
    pub fn application(&self) -> u64 {
        self.shared.state().application_id
    }

    /// A server that the application was invited to.
    pub fn create_guild(&self, name: &str) -> GuildHandle {
        GuildHandle::new(&self.shared, name)
    }

    /// The application as somebody who writes: what it says through another client of its own.
    #[must_use]
    pub fn own_user(&self) -> UserHandle {
        UserHandle::application(&self.shared)
    }

    /// The conversation of the application with one person.
    #[must_use]
    pub fn direct_channel(&self, person: &UserHandle) -> ChannelHandle {
        ChannelHandle::direct(&self.shared, person)
    }

    /// What the application did that it must not, so far.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.state().violations.clone()
    }

    /// The same, and forgets it: for whoever brought it about on purpose.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().violations)
    }

    /// Panics with what the application did that it must not.
    ///
    /// # Panics
    /// See above.
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
        interaction_timeout: Duration::from_secs(3),
        start_limit: StartLimit { total: 1000, remaining: 1000, reset_after: Duration::from_secs(14_400) },
        identify_interval: Duration::from_secs(5),
        before_ready: Vec::new(),
        identified_at: None,
        identifies: 0,
        identifies_refused: 0,
        resumes: 0,
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
