//! The port for other nodes, and the way to theirs, as `[cluster]` names them.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_config::ClusterConfig;
use chorus_engine::ops::Ops;
use chorus_engine::ops::daemon::VERSION;
use chorus_peers::{
    ClusterCredentials, ClusterSettings, ListenerLimits, LocalNode, PeerListener, PeerPool, PoolLimits,
};
use chorus_proto::ErrorKind;
use chorus_store::Store;
use tokio_util::sync::CancellationToken;

use crate::server::Elsewhere;

/// The port, and what becomes of requests for agents of others.
pub(super) struct Ports {
    pub(super) listener: Option<PeerListener>,
    pub(super) elsewhere: Elsewhere,
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
    let max_frame = ops.config.max_frame;
    let limits = ListenerLimits { max_frame, ..ListenerLimits::default() };
    let listener = PeerListener::bind(credentials.clone(), node.clone(), limits, stop.clone()).await?;
    let pool = Arc::new(PeerPool::new(credentials, node, PoolLimits { max_frame, ..PoolLimits::default() }));
    chorus_runtime::spawn(leave_silent_nodes(ops.store.clone(), pool.clone(), stop.clone()));
    Ok(Ports { listener: Some(listener), elsewhere: Elsewhere::forwarded(pool) })
}

/// Ends the connections to nodes that have fallen silent: who waits for them asks whoever has the agent then.
async fn leave_silent_nodes(store: Arc<Store>, pool: Arc<PeerPool>, stop: CancellationToken) {
    let Some(ownership) = &store.ownership else { return };
    let leave = async {
        while let Ok(nodes) = ownership.fallen_silent().await {
            for node in nodes {
                tracing::warn!(node, "another node has fallen silent");
                pool.disconnect(&node);
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = leave => {}
    }
}

/// Returns the settings of the port; `None` if there is none.
fn settings(config: &ClusterConfig) -> Result<Option<ClusterSettings>> {
    let Some(listen) = config.listen.clone() else { return Ok(None) };
    let ClusterConfig { advertise: Some(advertise), ca: Some(ca), cert: Some(cert), key: Some(key), .. } =
        config.clone()
    else {
        return Err(Error::new(ErrorKind::InvalidConfig, "`listen` of [cluster] is set, and other keys are missing")
            .hint("set advertise, ca, cert and key, too"));
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
