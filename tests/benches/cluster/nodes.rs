//! Nodes with one database and one directory of sessions, with the certificates of `chorusctl cluster cert`.

use std::fs::{OpenOptions, create_dir};
use std::io::Write as _;
use std::time::{Duration, Instant};

use chorus_base::private_fs::write_private;
use chorus_tests::free_port::free_port;
use chorus_tests::postgres::{Database, Result, Server};
use chorus_tests::wait::pause;
use chorus_tests::{Home, home};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

/// The homes of the nodes `a` and `b`.
pub struct Nodes {
    pub homes: [Home; 2],
    /// A connection to the database without anything of Chorus.
    pub database: Client,
    pub runtime: Runtime,
    _files: TempDir,
    _database: Database,
}

impl Nodes {
    /// Starts PostgreSQL with its defaults, and with counts of its statements.
    pub fn create() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = Server::start_with(|data| {
            let mut config = OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
            Ok(config.write_all(b"\nshared_preload_libraries = 'pg_stat_statements'\n")?)
        })?;
        let server = server.ok_or("PostgreSQL is not installed here")?;
        let database = runtime.block_on(Database::create_on(server))?;
        let client = runtime.block_on(database.connect())?;
        runtime.block_on(client.batch_execute("CREATE EXTENSION pg_stat_statements"))?;
        let files = tempfile::tempdir()?;
        let homes = [home!().without_index(), home!().without_index()];
        let mut certificates = homes[0].command(homes[0].bins.chorusctl);
        certificates.args(["cluster", "cert", "a=localhost", "b=localhost"]).current_dir(files.path());
        if !certificates.output()?.status.success() {
            return Err("no certificates".into());
        }
        create_dir(files.path().join("sessions"))?;
        for (home, name) in homes.iter().zip(["a", "b"]) {
            let (port, files) = (free_port(), files.path().display());
            home.write_config(&format!(
                "[store]\nkind = \"postgres\"\nurl_file = \"url\"\n\
                 [store.sessions]\nkind = \"dir\"\npath = \"{files}/sessions\"\n\
                 [cluster]\nnode = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\nadvertise = \"localhost:{port}\"\n\
                 ca = \"{files}/chorus-certs/{name}/ca.pem\"\ncert = \"{files}/chorus-certs/{name}/cert.pem\"\n\
                 key = \"{files}/chorus-certs/{name}/key.pem\"\n"
            ));
            write_private(&home.path.join("url"), database.url().as_bytes())?;
        }
        Ok(Self { homes, database: client, runtime, _files: files, _database: database })
    }

    /// Returns the size of the database in bytes.
    pub fn database_bytes(&self) -> Result<u64> {
        let row = self.runtime.block_on(self.database.query_one("SELECT pg_database_size(current_database())", &[]))?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    /// Returns the number of statements that the server has run for others than this bench.
    pub fn statements(&self) -> Result<i64> {
        let sql = "SELECT /* bench */ coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE '%/* bench */%'";
        Ok(self.runtime.block_on(self.database.query_one(sql, &[]))?.get(0))
    }

    /// Waits for the next heartbeat of a node, and returns when it was seen.
    pub fn wait_for_heartbeat(&self, node: &str) -> Result<Instant> {
        let sql = "SELECT /* bench */ heartbeat::text FROM nodes WHERE id = $1";
        let read = || -> Result<String> { Ok(self.runtime.block_on(self.database.query_one(sql, &[&node]))?.get(0)) };
        let before = read()?;
        while read()? == before {
            self.runtime.block_on(pause(Duration::from_millis(2)));
        }
        Ok(Instant::now())
    }
}
