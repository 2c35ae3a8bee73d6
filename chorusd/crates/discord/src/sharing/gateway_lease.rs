//! The leases of the shards: this node connects those that it has, and takes its share of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_config::discord::Shards;
use chorus_engine::ops::discord::{ConnectionState, DiscordLease, GatewayOwners, LeaseClaim, SharedDiscord};
use chorus_runtime::SpawnTracked as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::app::DiscordApp;
use crate::{direct, gateway, inbound, run_shard, threads};

/// Time between two looks at who has which shard, if nobody says that one is free.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after which a node takes a shard that nobody has, beyond its share.
const UNCLAIMED_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which it keeps such a shard.
const EXTRA_TIME: Duration = Duration::from_secs(300);

/// Time between two looks whether this node still has a lease, and whether it is to have no agents any more.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Time between two attempts to read what the gateway needs, and to get a lease that was lost.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The most shards whose terms may end at once.
const MAX_ENDED: usize = 256;

/// Takes shards whenever they are free, until the daemon stops or Discord refuses this node's connection permanently.
pub(super) async fn run(app: &Arc<DiscordApp>, shared: &Arc<dyn SharedDiscord>) {
    let (ended, ends) = mpsc::channel(MAX_ENDED);
    let mut node = Node {
        app,
        shared,
        is_prepared: false,
        is_member: false,
        own: HashMap::new(),
        unclaimed: HashMap::new(),
        extra: HashMap::new(),
        ended,
        ends,
        releases: shared.releases(),
    };
    let is_refused = node.run().await;
    if let Err(failure) = shared.set_member(false).await {
        tracing::debug!(%failure, "cannot record that this node wants no shards");
    }
    node.release_all().await;
    if !is_refused {
        app.ops.discord.set_state(ConnectionState::Off);
    }
}

/// Why this node does not have a shard any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TermEnd {
    /// The daemon stops, or another node is to have it or may have it.
    Over,
    /// Discord refuses the connection permanently.
    Refused,
}

/// This node, as one of those that share the shards.
struct Node<'n> {
    app: &'n Arc<DiscordApp>,
    shared: &'n Arc<dyn SharedDiscord>,
    /// The number of shards is known.
    is_prepared: bool,
    /// Other nodes leave shards to this one.
    is_member: bool,
    /// The shards that this node has, with the tokens that end their terms.
    own: HashMap<u32, CancellationToken>,
    /// The shards that nobody has, and since when.
    unclaimed: HashMap<u32, Instant>,
    /// The shards that this node has beyond its share, because nobody else took them, and since when.
    extra: HashMap<u32, Instant>,
    ended: mpsc::Sender<(u32, TermEnd)>,
    ends: mpsc::Receiver<(u32, TermEnd)>,
    releases: watch::Receiver<u64>,
}

impl Node<'_> {
    /// Returns true if Discord refuses the connection permanently.
    async fn run(&mut self) -> bool {
        while !self.app.stop.is_cancelled() {
            // Without the database, or just after it was away, a claim is answered from memory and would be lost at once.
            let held = async {
                if let Some(ownership) = &self.app.ops.store.ownership {
                    ownership.held().await;
                }
            };
            tokio::select! {
                () = held => {}
                () = self.app.stop.cancelled() => return false,
            }
            match self.look().await {
                Ok(true) => {}
                Ok(false) => return true,
                Err(failure) => tracing::warn!(%failure, "cannot ask which nodes are connected to Discord"),
            }
            if self.wait().await == Some(TermEnd::Refused) {
                return true;
            }
        }
        false
    }

    /// Takes and releases shards. Returns false if Discord refuses the token.
    async fn look(&mut self) -> Result<bool> {
        let mut owners = self.shared.gateway_owners().await?;
        let own_name = self.app.ops.store.ownership.as_ref().map(|ownership| ownership.node().to_owned());
        let is_other = |(_, _, node): &&(u32, u32, String)| Some(node) != own_name.as_ref();
        let used = owners.shards.iter().find(is_other).map(|(_, of, _)| *of);
        if !self.is_prepared {
            if !gateway::prepare_shards(self.app, used).await {
                return Ok(self.app.stop.is_cancelled());
            }
            self.is_prepared = true;
        }
        let count = self.app.shards.count();
        if let Some((_, of, node)) = owners.shards.iter().filter(is_other).find(|(_, of, _)| *of != count) {
            // If both have some, one of them gives way.
            if own_name.as_ref() > Some(node) {
                self.own.values().for_each(CancellationToken::cancel);
            }
            if self.own.is_empty() {
                self.wait_for_same_count(*of, node);
            }
            // It takes none, so nobody leaves it any.
            self.is_member = false;
            self.shared.set_member(false).await?;
            return Ok(true);
        }
        self.shared.set_member(true).await?;
        if !std::mem::replace(&mut self.is_member, true) {
            owners = self.shared.gateway_owners().await?;
        }
        self.balance(&owners, count, own_name.as_deref()).await?;
        Ok(true)
    }

    /// Waits for a node that divides the servers otherwise: messages would reach two nodes or none.
    fn wait_for_same_count(&mut self, of: u32, node: &str) {
        let count = self.app.shards.count();
        if self.app.ops.config.discord.shards == Shards::Auto {
            self.is_prepared = false;
            return;
        }
        let why = format!("the node {node} has {of} shards, and this node is to have {count}");
        tracing::warn!(why, "not connected to Discord: set the same `shards` on all nodes");
        let now = self.app.ops.clock.now();
        let until = now.checked_add(jiff::SignedDuration::try_from(LOOK_INTERVAL).unwrap_or_default()).unwrap_or(now);
        let why = format!("{why}: set the same `shards` in [discord] on all nodes");
        for shard in 0..count {
            let state = ConnectionState::Waiting { until, why: why.clone() };
            self.app.ops.discord.set_shard_state(shard, state);
        }
    }

    async fn balance(&mut self, owners: &GatewayOwners, count: u32, own_name: Option<&str>) -> Result<()> {
        let is_draining = self.app.ops.store.ownership.as_ref().is_some_and(|ownership| ownership.is_draining());
        let share = match (is_draining, owners.members) {
            // Others are well, and take them.
            (true, 1..) => 0,
            (_, members) => count.div_ceil(members.max(1)),
        };
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let owned: HashMap<u32, &str> = owners.shards.iter().map(|(shard, _, node)| (*shard, node.as_str())).collect();
        self.unclaimed.retain(|shard, _| !owned.contains_key(shard));
        self.extra.retain(|_, since| since.elapsed() < EXTRA_TIME);
        for shard in 0..count {
            if self.own.contains_key(&shard) {
                continue;
            }
            let since = *self.unclaimed.entry(shard).or_insert_with(Instant::now);
            // One that this node could not release, it has to take up to release it.
            let is_unreleased = own_name.is_some() && owned.get(&shard).copied() == own_name;
            let is_left = is_unreleased || (!owned.contains_key(&shard) && since.elapsed() >= UNCLAIMED_TIMEOUT);
            if self.own.len() < share || is_left {
                if self.own.len() >= share && !is_unreleased {
                    self.extra.insert(shard, Instant::now());
                }
                self.claim(shard, count).await?;
            } else if let Some(node) = owned.get(&shard) {
                self.unclaimed.remove(&shard);
                let state = ConnectionState::Elsewhere { node: (*node).to_owned() };
                self.app.ops.discord.set_shard_state(shard, state);
            }
        }
        let mut last: Vec<u32> = self.own.keys().filter(|shard| !self.extra.contains_key(*shard)).copied().collect();
        let excess = last.len().saturating_sub(share);
        last.sort_unstable_by(|one, other| other.cmp(one));
        for shard in last.into_iter().take(excess) {
            tracing::info!(shard, "another node is to have a shard");
            self.own.get(&shard).inspect(|term| term.cancel());
        }
        Ok(())
    }

    async fn claim(&mut self, shard: u32, count: u32) -> Result<()> {
        match self.shared.claim(DiscordLease::Gateway { shard, of: count }).await? {
            LeaseClaim::Granted { .. } => {
                self.unclaimed.remove(&shard);
                let term = self.app.shards.begin_term(shard, &self.app.stop);
                self.own.insert(shard, term.clone());
                let (app, shared, ended) = (self.app.clone(), self.shared.clone(), self.ended.clone());
                self.app.tasks.spawn_tracked(async move {
                    let end = hold(&app, &*shared, (shard, count), term).await;
                    let _ = ended.send((shard, end)).await;
                });
            }
            LeaseClaim::OwnedBy(owner) => {
                self.unclaimed.remove(&shard);
                self.app.ops.discord.set_shard_state(shard, ConnectionState::Elsewhere { node: owner.node });
            }
        }
        Ok(())
    }

    /// Waits until something may have changed. Returns why a term ended, if one did.
    async fn wait(&mut self) -> Option<TermEnd> {
        let ownership = self.app.ops.store.ownership.clone();
        let silent = async {
            match &ownership {
                Some(ownership) if ownership.fallen_silent().await.is_ok() => {}
                _ => std::future::pending().await,
            }
        };
        let drains = async {
            let is_draining = || ownership.as_ref().is_some_and(|ownership| ownership.is_draining());
            let before = is_draining();
            while is_draining() == before {
                sleep(CHECK_INTERVAL).await;
            }
        };
        let told = async {
            if self.releases.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = sleep(LOOK_INTERVAL) => {}
            () = told => {}
            () = silent => {}
            () = drains => {}
            () = self.app.stop.cancelled() => {}
            Some((shard, end)) = self.ends.recv() => {
                self.own.remove(&shard);
                let mut end = end;
                // After a silence all end at once.
                while let Ok((shard, other)) = self.ends.try_recv() {
                    self.own.remove(&shard);
                    end = if other == TermEnd::Refused { other } else { end };
                }
                if end != TermEnd::Refused {
                    tokio::select! {
                        () = sleep(RETRY_INTERVAL) => {}
                        () = self.app.stop.cancelled() => {}
                    }
                }
                return Some(end);
            }
        }
        None
    }

    /// Ends all terms and waits until the shards are released.
    async fn release_all(&mut self) {
        self.own.values().for_each(CancellationToken::cancel);
        let mut left: HashSet<u32> = self.own.keys().copied().collect();
        while !left.is_empty() {
            let Some((shard, _)) = self.ends.recv().await else { return };
            left.remove(&shard);
        }
    }
}

/// Keeps a shard connected as long as this node has its lease, and releases it if it still has it.
async fn hold(
    app: &Arc<DiscordApp>,
    shared: &dyn SharedDiscord,
    (shard, of): (u32, u32),
    term: CancellationToken,
) -> TermEnd {
    let lease = DiscordLease::Gateway { shard, of };
    tracing::info!(shard, of, "this node has the connection to Discord");
    // Requested, because another node was told of changes.
    app.roles.forget_shard(shard, of);
    app.ops.discord.set_shard_state(shard, ConnectionState::Connecting);
    let connected = async {
        if !prepare(app, &term).await {
            return false;
        }
        run_shard(app, shard).await
    };
    let watch = async {
        while shared.holds(lease) {
            sleep(CHECK_INTERVAL).await;
        }
        term.cancel();
        std::future::pending::<()>().await;
    };
    let is_refused = tokio::select! {
        is_refused = connected => is_refused,
        () = watch => false,
    };
    term.cancel();
    inbound::end_term(app, shard);
    app.channels.forget_shard(shard, of);
    app.roles.forget_shard(shard, of);
    if !shared.holds(lease) {
        tracing::warn!(shard, "another node may have the connection to Discord now");
    } else if let Err(failure) = shared.release(lease).await {
        tracing::warn!(shard, %failure, "cannot release the connection to Discord");
    }
    if is_refused {
        return TermEnd::Refused;
    }
    app.ops.discord.set_guild_count(shard, 0);
    app.ops.discord.set_shard_state(shard, ConnectionState::Connecting);
    TermEnd::Over
}

/// Reads what other nodes have changed since this one had the shard, with retries. Returns false if the term ends before.
async fn prepare(app: &DiscordApp, term: &CancellationToken) -> bool {
    while let Err(failure) = load(app).await {
        tracing::warn!(%failure, "cannot prepare the connection to Discord; retrying");
        tokio::select! {
            () = sleep(RETRY_INTERVAL) => {}
            () = term.cancelled() => return false,
        }
    }
    !term.is_cancelled()
}

async fn load(app: &DiscordApp) -> Result<()> {
    app.channels.allowlist.reload().await?;
    app.channels.others.load(&app.ops).await?;
    threads::load(app).await;
    direct::load(app).await;
    direct::skip_unserved(app).await;
    Ok(())
}
