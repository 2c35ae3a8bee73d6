//! The port for other nodes, and the way to theirs, as `[cluster]` names them.

use std::sync::Arc;
use std::time::SystemTime;

use chorus_base::error::{Error, Result};
use chorus_config::ClusterConfig;
use chorus_engine::ops::Ops;
use chorus_engine::ops::cluster::PeerChecks;
use chorus_engine::ops::daemon::VERSION;
use chorus_peers::{
    CheckState, ClusterCredentials, ClusterSettings, ListenerLimits, LocalNode, PeerAddress, PeerListener, PeerPool,
    PoolLimits, SettingCheck, check_settings,
};
use chorus_proto::ErrorKind;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_runtime::run_blocking;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::silent_nodes;
use crate::server::Elsewhere;

/// The port, and what becomes of requests for agents of others.
pub(super) struct Ports {
    pub(super) listener: Option<PeerListener>,
    pub(super) elsewhere: Elsewhere,
}

/// Checks the keys and the files of `[cluster]`, before this daemon says to others that it runs.
///
/// # Errors
/// `invalid_config` if the table is incomplete or a file cannot be used.
pub(super) fn check(config: &ClusterConfig) -> Result<()> {
    match settings(config)? {
        Some(settings) => ClusterCredentials::load(&settings, &node_name(config)?).map(drop),
        None => Ok(()),
    }
}

/// Opens the port that `[cluster]` names; without `listen` none.
///
/// # Errors
/// `invalid_config` if `[cluster]` is incomplete, a file cannot be used or the port cannot be bound.
pub(super) async fn open(ops: &Ops, stop: &CancellationToken) -> Result<Ports> {
    let Some(settings) = settings(&ops.config.cluster)? else {
        return Ok(Ports { listener: None, elsewhere: Elsewhere::default() });
    };
    let Some(ownership) = &ops.store.ownership else {
        return Err(Error::new(
            ErrorKind::InvalidConfig,
            "`listen` of [cluster] is set, and no other daemon can share this store",
        )
        .hint("set kind = \"postgres\" in the table [store], or remove listen"));
    };
    let node = LocalNode { id: node_name(&ops.config.cluster)?, boot: ownership.boot(), version: VERSION.to_owned() };
    let credentials = Arc::new(ClusterCredentials::load(&settings, &node.id)?);
    let own = node.id.clone();
    let max_frame = ops.config.max_frame;
    let limits = ListenerLimits { max_frame, ..ListenerLimits::default() };
    let listener = PeerListener::bind(credentials.clone(), node.clone(), limits, stop.clone()).await?;
    let pool = Arc::new(PeerPool::new(credentials, node, PoolLimits { max_frame, ..PoolLimits::default() }));
    let _ = ops.peer_checks.set(Arc::new(PortChecks { settings, node: own, pool: pool.clone() }));
    chorus_runtime::spawn(silent_nodes::watch(ops.store.clone(), pool.clone(), stop.clone()));
    Ok(Ports { listener: Some(listener), elsewhere: Elsewhere::forwarded(pool) })
}

/// Checks of the port and of the way to other nodes, for `doctor`.
#[derive(Debug)]
struct PortChecks {
    settings: ClusterSettings,
    node: String,
    pool: Arc<PeerPool>,
}

impl PeerChecks for PortChecks {
    fn check_settings(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async move {
            let (settings, node) = (self.settings.clone(), self.node.clone());
            let checked = run_blocking(move || Ok(check_settings(&settings, &node, SystemTime::now()))).await;
            checked.unwrap_or_default().into_iter().map(to_check).collect()
        })
    }

    fn reach<'a>(&'a self, node: &'a str, address: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let target = PeerAddress { id: node.to_owned(), address: address.to_owned() };
            self.pool
                .probe(&target)
                .await
                .map_err(|failure| Error { hint: failure.hint, ..Error::new(ErrorKind::Busy, failure.reason) })
        })
    }
}

fn to_check(found: SettingCheck) -> Check {
    let verdict = match found.state {
        CheckState::Ok => Verdict::Ok,
        CheckState::Warning => Verdict::Warn,
        CheckState::Failed => Verdict::Fail,
    };
    Check { name: format!("cluster.{}", found.setting), verdict, text: found.text, hint: found.hint }
}

/// Returns the settings of the port; `None` if there is none.
fn settings(config: &ClusterConfig) -> Result<Option<ClusterSettings>> {
    let Some(listen) = config.listen.clone() else { return Ok(None) };
    let ClusterConfig { advertise: Some(advertise), ca: Some(ca), cert: Some(cert), key: Some(key), .. } =
        config.clone()
    else {
        let keys = [
            ("advertise", config.advertise.is_some()),
            ("ca", config.ca.is_some()),
            ("cert", config.cert.is_some()),
            ("key", config.key.is_some()),
        ];
        let missing: Vec<_> = keys.iter().filter(|(_, is_set)| !is_set).map(|(key, _)| *key).collect();
        let missing = missing.join(", ");
        let what = format!("`listen` of [cluster] is set, and these keys are missing: {missing}");
        return Err(Error::new(ErrorKind::InvalidConfig, what)
            .hint("set them too; chorusctl cluster cert creates the files for ca, cert and key"));
    };
    Ok(Some(ClusterSettings { listen, advertise, ca, cert, key }))
}

/// Returns the name of this node.
///
/// # Errors
/// `invalid_config` if the configuration has none and the host's name cannot be one.
pub(super) fn node_name(config: &ClusterConfig) -> Result<String> {
    config.node.clone().map_or_else(host_name, Ok)
}

fn host_name() -> Result<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let usable = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if usable {
        return Ok(name.into_owned());
    }
    Err(Error::new(ErrorKind::InvalidConfig, format!("the name of this host, {name:?}, cannot be that of a node"))
        .hint("set node in the table [cluster]"))
}
