//! A home for each test, in an isolated environment.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use tempfile::TempDir;

use crate::postgres::Database;
use crate::process;
use crate::skip;
use crate::wait::{DEADLINE, wait_until};

/// The binaries under test.
#[derive(Debug, Clone, Copy)]
pub struct Bins {
    pub chorusd: &'static str,
    pub chorusctl: &'static str,
}

/// An older daemon to be measured in place of the one of this tree, for figures from before a change.
static OTHER_CHORUSD: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CHORUS_OTHER_CHORUSD").ok());

/// True if the daemons that tests start as processes keep everything in PostgreSQL.
static STORE_IS_POSTGRES: LazyLock<bool> = LazyLock::new(|| match std::env::var("CHORUS_TEST_STORE") {
    Ok(kind) if kind == "postgres" && cfg!(feature = "cluster") => true,
    Ok(kind) => panic!("CHORUS_TEST_STORE is `postgres`, in a build with the feature `cluster`, or not set: {kind:?}"),
    Err(_) => false,
});

/// Returns the path of a program. With a `PATH` of its own, a command that has only a name is started by `fork`, which copies the page
/// tables of this large process; one with a path is not.
pub(crate) fn find_in_path(program: &str) -> PathBuf {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let named = || {
        let dirs = std::env::var_os("PATH")?;
        std::env::split_paths(&dirs).map(|dir| dir.join(program)).find(is_program)
    };
    let is_path = program.contains('/');
    (!is_path).then(named).flatten().unwrap_or_else(|| program.into())
}

/// Creates an empty home for the binaries of the package. A macro, because only the package's tests and benches know
/// their paths.
#[macro_export]
macro_rules! home {
    () => {
        $crate::Home::new($crate::Bins {
            chorusd: env!("CARGO_BIN_EXE_chorusd-e2e"),
            chorusctl: env!("CARGO_BIN_EXE_chorusctl-e2e"),
        })
    };
}

/// A temporary directory with a `CHORUS_HOME` and a user's `HOME`. Dropping it kills a daemon that still runs there.
#[derive(Debug)]
pub struct Home {
    pub bins: Bins,
    /// `CHORUS_HOME`.
    pub path: PathBuf,
    /// `HOME`, also the working directory of commands.
    pub user_home: PathBuf,
    temp: TempDir,
    has_index: bool,
    /// URL of a database of this home alone, with `CHORUS_TEST_STORE=postgres`.
    database: OnceLock<String>,
}

impl Home {
    /// Creates a temporary directory. `CHORUS_HOME` does not exist yet; the daemon creates it.
    #[must_use]
    pub fn new(bins: Bins) -> Self {
        process::reset_signals_of_children();
        let bins = Bins { chorusd: OTHER_CHORUSD.as_deref().unwrap_or(bins.chorusd), ..bins };
        let temp = tempfile::Builder::new().prefix("chorus").tempdir().expect("a temporary directory");
        let (path, user_home) = (temp.path().join("home"), temp.path().join("user"));
        fs::create_dir(&user_home).expect("a user directory");
        Self { bins, path, user_home, temp, has_index: true, database: OnceLock::new() }
    }

    /// Turns the search index off, for tests that count what the daemon does or takes.
    #[must_use]
    pub fn without_index(mut self) -> Self {
        self.has_index = false;
        self
    }

    /// Returns the temporary directory around both homes, for files that do not belong to Chorus.
    #[must_use]
    pub fn temp_dir(&self) -> &Path {
        self.temp.path()
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join("run/chorusd.sock")
    }

    #[must_use]
    pub fn agent_dir(&self, name: &str) -> PathBuf {
        self.path.join("agents").join(name)
    }

    #[must_use]
    pub fn sessions_dir(&self, agent: &str) -> PathBuf {
        self.agent_dir(agent).join("sessions")
    }

    /// Creates `CHORUS_HOME` as the daemon would.
    pub fn create(&self) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path).expect("CHORUS_HOME");
    }

    /// Writes config.toml.
    pub fn write_config(&self, config: &str) {
        self.create();
        let file = self.path.join("config.toml");
        fs::write(&file, config).expect("config.toml");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its mode");
    }

    /// The URL of the database of this home, with `CHORUS_TEST_STORE=postgres`.
    ///
    /// # Panics
    /// If the database cannot be created.
    #[must_use]
    pub fn database_url(&self) -> Option<&str> {
        let create = || Database::create_blocking().expect("a database");
        STORE_IS_POSTGRES.then(|| self.database.get_or_init(create).as_str())
    }

    /// Returns a command for `program` in the isolated environment; only PATH is inherited.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(find_in_path(program));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.user_home)
            .env("CHORUS_HOME", &self.path)
            .env("CHORUSD", self.bins.chorusd)
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("PAGER", "cat")
            // No TLS connections are made, and loading the system's certificates took a fifth of the tests' processor
            // time.
            .env("SSL_CERT_FILE", concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/ca.pem"))
            .env_remove("SSL_CERT_DIR")
            .current_dir(&self.user_home);
        if !self.has_index {
            command.env("CHORUS_INDEX", "false");
        }
        if *STORE_IS_POSTGRES {
            let url = self.database.get_or_init(|| Database::create_blocking().expect("a database"));
            command
                .env("CHORUS_STORE_KIND", "postgres")
                .env("CHORUS_STORE_URL_ENV", "CHORUS_TEST_DATABASE")
                .env("CHORUS_TEST_DATABASE", url)
                .env("CHORUS_CLUSTER_NODE", "test");
        }
        command
    }

    /// Returns a command for `chorusd` without the capabilities that bypass file permissions, even if the tests run as
    /// root. Skips the test and returns `None` if they cannot be dropped.
    #[must_use]
    pub fn unprivileged_daemon(&self) -> Option<Command> {
        if !process::is_root() {
            return Some(self.command(self.bins.chorusd));
        }
        let without = |program: &str| {
            let mut command = self.command("setpriv");
            let powers = "-dac_override,-dac_read_search";
            command.args(["--inh-caps", powers, "--bounding-set", powers, "--", program]);
            command
        };
        if without("true").output().is_ok_and(|done| done.status.success()) {
            return Some(without(self.bins.chorusd));
        }
        skip("root cannot give up its powers here");
        None
    }

    /// Returns the pid of the daemon that answers on the socket.
    #[must_use]
    pub fn running_pid(&self) -> Option<u32> {
        let mut client = Client::connect(&self.socket()).ok()?;
        client.set_timeout(Some(DEADLINE)).ok()?;
        client.call::<Hello>(&HelloParams::default()).ok().map(|hello| hello.pid)
    }
}

impl Drop for Home {
    /// Kills a daemon that a command started, because nothing else owns it.
    fn drop(&mut self) {
        // A daemon inside this process belongs to its test.
        if let Some(pid) = self.running_pid().filter(|pid| *pid != std::process::id()) {
            process::kill(pid);
            if !std::thread::panicking() {
                wait_until("the last daemon to end", DEADLINE, || (!process::is_running(pid)).then_some(()));
            }
        }
    }
}
