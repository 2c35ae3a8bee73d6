//! Copies the store of a home to PostgreSQL or back, and changes the configuration last.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::{Durability, Secret};
use chorus_clock::Clock;
use chorus_config::{Config, KeySource, Origin, StoreKind};
use chorus_engine::lifecycle::instance_lock::InstanceLock;
use chorus_engine::lifecycle::{home_dir, log};
use chorus_engine::ops::daemon::VERSION;
use chorus_proto::ErrorKind;
use chorus_proto::paths::InstancePaths;
use chorus_redact::Redactor;
use chorus_session_objects::ObjectBodies;
use chorus_store::{DB_DIR, Store};
use chorus_store_copy::{
    CopySummary, Progress, STAGING_DIR, StoreCopy, move_into_place, prepare_staging, remove_marker, remove_staging,
};
use serde::Serialize;

use super::session_bucket::SessionBucket;
use super::store_setting::{StoreSetting, change_store};
use super::{build_redactor, build_runtime, cluster_ports, load_config, postgres_store};

/// The setting that says where the store is.
const KIND_KEY: &str = "store.kind";

/// Those of its URL.
const URL_KEYS: [&str; 3] = ["store.url_file", "store.url_env", "store.credential"];

/// The place of the URL of PostgreSQL, instead of the one that the configuration names.
#[derive(Debug)]
pub(crate) enum StoreUrl {
    /// An absolute path.
    File(PathBuf),
    /// Name of an environment variable.
    Env(String),
}

/// The result for `chorusctl`.
#[derive(Debug, Serialize)]
pub(crate) struct CopiedStore {
    /// `postgres` or `sqlite`.
    to: &'static str,
    /// The configuration, which names the new store now.
    config: PathBuf,
    /// Directory with the databases that the home had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_aside: Option<PathBuf>,
    #[serde(flatten)]
    summary: CopySummary,
}

/// Copies the store to `to`, or continues that.
///
/// # Errors
/// `already_exists` if a daemon runs or the store is there; those of [`StoreCopy`] and of the configuration.
pub(crate) fn copy_store(
    places: &InstancePaths,
    to: StoreKind,
    url: Option<StoreUrl>,
    report: &mut dyn FnMut(Progress),
) -> Result<CopiedStore> {
    let mut config = load_config(places)?;
    let url_keys: &[&str] = if url.is_some() { &URL_KEYS } else { &[] };
    let overridden = url_keys.iter().copied().chain([KIND_KEY]);
    if let Some(Origin::Environment(variable)) =
        overridden.filter_map(|key| config.origins.get(key)).find(|origin| matches!(origin, Origin::Environment(_)))
    {
        return Err(Error::new(ErrorKind::InvalidConfig, format!("{variable} overrides the configuration"))
            .hint(format!("unset {variable}, and set it in the table [store] of {}", places.config.display())));
    }
    if config.store.kind == to {
        return Err(finish_former(&places.home, &config)?);
    }
    if to == StoreKind::Sqlite && config.cluster.listen.is_some() {
        let what = "`listen` of [cluster] is set, and a store in SQLite is for one daemon";
        return Err(Error::new(ErrorKind::InvalidConfig, what)
            .hint(format!("remove listen from the table [cluster] of {} first", places.config.display())));
    }
    let setting = StoreSetting { kind: to, url: choose_url(&mut config, url) };
    let url = postgres_store::read_url(&config.store.url)?;
    // That this can be done is known before the work.
    let new_config = change_store(&places.config, &setting)?;
    let node = cluster_ports::node_name(&config.cluster)?;
    home_dir::prepare(&places.home)?;
    let _lock = InstanceLock::acquire(&places.home).map_err(|failure| match failure.kind {
        ErrorKind::AlreadyExists => Error { hint: Some("chorusctl daemon stop".into()), ..failure },
        _ => failure,
    })?;
    let redactor = build_redactor(places, &config);
    log::start(&places.home, config.log_level, false, redactor.clone())?;
    build_runtime()?.block_on(async {
        let bodies = open_bodies(&config, &places.home, &redactor).await?;
        let copy = StoreCopy { home: places.home.clone(), url: url.clone(), node, version: VERSION, bodies };
        let (summary, set_aside) = match to {
            StoreKind::Postgres => {
                copy.check_target().await?;
                prepare_databases(&places.home, redactor).await?;
                (copy.to_postgres(report).await?, None)
            }
            StoreKind::Sqlite => {
                copy.check_source().await?;
                prepare_staging(&places.home)?;
                home_dir::prepare(&places.home.join(STAGING_DIR))?;
                prepare_databases(&places.home.join(STAGING_DIR), redactor).await?;
                let summary = copy.to_sqlite(report).await?;
                let now = Clock::system().now().strftime("%Y%m%dT%H%M%SZ").to_string();
                (summary, move_into_place(&places.home, &now)?)
            }
        };
        forget_agent_files(&places.home)?;
        new_config.write()?;
        if to == StoreKind::Postgres {
            remove_marker(&url).await?;
        }
        remove_staging(&places.home)?;
        Ok(CopiedStore { to: name_of(to), config: places.config.clone(), set_aside, summary })
    })
}

const fn name_of(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Sqlite => "sqlite",
        StoreKind::Postgres => "postgres",
    }
}

/// Makes the URL of a command that of the configuration. Returns it if the configuration has to get it.
fn choose_url(config: &mut Config, url: Option<StoreUrl>) -> Option<StoreUrl> {
    match &url {
        Some(StoreUrl::File(path)) => config.store.url = KeySource::File(path.clone()),
        Some(StoreUrl::Env(variable)) => {
            let value = std::env::var(variable).ok().filter(|value| !value.is_empty()).map(Secret::new);
            config.store.url = KeySource::Env { variable: variable.clone(), value };
        }
        None => {}
    }
    url
}

/// Returns the error of a store that is where it should be. Removes what an earlier copy has left, which may have ended after it had
/// changed the configuration, unless a daemon runs.
fn finish_former(home: &Path, config: &Config) -> Result<Error> {
    home_dir::prepare(home)?;
    match InstanceLock::acquire(home) {
        Ok(_lock) => {
            if config.store.kind == StoreKind::Postgres {
                let url = postgres_store::read_url(&config.store.url)?;
                build_runtime()?.block_on(remove_marker(&url))?;
            }
            remove_staging(home)?;
        }
        Err(failure) if failure.kind == ErrorKind::AlreadyExists => {}
        Err(failure) => return Err(failure),
    }
    let what = format!("the store of this home is in {} already", name_of(config.store.kind));
    Ok(Error::new(ErrorKind::AlreadyExists, what).hint("nothing to copy"))
}

/// Forgets which rows the files of agents were compared with last: those of another database are none of theirs.
fn forget_agent_files(home: &Path) -> Result<()> {
    let dir = home.join(DB_DIR).join(postgres_store::KNOWN_FILES_DIR);
    match std::fs::remove_dir_all(&dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format_args!("cannot delete {}", dir.display()), &e))
        }
        _ => Ok(()),
    }
}

/// Brings the databases below `home` to the newest schema, as a start of the daemon does. Creates those that are missing.
async fn prepare_databases(home: &Path, redactor: Arc<Redactor>) -> Result<()> {
    let now = Clock::system().now();
    Store::open(home, Durability::Always, &(Arc::new(|_| {}) as _), now, redactor)?.close().await
}

async fn open_bodies(config: &Config, home: &Path, redactor: &Redactor) -> Result<Option<Arc<ObjectBodies>>> {
    let bucket = SessionBucket::open(&config.store.sessions, (home, &Clock::system()), redactor).await?;
    Ok(bucket.map(|bucket| Arc::new(bucket.bodies())))
}
