//! The store in PostgreSQL, which several daemons can share.

use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{AuditLog, ChainVerifier};
use chorus_clock::Clock;
use chorus_config::{Config, KeySource};
use chorus_engine::backup::home_id;
use chorus_engine::ops::daemon::VERSION;
use chorus_journal::Journal as _;
use chorus_proto::ErrorKind;
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_shared_files::SharedAgentFiles;
use chorus_store::{DB_DIR, OnFatal, RootChoice, SessionFiles, Store, Upkeep, WorkspaceRoot};
use chorus_store_postgres::{DatabaseUrl, NodeName, PostgresJournal};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::session_bucket::SessionBucket;

/// Directory below that of the databases with what was known of the files of agents.
pub(super) const KNOWN_FILES_DIR: &str = "agent-files";

/// Connects to the database of `config`, brings its schema up to date, and starts this daemon as a node. Opens the store of
/// session bodies if there is one.
///
/// # Errors
/// `invalid_config` for an unusable URL, name or bucket; as [`PostgresJournal::open`].
pub(super) async fn open(
    config: &Config,
    (home, clock): (&Path, &Clock),
    on_fatal: &OnFatal,
    redactor: &Arc<Redactor>,
) -> Result<Store> {
    let url = read_url(&config.store.url)?;
    super::cluster_ports::check(&config.cluster)?;
    // Nobody reaches a node without a port.
    let address = config.cluster.advertise.clone().filter(|_| config.cluster.listen.is_some()).unwrap_or_default();
    let choice = match config.workspace_root() {
        Some(path) => RootChoice::Path(path.to_owned()),
        None if config.cluster.unshares_workspaces => RootChoice::End,
        None => RootChoice::Unset,
    };
    let id = super::cluster_ports::node_name(&config.cluster)?;
    let own_home = home.to_owned();
    let of_home = Some(run_blocking(move || home_id(&own_home)).await?);
    let name = NodeName { id, address, shares_workspaces: config.workspace_root().is_some(), home: of_home };
    // Before anything is written to the database.
    let bucket = SessionBucket::open(&config.store.sessions, (home, clock), redactor).await?;
    chorus_store_copy::refuse_unfinished(&url).await?;
    let journal = Arc::new(PostgresJournal::open(url, &name, VERSION, on_fatal.clone()).await?);
    let mut catalog = journal.catalog(redactor.clone());
    let upkeep = PostgresUpkeep { journal: journal.clone(), audit: catalog.audit.clone() };
    let known = home.join(DB_DIR).join(KNOWN_FILES_DIR);
    let workspaces = (journal.workspace_bundle_table(), name.id.clone());
    let agent_files = SharedAgentFiles::new(journal.agent_file_table(), name.id, known, clock.clone());
    let shared_places = async {
        agree_on_bucket(bucket.as_ref(), &journal).await?;
        WorkspaceRoot::open(choice, &*catalog.settings, &*journal).await
    };
    let root = match shared_places.await {
        Ok(root) => root,
        Err(refused) => {
            // The other nodes need not wait for its heartbeat.
            let _ = journal.close().await;
            return Err(refused);
        }
    };
    let with_files = |store: Store| store.with_agent_files(Arc::new(agent_files)).with_workspace_root(root);
    let Some(bucket) = bucket else {
        let store = Store::with_database(journal.clone(), catalog, journal, Arc::new(upkeep), on_fatal);
        return Ok(with_files(store));
    };
    let files = Arc::<SessionFiles>::default();
    let shared = bucket.share(&catalog, workspaces, journal.clone(), files.clone());
    catalog.sessions = shared.table();
    let store = Store::with_database(journal.clone(), catalog, journal, Arc::new(upkeep), on_fatal);
    Ok(with_files(store.with_bodies(shared.clone(), files).with_workspaces(shared)))
}

/// Makes sure that all nodes have the same bucket.
async fn agree_on_bucket(bucket: Option<&SessionBucket>, journal: &PostgresJournal) -> Result<()> {
    let (id, is_marked) = journal.cluster_id().await?;
    match bucket {
        Some(bucket) => {
            if bucket.mark(id, is_marked).await? && !is_marked {
                journal.note_marked_bucket().await?;
            }
            Ok(())
        }
        None if is_marked => {
            let what = "the other nodes keep sessions in a bucket or a directory, and this one has no [store.sessions]";
            Err(Error::new(ErrorKind::InvalidConfig, what)
                .hint("copy that table from the configuration of another node"))
        }
        None => Ok(()),
    }
}

/// Reads the URL of PostgreSQL.
///
/// # Errors
/// `invalid_config` if there is none, or it cannot be used.
pub(super) fn read_url(source: &KeySource) -> Result<DatabaseUrl> {
    match source {
        KeySource::Env { value: Some(value), .. } => DatabaseUrl::parse(value.expose()),
        KeySource::Env { variable, value: None } => DatabaseUrl::from_env(variable),
        KeySource::File(path) | KeySource::Credential { path: Some(path), .. } => DatabaseUrl::from_file(path),
        KeySource::Credential { name, path: None } => {
            let what = format!("the service manager did not pass the credential {name}");
            Err(Error::new(ErrorKind::InvalidConfig, what).hint("set LoadCredential= in the unit, or use url_file"))
        }
        KeySource::None => Err(Error::new(ErrorKind::InvalidConfig, "no URL of the PostgreSQL database").hint(
            "set url_file, url_env or credential in the table [store]; store copy has --url-file and --url-env, too",
        )),
    }
}

#[derive(Debug)]
struct PostgresUpkeep {
    journal: Arc<PostgresJournal>,
    audit: Arc<dyn AuditLog>,
}

impl Upkeep for PostgresUpkeep {
    /// Never: PostgreSQL's own vacuum frees the room of deleted rows, and its log and backups are not Chorus's.
    fn is_purge_due(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { Ok(false) })
    }

    /// Deletes the records of ended contexts.
    fn purge_deleted(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.journal.trim(self.journal.ended_contexts().await?).await })
    }

    fn verify_audit_log(&self) -> BoxFuture<'_, Result<ChainVerifier>> {
        Box::pin(async move { self.audit.verify(None).await })
    }

    /// Does nothing: the database does not lose the end of a log that it has committed.
    fn record_lost_audits(&self, _now: Timestamp) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn release_memory(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Does nothing: what failed is a file of this machine. The daemon ends, and nothing is acknowledged on its way that the
    /// database has not committed.
    fn poison(&self, _failure: Error) {}

    /// Releases the agents and ends the heartbeat.
    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.journal.close())
    }
}
