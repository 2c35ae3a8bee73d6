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

mod calls;
mod deeds;
mod faults;
mod form;
mod gateway;
mod http;
mod interaction;
mod messages;
pub mod permissions;
mod person;
mod refusal;
mod rest;
mod room;
mod rules;
mod script;
mod server;
mod shown;
mod snowflake;
mod state;
mod world;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use faults::Fault;
pub use http::Recorded;
pub use interaction::Interaction;
pub use messages::File;
pub use person::Person;
pub use room::Room;
pub use server::Server;
pub use shown::{Button, Shown};
use state::{Shared, StartLimit, State};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The token of the application: of the form that Discord's have.
pub const TOKEN: &str = "MTI2MzQ1Njc4OTAxMjM0NTY3OA.GzPq2a.x8Wf0vT3mN5cR7bL1kJ9hD4sG6yE2uQ0iO8pA5";

/// The server. Dropping it closes every connection, and panics where the application did what it must not.
#[derive(Debug)]
pub struct Discord {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    folder: TempDir,
}

impl Discord {
    /// Starts one, without any servers yet.
    ///
    /// # Panics
    /// Where there are no ports.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the token");
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).expect("the token");
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
        let shared = Arc::new(Shared::new(empty(base, gateway_url)));
        runtime.spawn(http::accept(rest, shared.clone()));
        runtime.spawn(gateway::serve::accept(gateway, shared.clone()));
        Self { shared, runtime: Some(runtime), folder }
    }

    /// `[discord]` for config.toml, with the token in a file. Further keys of the table go behind it.
    #[must_use]
    pub fn config_toml(&self) -> String {
        format!("[discord]\ntoken_file = \"{}\"\napi_base = \"{}\"\n", self.token_file().display(), self.url())
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        self.shared.state().base.clone()
    }

    /// `ws://127.0.0.1:PORT`.
    #[must_use]
    pub fn gateway_url(&self) -> String {
        self.shared.state().gateway.clone()
    }

    #[must_use]
    pub fn token_file(&self) -> std::path::PathBuf {
        self.folder.path().join("token")
    }

    /// The number of the application, which is its user's too.
    #[must_use]
    pub fn application(&self) -> u64 {
        self.shared.state().app
    }

    /// A server that the application was invited to.
    pub fn guild(&self, name: &str) -> Server {
        Server::new(&self.shared, name)
    }

    /// The application as somebody who writes: what it says through another client of its own.
    #[must_use]
    pub fn itself(&self) -> Person {
        Person::itself(&self.shared)
    }

    /// The conversation of the application with one person.
    #[must_use]
    pub fn direct(&self, person: &Person) -> Room {
        Room::direct(&self.shared, person)
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
    pub fn check(&self) {
        let violations = self.take_violations();
        assert!(violations.is_empty(), "Discord would not have it:\n{}", violations.join("\n"));
    }
}

impl Drop for Discord {
    fn drop(&mut self) {
        self.shared.change(|state| state.closing = true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if !std::thread::panicking() {
            self.check();
        }
    }
}

fn empty(base: String, gateway: String) -> State {
    let mut state = State {
        flakes: snowflake::Snowflakes::default(),
        base,
        gateway,
        token: TOKEN.to_owned(),
        app: 0,
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
        refusing: false,
        message_content: true,
        heartbeat: Duration::from_millis(41_250),
        patience: Duration::from_secs(3),
        start_limit: StartLimit { total: 1000, remaining: 1000, reset_after: Duration::from_secs(14_400) },
        identify_every: Duration::from_secs(5),
        before_ready: Vec::new(),
        identified_at: None,
        identifies: 0,
        identifies_refused: 0,
        resumes: 0,
        nonce_window: Duration::from_secs(300),
        buckets: rest::limits::Buckets::default(),
        faults: Vec::new(),
        open: HashSet::new(),
        reached: HashSet::new(),
        requests: Vec::new(),
        violations: Vec::new(),
        closing: false,
    };
    state.app = state.add_user("Chorus", true);
    state
}
