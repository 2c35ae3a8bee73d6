//! A real PostgreSQL server in a temporary directory, one for the whole process, and a database in it for each test.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_postgres::{Client, NoTls};

use crate::free_port::free_port;
use crate::pgbouncer::{PgBouncer, PoolMode};
use crate::skip::skip;

/// Any error of the server or of a client.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A result with any error of the server or of a client.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// User that owns the server if root runs the tests, because PostgreSQL refuses root.
const SERVER_USER: &str = "postgres";

/// A running server.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    bin: PathBuf,
    port: u16,
    /// The user that runs it, if that is not the user of the tests.
    user: Option<&'static str>,
    /// Stops the server and deletes its directory once the standard input that this process holds is closed, however
    /// this process ends.
    _janitor: Option<Child>,
    /// Poolers in front of it, one for each mode, started when they are needed.
    poolers: [OnceLock<Result<Option<PgBouncer>, String>>; 2],
}

/// A database that only one test uses.
#[derive(Debug)]
pub struct Database {
    server: Arc<Server>,
    name: String,
}

fn id(args: &[&str]) -> Result<u32> {
    let output = Command::new("id").args(args).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The directory with the programs of the newest version that a package of Debian or Ubuntu installed.
fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let bins = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    bins.filter(|bin| bin.join("initdb").exists()).max()
}

impl Server {
    /// Starts a server; `None` if PostgreSQL is not installed.
    pub fn start() -> Result<Option<Arc<Self>>> {
        Self::start_with(|_| Ok(()))
    }

    /// Starts a server after `prepare` has changed the files in its data directory.
    pub fn start_with(prepare: impl FnOnce(&Path) -> Result) -> Result<Option<Arc<Self>>> {
        let Some(bin) = find_programs() else { return Ok(None) };
        let started = Self::start_from(&bin, |server| {
            let data = server.data();
            server.run(
                "initdb",
                &["-D", &data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"],
            )?;
            prepare(Path::new(&data))
        });
        started.map(Some)
    }

    /// Starts a server in a directory that `fill` fills.
    fn start_from(bin: &Path, fill: impl FnOnce(&Self) -> Result) -> Result<Arc<Self>> {
        let dir = tempfile::Builder::new().prefix("chorus-postgres-").tempdir_in("/tmp")?.keep();
        let user = (id(&["-u"])? == 0).then_some(SERVER_USER);
        if let Some(user) = user {
            chown(&dir, Some(id(&["-u", user])?), None)?;
        }
        let port = free_port();
        let poolers = [OnceLock::new(), OnceLock::new()];
        let mut server = Self { dir, bin: bin.to_owned(), port, user, _janitor: None, poolers };
        fill(&server)?;
        if let Some(user) = user {
            for entry in std::fs::read_dir(server.data())? {
                chown(entry?.path(), Some(id(&["-u", user])?), Some(id(&["-g", user])?))?;
            }
        }
        let stop = format!(
            "read -r _; '{}/pg_ctl' -D '{}' stop -m immediate; rm -rf '{}'",
            server.bin.display(),
            server.data(),
            server.dir.display()
        );
        let mut janitor = server.command("sh");
        janitor.args(["-c", &stop]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        server._janitor = Some(janitor.spawn()?);
        server.control(&["start"])?;
        Ok(Arc::new(server))
    }

    fn data(&self) -> String {
        format!("{}/data", self.dir.display())
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir("/");
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Result {
        let mut command = self.command(self.bin.join(program));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status()?.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
    }

    /// Runs `pg_ctl` with an action, and waits for its end.
    pub fn control(&self, action: &[&str]) -> Result {
        let dir = self.dir.display();
        let options = format!("-p {} -k {dir} -c listen_addresses=127.0.0.1 -c max_connections=200", self.port);
        let (data, log) = (self.data(), format!("{dir}/log"));
        self.run("pg_ctl", &[&["-D", &data, "-w", "-l", &log, "-o", &options], action].concat())
    }

    /// Its port on 127.0.0.1, without a pooler.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a standby of this server, which follows it by streaming, as `name`.
    pub fn start_standby(&self, name: &str) -> Result<Arc<Self>> {
        let port = self.port.to_string();
        let primary = format!("host=127.0.0.1 port={port} user=postgres application_name={name}");
        let standby = Self::start_from(&self.bin, |server| {
            server.run("pg_basebackup", &["-d", &primary, "-D", &server.data(), "-R", "-X", "stream", "-c", "fast"])
        })?;
        Ok(standby)
    }
}

fn new_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Database {
    /// Creates an empty database on the server that all tests share, with a program of PostgreSQL. Returns its URL. Blocks.
    ///
    /// # Errors
    /// Fails if PostgreSQL is not installed.
    pub fn create_blocking() -> Result<String> {
        let server = Self::shared_server()?.ok_or("PostgreSQL is not installed here")?;
        let name = new_name();
        server.run("createdb", &["-h", "127.0.0.1", "-p", &server.port.to_string(), "-U", "postgres", &name])?;
        Ok(Self { server, name }.url())
    }

    fn shared_server() -> Result<Option<Arc<Server>>> {
        static SHARED: OnceLock<Result<Option<Arc<Server>>, String>> = OnceLock::new();
        Ok(SHARED.get_or_init(|| Server::start().map_err(|e| e.to_string())).clone()?)
    }

    /// Creates an empty database on the server that all tests share; skips the test if PostgreSQL is not installed.
    pub async fn create() -> Result<Option<Self>> {
        match Self::shared_server()? {
            Some(server) => Self::create_on(server).await.map(Some),
            None => {
                skip("PostgreSQL is not installed here");
                Ok(None)
            }
        }
    }

    /// Creates an empty database on a server.
    pub async fn create_on(server: Arc<Server>) -> Result<Self> {
        let database = Self { server, name: new_name() };
        let admin = database.connect_to("postgres").await?;
        admin.batch_execute(&format!("CREATE DATABASE {}", database.name)).await?;
        Ok(database)
    }

    /// The port of the server on 127.0.0.1, or that of a pgbouncer in front of it if `CHORUS_CLUSTER_POOLER` names its mode.
    ///
    /// # Panics
    /// If the mode is not known or pgbouncer does not start.
    #[must_use]
    pub fn port(&self) -> u16 {
        match std::env::var("CHORUS_CLUSTER_POOLER") {
            Ok(mode) if !mode.is_empty() => {
                let mode = PoolMode::parse(&mode).expect("CHORUS_CLUSTER_POOLER is `transaction` or `session`");
                self.port_through(mode).expect("pgbouncer starts").expect("pgbouncer is installed")
            }
            _ => self.server.port,
        }
    }

    /// The port of the server itself.
    #[must_use]
    pub fn direct_port(&self) -> u16 {
        self.server.port
    }

    /// The port of a pgbouncer in front of the server; skips the test if it is not installed.
    pub fn port_through(&self, mode: PoolMode) -> Result<Option<u16>> {
        let [transaction, session] = &self.server.poolers;
        let pooler = if mode == PoolMode::Transaction { transaction } else { session };
        let started = pooler.get_or_init(|| {
            let user = self.server.user.map(|user| Ok::<_, Error>((user, id(&["-u", user])?)));
            let user = user.transpose().map_err(|e| e.to_string())?;
            PgBouncer::start(self.server.port, mode, user).map_err(|e| e.to_string())
        });
        match started {
            Ok(Some(pooler)) => Ok(Some(pooler.port())),
            Ok(None) => {
                skip("pgbouncer is not installed here");
                Ok(None)
            }
            Err(failure) => Err(failure.clone().into()),
        }
    }

    /// The URL of the database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of the database, over another port, such as that of a proxy.
    #[must_use]
    pub fn url_at(&self, port: u16) -> String {
        format!("postgresql://postgres@127.0.0.1:{port}/{}", self.name)
    }

    /// Connects without anything of Chorus.
    pub async fn connect(&self) -> Result<Client> {
        self.connect_to(&self.name).await
    }

    async fn connect_to(&self, name: &str) -> Result<Client> {
        let url = format!("postgresql://postgres@127.0.0.1:{}/{name}", self.server.port);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        chorus_runtime::spawn(async { drop(connection.await) });
        Ok(client)
    }
}
