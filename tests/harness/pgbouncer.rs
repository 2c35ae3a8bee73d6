//! A real pgbouncer in front of a PostgreSQL server.

use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::process::{Child, Command, Stdio};

use crate::free_port::free_port;
use crate::postgres::Result;
use crate::{DEADLINE, wait_until};

/// When a server connection goes back to the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// After each transaction.
    Transaction,
    /// When the client disconnects.
    Session,
}

impl PoolMode {
    /// Reads the name that pgbouncer has for the mode.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Transaction, Self::Session].into_iter().find(|mode| mode.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Session => "session",
        }
    }
}

/// A running pgbouncer, which ends when it is dropped, or with this process.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    /// A shell that stops it once its standard input is closed.
    _janitor: Child,
}

impl PgBouncer {
    /// Starts one in front of a port of 127.0.0.1; `None` if it is not installed. `user` is the name and number of the user
    /// that runs it if root runs the tests, because it refuses root.
    pub fn start(server_port: u16, mode: PoolMode, user: Option<(&str, u32)>) -> Result<Option<Self>> {
        const PROGRAM: &str = "/usr/sbin/pgbouncer";
        if !std::path::Path::new(PROGRAM).exists() {
            return Ok(None);
        }
        let dir = tempfile::Builder::new().prefix("chorus-pgbouncer-").tempdir_in("/tmp")?.keep();
        let port = free_port();
        let shown = dir.display();
        let mode = mode.name();
        let config = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {shown}/users\npool_mode = {mode}\n\
             default_pool_size = 40\nmax_client_conn = 1000\nserver_login_retry = 1\n"
        );
        std::fs::write(dir.join("config"), config)?;
        std::fs::write(dir.join("users"), "\"postgres\" \"\"\n\"ordinary\" \"\"\n")?;
        if let Some((_, id)) = user {
            for path in [dir.join("config"), dir.join("users"), dir.clone()] {
                chown(path, Some(id), None)?;
            }
        }
        let mut command = Command::new(if user.is_some() { "runuser" } else { "sh" });
        if let Some((name, _)) = user {
            command.args(["-u", name, "--", "sh"]);
        }
        let script = format!("{PROGRAM} -q {shown}/config 2>{shown}/log & read -r _; kill -9 $!; rm -rf {shown}");
        command.args(["-c", &script]).current_dir("/").stdin(Stdio::piped());
        let janitor = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        wait_until("pgbouncer", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
        Ok(Some(Self { port, _janitor: janitor }))
    }

    /// The port on 127.0.0.1 that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}
