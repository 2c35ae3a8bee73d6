//! The bucket of `[store.sessions]`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::{Catalog, WorkspaceBundleTable};
use chorus_clock::Clock;
use chorus_config::{KeySource, SessionStoreConfig, SessionStoreKind};
use chorus_journal::Ownership;
use chorus_proto::ErrorKind;
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session_objects::{
    BodyCache, Bucket, DirectoryBucket, ObjectBodies, Prefix, RetryPolicy, S3Bucket, S3Key, S3Settings, check_or_mark,
};
use chorus_shared_sessions::{SharedSessions, SharedSessionsParts};
use chorus_store::{DB_DIR, SessionFiles};
use tokio::time::timeout;
use uuid::Uuid;

/// Directory below that of the databases with parts of large sessions that are read in pages.
const PARTS_DIR: &str = "session-parts";

/// Bytes of those parts.
const MAX_PARTS_BYTES: u64 = 256 << 20;

/// Limit of the check at the start whether the bucket is that of the other nodes.
const MARK_LIMIT: Duration = Duration::from_secs(5);

/// An open bucket, and what the sessions in it need.
pub(super) struct SessionBucket {
    bucket: Arc<dyn Bucket>,
    prefix: Prefix,
    parts: BodyCache,
    max_copied_bytes: u64,
    home: PathBuf,
    clock: Clock,
}

fn invalid(message: &str, hint: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, message).hint(hint)
}

impl SessionBucket {
    /// Opens the bucket; `None` if the configuration has none.
    ///
    /// # Errors
    /// `invalid_config`; `storage_failed` for a directory that cannot be used.
    pub(super) async fn open(
        config: &SessionStoreConfig,
        (home, clock): (&Path, &Clock),
        redactor: &Redactor,
    ) -> Result<Option<Self>> {
        let Some(kind) = config.kind else { return Ok(None) };
        let prefix = Prefix::new(&config.prefix)?;
        let bucket: Arc<dyn Bucket> = match kind {
            SessionStoreKind::Dir => {
                let path = config.path.clone().ok_or_else(|| {
                    invalid(
                        "`store.sessions.kind` is \"dir\", and the configuration has no directory",
                        "set path in the table [store.sessions]",
                    )
                })?;
                Arc::new(run_blocking(move || DirectoryBucket::open(&path)).await?)
            }
            SessionStoreKind::S3 => {
                let settings = s3_settings(config, prefix.clone())?;
                redactor.add_own_key(&settings.key.secret);
                Arc::new(S3Bucket::new(&settings, RetryPolicy::default(), clock.clone())?)
            }
        };
        let parts = home.join(DB_DIR).join(PARTS_DIR);
        let max_parts = MAX_PARTS_BYTES.min(config.cache);
        let parts = run_blocking(move || BodyCache::open(&parts, max_parts)).await?;
        let (home, clock) = (home.to_owned(), clock.clone());
        Ok(Some(Self { bucket, prefix, parts, max_copied_bytes: config.cache, home, clock }))
    }

    /// Checks that the bucket is that of the cluster `id`, and marks it if it is the first. A bucket that does not answer is used
    /// all the same, so that a node can restart meanwhile. Returns whether it has the mark.
    ///
    /// # Errors
    /// `invalid_config` if it is another one.
    pub(super) async fn mark(&self, id: Uuid, is_marked: bool) -> Result<bool> {
        let checked = timeout(MARK_LIMIT, check_or_mark(&*self.bucket, &self.prefix, id, is_marked)).await;
        match checked.unwrap_or_else(|_| Err(Error::busy())) {
            Ok(()) => Ok(true),
            Err(refused) if refused.kind == ErrorKind::InvalidConfig => Err(refused),
            Err(failure) => {
                tracing::warn!(%failure, "cannot check that the bucket of sessions is that of the other nodes");
                Ok(false)
            }
        }
    }

    /// Returns the bodies in the bucket, without a cache.
    pub(super) fn bodies(self) -> ObjectBodies {
        ObjectBodies::new(self.bucket, self.prefix, None, self.clock)
    }

    /// Shares the sessions of a catalog.
    pub(super) fn share(
        self,
        catalog: &Catalog,
        (workspaces, node): (Arc<dyn WorkspaceBundleTable>, String),
        ownership: Arc<dyn Ownership>,
        files: Arc<SessionFiles>,
    ) -> Arc<SharedSessions> {
        let Self { bucket, prefix, parts, max_copied_bytes, home, clock } = self;
        SharedSessions::new(SharedSessionsParts {
            bodies: ObjectBodies::new(bucket.clone(), prefix.clone(), Some(parts), clock.clone()),
            bucket,
            prefix,
            sessions: catalog.sessions.clone(),
            agents: catalog.agents.clone(),
            workspaces,
            node,
            ownership,
            files,
            home,
            max_copied_bytes,
            clock,
        })
    }
}

fn s3_settings(config: &SessionStoreConfig, prefix: Prefix) -> Result<S3Settings> {
    let bucket = config.bucket.clone().ok_or_else(|| {
        invalid(
            "`store.sessions.kind` is \"s3\", and the configuration has no bucket",
            "set bucket in the table [store.sessions]",
        )
    })?;
    let endpoint = config.endpoint.as_deref();
    let endpoint = endpoint.map(|url| S3Settings::check_endpoint(url, config.plain_host.as_deref())).transpose()?;
    Ok(S3Settings {
        path_style: config.path_style.unwrap_or(endpoint.is_some()),
        endpoint,
        region: config.region.clone(),
        bucket,
        prefix,
        key: read_key(config)?,
    })
}

fn read_key(config: &SessionStoreConfig) -> Result<S3Key> {
    match (&config.key, &config.key_in_env) {
        (KeySource::File(path) | KeySource::Credential { path: Some(path), .. }, _) => {
            S3Key::load(Some(path), |_| None)
        }
        (KeySource::Credential { name, path: None }, _) => {
            let what = format!("the service manager did not pass the credential {name}");
            Err(invalid(&what, "set LoadCredential= in the unit, or use key_file"))
        }
        (_, Some((id, secret))) => Ok(S3Key { id: id.clone(), secret: secret.clone() }),
        (_, None) => S3Key::load(None, |_| None),
    }
}
