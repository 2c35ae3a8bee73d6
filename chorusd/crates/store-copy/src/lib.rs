//! Copies the store of a home from SQLite to PostgreSQL and back, while no daemon uses either. See docs/design/store-copy.md.
//!
//! A copy has three phases: rows are copied, the messages of all sessions are read and compared with their hashes, and the
//! rows of both databases are compared. It can end at any moment: another attempt continues. Invariants: the source is not
//! changed; nothing is deleted from a target that has anything else than an earlier copy of this home.

#![warn(unreachable_pub)]

mod copy;
mod marker;
mod postgres;
mod progress;
mod session_bodies;
mod side;
mod sqlite;
mod sqlite_records;
mod staging;
mod stream;
mod table;
mod tables;
mod value;

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_session_objects::{ObjectBodies, SessionBodies};
use chorus_store_postgres::{DatabaseUrl, STALE_AFTER, migrate};
use serde::Serialize;
use tokio_postgres::Client;

pub use self::copy::ComparedTable;
pub use self::marker::{refuse_unfinished, remove_marker};
pub use self::progress::{Phase, Progress};
pub use self::staging::{STAGING_DIR, move_into_place, prepare_staging, remove_staging};

use self::postgres::PostgresSide;
use self::progress::Meter;
use self::session_bodies::SessionPlaces;
use self::side::Side;
use self::sqlite::SqliteSide;

/// Returns the names of the tables of PostgreSQL that are copied, or left out on purpose.
pub fn known_tables() -> impl Iterator<Item = &'static str> {
    tables::known()
}

/// A home and the database that it is copied to or from.
#[derive(Debug)]
pub struct StoreCopy {
    /// Its lock is held, and its databases, if they are the source, have the newest schema.
    pub home: PathBuf,
    pub url: DatabaseUrl,
    /// Name of the node that the daemon of this home is, or will be.
    pub node: String,
    /// Version of this program.
    pub version: &'static str,
    /// The bucket of sessions, if the configuration has one.
    pub bodies: Option<Arc<ObjectBodies>>,
}

/// A finished copy.
#[derive(Debug, Serialize)]
pub struct CopySummary {
    pub tables: Vec<ComparedTable>,
    /// Sessions whose messages have the hash in their row.
    pub sessions: u64,
    /// Those whose messages were written to the bucket.
    pub sessions_stored: u64,
    /// Those whose files were written from the bucket.
    pub sessions_restored: u64,
}

impl StoreCopy {
    /// Connects to the database. Nothing is created in one of another program.
    async fn connect(&self) -> Result<Client> {
        let client = self.url.connect().await?;
        self.url.check_version(&client).await?;
        marker::refuse_unknown_tables(&client).await?;
        Ok(client)
    }

    async fn side(&self, mut client: Client) -> Result<PostgresSide> {
        migrate(&mut client).await?;
        Ok(PostgresSide { url: self.url.clone(), node: self.node.clone(), client, attempt: None })
    }

    /// Checks that the home may be copied to PostgreSQL. Nothing is written to the database, the bucket and the home.
    ///
    /// # Errors
    /// As [`StoreCopy::to_postgres`].
    pub async fn check_target(&self) -> Result<()> {
        self.connect_to_target().await.map(drop)
    }

    async fn connect_to_target(&self) -> Result<Client> {
        let client = self.connect().await?;
        marker::check_target(&client, staging::find_copy_id(&self.home)?).await?;
        marker::check_bucket(&client, self.bodies.as_deref()).await?;
        Ok(client)
    }

    /// Checks that PostgreSQL may be copied to the home. Nothing is written to either.
    ///
    /// # Errors
    /// As [`StoreCopy::to_sqlite`].
    pub async fn check_source(&self) -> Result<()> {
        self.connect_to_source().await.map(drop)
    }

    async fn connect_to_source(&self) -> Result<Client> {
        let client = self.connect().await?;
        marker::check_source(&client, &self.node, STALE_AFTER.as_secs_f64()).await?;
        Ok(client)
    }

    /// Copies the databases of the home to PostgreSQL, or continues that.
    ///
    /// # Errors
    /// `already_exists` if the database has anything else than an earlier copy of this home; `invalid_config` if the bucket is that of
    /// another cluster; `corrupt_session` with the names of damaged sessions; those of the databases.
    pub async fn to_postgres(&self, report: &mut dyn FnMut(Progress)) -> Result<CopySummary> {
        let client = self.connect_to_target().await?;
        let copy = staging::copy_id(&self.home)?;
        let mut there = self.side(client).await?;
        let attempt = marker::start_attempt(&there.client, copy).await?;
        there.attempt = Some(attempt);
        marker::take_bucket(&there.client, self.bodies.as_deref()).await?;
        let source = Side::Sqlite(Box::new(SqliteSide::open(&self.home)?));
        let target = Side::Postgres(Box::new(there));
        let summary = self.run(&source, &target, report).await?;
        if let Side::Postgres(there) = &target {
            marker::set_finished(&there.client, attempt).await?;
        }
        Ok(summary)
    }

    /// Copies PostgreSQL to databases in the [`STAGING_DIR`] of the home, or continues that. [`move_into_place`] makes them those
    /// of the home.
    ///
    /// # Errors
    /// `not_found` if the database has no store of Chorus; `denied` if it has a part of a home; `unsupported` if it has what belongs to
    /// other nodes; `busy` if a daemon uses it; as [`StoreCopy::to_postgres`].
    pub async fn to_sqlite(&self, report: &mut dyn FnMut(Progress)) -> Result<CopySummary> {
        let there = self.side(self.connect_to_source().await?).await?;
        let source = Side::Postgres(Box::new(there));
        let target = Side::Sqlite(Box::new(SqliteSide::open(&self.home.join(STAGING_DIR))?));
        self.run(&source, &target, report).await
    }

    async fn run(&self, source: &Side, target: &Side, report: &mut dyn FnMut(Progress)) -> Result<CopySummary> {
        let mut meter = Meter::new(report);
        let total = copy::count_all(source).await?;
        meter.start(Phase::Copying, total);
        copy::copy_all(source, target, &mut meter).await?;
        match target {
            Side::Postgres(side) => side.finish(self.version).await?,
            Side::Sqlite(side) => side.finish()?,
        }
        let bodies = self.bodies.clone().map(|bodies| -> Arc<dyn SessionBodies> { bodies });
        let places = SessionPlaces { home: self.home.clone(), bodies };
        let counts = session_bodies::verify_all(source, target, &places, &mut meter).await?;
        meter.start(Phase::Comparing, total);
        let tables = copy::compare_all(source, target, &mut meter).await?;
        if let Side::Sqlite(side) = target {
            side.seal()?;
        }
        Ok(CopySummary {
            tables,
            sessions: counts.verified,
            sessions_stored: counts.stored,
            sessions_restored: counts.restored,
        })
    }
}
