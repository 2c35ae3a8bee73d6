//! Which agents this daemon has among those of a cluster: they are claimed at the first request for them, and are then in
//! the index. Without a cluster, this daemon has them all.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Elsewhere, Error, Result};
use chorus_base::private_fs::create_private;
use chorus_catalog::AgentRow;
use chorus_config::agent::{AGENT_FILE, AgentConfig};
use chorus_journal::{Claim, ContextRow, Owner, Ownership};
use chorus_proto::{AgentStatus, ErrorKind};
use chorus_runtime::run_blocking;
use chorus_store::session_files::stamp;
use chorus_store::{AgentDir, Store};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::failed_adoptions::FailedAdoptions;
use super::init::write_config;
use super::moves::AgentMoves;
use super::owner_hints::OwnerHints;
use super::workspace_notice::WorkspaceNotice;
use crate::KeyedMutex;
use crate::agent::agent_index::{AgentEntry, AgentIndex};
use crate::agent::registry::Registry;
use crate::agent::shared_workspace;
use crate::ops::cluster::PeerChecksCell;
use crate::ops::settings::EffectiveConfig;

/// Directories of an agent that has none on this machine yet.
const DIRS: [&str; 3] = ["docs", "sessions", "workspace"];

/// Limit of the agents that are claimed in one statement if they move here.
const HANDOVERS_AT_ONCE: u32 = 100;

/// Limit of the agents that are taken on at a time, unless requests ask for them.
const ADOPTIONS_AT_ONCE: usize = 4;

/// Claims agents, and takes them on.
#[derive(Debug)]
pub struct AgentClaims {
    pub store: Arc<Store>,
    pub index: Arc<AgentIndex>,
    pub registry: Arc<Registry>,
    pub config: Arc<EffectiveConfig>,
    pub home: PathBuf,
    pub locks: KeyedMutex<Uuid>,
    pub owner_hints: OwnerHints,
    pub moves: AgentMoves,
    pub failed: FailedAdoptions,
    pub peer_checks: PeerChecksCell,
}

impl AgentClaims {
    /// Returns whether this daemon has the agent, so that it may read its files and write for it.
    #[must_use]
    pub fn has(&self, agent: Uuid) -> bool {
        match &self.store.ownership {
            None => true,
            Some(ownership) => ownership.owns(agent) && self.registry.is_adopted(agent),
        }
    }

    /// Makes sure that this daemon has the agent, which is called `name` as far as is known.
    ///
    /// # Errors
    /// [`Error::elsewhere`] if another daemon has it.
    pub async fn ensure(&self, agent: Uuid, name: &str) -> Result<()> {
        match &self.store.ownership {
            Some(ownership) if !self.has(agent) => self.take_on(&**ownership, agent, name).await,
            _ => Ok(()),
        }
    }

    /// Makes sure that this daemon has an agent that only the row of something else names: of an approval, or of a task.
    ///
    /// # Errors
    /// As [`AgentClaims::ensure`].
    pub async fn ensure_by_id(&self, agent: Uuid) -> Result<()> {
        if self.has(agent) { Ok(()) } else { self.find_by_id(agent).await.map(drop) }
    }

    /// Checks that a new agent may be created here, before anything of it exists.
    ///
    /// # Errors
    /// [`Error::elsewhere`] if this node is to have no agents, and another can have this one.
    pub async fn check_may_create(&self, name: &str) -> Result<()> {
        let Some(ownership) = self.store.ownership.as_ref().filter(|ownership| ownership.is_draining()) else {
            return Ok(());
        };
        match ownership.find_successor().await? {
            Some(Owner { node, address }) => Err(Error::elsewhere(name, Elsewhere { node, address })),
            None => Ok(()),
        }
    }

    /// Claims an agent that is about to be created, or comes back.
    ///
    /// # Errors
    /// As [`AgentClaims::ensure`].
    pub async fn claim_new(&self, agent: Uuid, name: &str) -> Result<()> {
        let Some(ownership) = &self.store.ownership else { return Ok(()) };
        if self.has(agent) {
            return Ok(());
        }
        let _alone = self.locks.lock(agent).await;
        if self.has(agent) {
            return Ok(());
        }
        granted(ownership.claim_new(agent).await?, name)?;
        self.adopt(&**ownership, agent).await
    }

    /// Finds an agent that is not in the index because another daemon has it or nobody does, and takes it on.
    ///
    /// # Errors
    /// As [`AgentClaims::ensure`].
    pub async fn find(&self, name: &str) -> Result<Option<Arc<AgentEntry>>> {
        if self.store.ownership.is_none() {
            return Ok(None);
        }
        if let Some(there) = self.owner_hints.find(name) {
            return Err(there);
        }
        let Some(row) = self.store.catalog.agents.find(name.to_owned()).await? else { return Ok(None) };
        self.ensure(row.id, name).await.inspect_err(|failure| self.owner_hints.note(name, name, failure))?;
        Ok(self.index.by_id(row.id))
    }

    /// Returns the agent for requests that name none, if the daemons of a cluster have to agree on it: the selected one, which
    /// another daemon may have. `None` without a cluster, or if the index of this daemon has all agents.
    ///
    /// # Errors
    /// As [`AgentClaims::ensure`]; `no_agent` if no agent is selected and others have some, too.
    pub async fn default_agent(&self) -> Result<Option<Arc<AgentEntry>>> {
        if self.store.ownership.is_none() {
            return Ok(None);
        }
        if let Some(selected) = self.index.selected_id() {
            return match self.index.by_id(selected).filter(|_| self.has(selected)) {
                Some(entry) => Ok(Some(entry)),
                None => self.find_by_id(selected).await,
            };
        }
        let others = self.others().await?;
        if let [only] = &others[..]
            && self.index.own_names().is_empty()
        {
            return self.find_by_id(only.settings.id).await;
        }
        if others.is_empty() {
            return Ok(None);
        }
        let what = "several agents in the cluster: which one?";
        Err(Error::new(ErrorKind::NoAgent, what).hint("name one; list them: chorusctl agent list"))
    }

    /// As [`AgentClaims::find`], by id.
    pub async fn find_by_id(&self, agent: Uuid) -> Result<Option<Arc<AgentEntry>>> {
        if self.store.ownership.is_none() {
            return Ok(None);
        }
        let id = agent.to_string();
        if let Some(there) = self.owner_hints.find(&id) {
            return Err(there);
        }
        let found = self.store.catalog.agents.list_by_id(vec![agent]).await?.pop();
        let Some(row) = found.filter(|row| row.status == AgentStatus::Active) else { return Ok(None) };
        self.ensure(agent, &row.name).await.inspect_err(|failure| self.owner_hints.note(&id, &row.name, failure))?;
        Ok(self.index.by_id(agent))
    }

    /// Returns the agents that this daemon does not have, as their rows describe them, in no particular order. Empty without
    /// a cluster.
    pub async fn others(&self) -> Result<Vec<Arc<AgentEntry>>> {
        if self.store.ownership.is_none() {
            return Ok(Vec::new());
        }
        let defaults = self.config.current();
        let rows = self.store.catalog.agents.list(false).await?.into_iter();
        let entry = |row: AgentRow| {
            let config = AgentConfig::parse(&row.config, &defaults).ok()?;
            Some(Arc::new(super::agent_entry(&self.home, &row.dir, &config, row.stamp)))
        };
        Ok(rows.filter(|row| self.index.by_id(row.id).is_none()).filter_map(entry).collect())
    }

    /// Returns an agent that another daemon may have, as its row describes it. Claims nothing.
    pub async fn describe(&self, agent: Uuid) -> Result<Option<Arc<AgentEntry>>> {
        let rows = self.store.catalog.agents.list_by_id(vec![agent]).await?;
        let row = rows.into_iter().find(|row| row.status == AgentStatus::Active);
        Ok(row.and_then(|row| self.describe_row(row)))
    }

    /// As [`AgentClaims::describe`], by name.
    pub async fn describe_by_name(&self, name: &str) -> Result<Option<Arc<AgentEntry>>> {
        let row = self.store.catalog.agents.find(name.to_owned()).await?;
        Ok(row.and_then(|row| self.describe_row(row)))
    }

    fn describe_row(&self, row: AgentRow) -> Option<Arc<AgentEntry>> {
        let config = AgentConfig::parse(&row.config, &self.config.current()).ok()?;
        Some(Arc::new(super::agent_entry(&self.home, &row.dir, &config, row.stamp)))
    }

    /// Takes on the agents that this daemon had before it ended.
    pub async fn take_on_former(&self) -> Result<()> {
        let Some(ownership) = &self.store.ownership else { return Ok(()) };
        let former = ownership.claim_former().await?;
        // Three queries for all of them.
        let mut heads: HashMap<Uuid, Vec<ContextRow>> = HashMap::new();
        for head in self.store.journal.live_contexts().await? {
            heads.entry(head.conversation.agent).or_default().push(head);
        }
        self.store.journal.conversations().await?.into_iter().for_each(|row| self.index.conversations.insert(row));
        let rows = self.store.catalog.agents.list_by_id(former.clone()).await?;
        let settled = self.settled_workspaces(&rows).await?;
        let mut failed = HashSet::new();
        for row in rows {
            if row.status != AgentStatus::Active {
                continue;
            }
            let (id, name) = (row.id, row.name.clone());
            let taken_on = async {
                let entry = self.entry_of(row, true).await?;
                if !settled.contains(&id) {
                    self.settle_former_workspace((id, &entry.settings.dir)).await?;
                }
                Ok::<_, Error>(entry)
            };
            match taken_on.await {
                Ok(entry) => drop(self.index.insert(entry)),
                Err(failure) => {
                    // The next request for it tries again.
                    tracing::error!(agent = name, %failure, "cannot take an agent on");
                    failed.insert(id);
                }
            }
        }
        for agent in former.into_iter().filter(|agent| !failed.contains(agent)) {
            let idle_timeout = self.index.by_id(agent).and_then(|entry| entry.settings.idle_timeout);
            self.registry.adopt(agent, heads.remove(&agent).unwrap_or_default(), idle_timeout);
        }
        Ok(())
    }

    /// Takes on agents that nobody has and of which something is due, at most `limit`. Returns their number.
    pub async fn take_on_due(&self, limit: u32) -> Result<usize> {
        let Some(ownership) = &self.store.ownership else { return Ok(0) };
        let due = ownership.claim_due(limit).await?;
        Ok(self.adopt_claimed(&**ownership, due).await)
    }

    /// Takes on agents that other daemons move to this one, whenever they do.
    pub async fn watch_handovers(&self) {
        let Some(ownership) = &self.store.ownership else { return };
        while ownership.wanted().await.is_ok() {
            loop {
                match ownership.claim_wanted(HANDOVERS_AT_ONCE).await {
                    Ok(wanted) if wanted.is_empty() => break,
                    Ok(wanted) => _ = self.adopt_claimed(&**ownership, wanted).await,
                    Err(failure) => {
                        // The next heartbeat finds them.
                        tracing::warn!(%failure, "cannot claim agents of another node");
                        break;
                    }
                }
            }
        }
    }

    /// Takes on agents that were claimed. Returns their number.
    async fn adopt_claimed(&self, ownership: &dyn Ownership, agents: Vec<Uuid>) -> usize {
        let count = agents.len();
        let adopt = |agent| async move {
            let _alone = self.locks.lock(agent).await;
            // Unless a request has come in between: it writes to the contexts that it has loaded.
            if ownership.owns(agent)
                && !self.has(agent)
                && let Err(failure) = self.adopt(ownership, agent).await
            {
                self.pass_on(ownership, (agent, ""), &failure).await;
            }
        };
        futures_util::stream::iter(agents).for_each_concurrent(ADOPTIONS_AT_ONCE, adopt).await;
        count
    }

    /// Ends what this daemon does for agents that others have taken over, whenever that happens.
    pub async fn watch_losses(&self) {
        let Some(ownership) = &self.store.ownership else { return };
        while let Ok(lost) = ownership.lost().await {
            // All at once, whatever holds one of them up.
            lost.iter().filter(|agent| !ownership.owns(**agent)).for_each(|agent| self.registry.abandon(*agent));
            for agent in lost {
                let _alone = self.locks.lock(agent).await;
                if ownership.owns(agent) {
                    // It is back already: with the next request, or just now.
                    continue;
                }
                tracing::warn!(%agent, "another node has taken an agent over");
                self.registry.abandon(agent);
                self.moves.abandon(agent);
                self.index.remove_moved(agent);
                self.index.conversations.forget_agent(agent);
            }
        }
    }

    /// Stores what was edited in the files of the agents that this daemon has, so that the next one gets it: of all agents, or of up to
    /// `limit` that come after `last` in the order of their ids. Returns the last of them; `None` after the last of all.
    pub async fn store_file_edits(&self, last: Option<Uuid>, limit: usize) -> Option<Uuid> {
        self.store.agent_files.as_ref()?;
        let mut entries = self.index.all();
        entries.retain(|entry| last.is_none_or(|last| entry.settings.id > last));
        entries.sort_unstable_by_key(|entry| entry.settings.id);
        let is_end = entries.len() <= limit;
        entries.truncate(limit);
        for entry in &entries {
            if self.has(entry.settings.id) {
                self.store_files_of(entry).await;
            }
        }
        entries.last().map(|entry| entry.settings.id).filter(|_| !is_end)
    }

    /// As [`AgentClaims::store_file_edits`], for one agent, which has just been created or restored.
    pub async fn store_files_of(&self, entry: &AgentEntry) {
        self.store.try_store_file_edits(files_of(entry)).await;
    }

    /// Does what has to be done before this daemon releases an agent that is well: its next owner gets the files of the
    /// agent, and the checkpoints of its workspace, as they are here. A workspace that cannot be stored stays here.
    ///
    /// # Errors
    /// Those of the database: the next owner would have older files.
    pub async fn hand_over(&self, agent: Uuid) -> Result<()> {
        match self.index.by_id(agent) {
            Some(entry) => {
                self.store.store_file_edits(files_of(&entry)).await?;
                shared_workspace::hand_over(&self.registry, &entry.settings).await;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take_on<'a>(&'a self, ownership: &'a dyn Ownership, agent: Uuid, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let _alone = self.locks.lock(agent).await;
            if self.has(agent) {
                return Ok(());
            }
            granted(ownership.claim(agent).await?, name)?;
            let Err(failure) = self.adopt(ownership, agent).await else { return Ok(()) };
            match self.pass_on(ownership, (agent, name), &failure).await {
                Some(there) => Err(Error::elsewhere(name, there)),
                None => Err(failure),
            }
        })
    }

    /// Puts an agent that this daemon owns into the index, with its conversations and contexts.
    async fn adopt(&self, ownership: &dyn Ownership, agent: Uuid) -> Result<()> {
        let rows = self.store.catalog.agents.list_by_id(vec![agent]).await?;
        let row = rows.into_iter().find(|row| row.status == AgentStatus::Active);
        self.owner_hints.remove(&agent.to_string());
        row.iter().for_each(|row| self.owner_hints.remove(&row.name));
        let heads = ownership.live_contexts_of(agent).await?;
        let conversations = ownership.conversations_of(agent).await?;
        self.index.conversations.forget_agent(agent);
        conversations.into_iter().for_each(|row| self.index.conversations.insert(row));
        let entry = match row {
            Some(row) => Some(self.entry_of(row, false).await?),
            None => None,
        };
        // Its former node has numbered its writes of files.
        self.registry.raise_file_position(self.store.catalog.file_writes.last_position().await?);
        // Also what this process did for the agent before another one had it.
        self.moves.abandon(agent);
        let left = self.moves.find_left_behind(agent).await?;
        let notice = match &entry {
            Some(entry) => {
                let epoch = ownership.epoch(agent).unwrap_or_default();
                let news = self.take_on_workspace(&entry.settings, epoch, ownership.node()).await?;
                news.map(|news| WorkspaceNotice::new(agent, epoch, news, &heads))
            }
            None => None,
        };
        // Nothing is awaited from here on: who finds the agent in the index finds its contexts.
        let idle_timeout = entry.as_ref().and_then(|entry| entry.settings.idle_timeout);
        self.registry.adopt(agent, heads, idle_timeout);
        entry.map(|entry| self.index.insert(entry));
        // Before any turn that begins from here on.
        let told = notice.map(|notice| notice.post(&self.registry));
        self.moves.close_left_behind(left);
        if let Some(told) = told {
            told.await;
        }
        if self.store.bodies.is_some() {
            // Its sessions may have changed elsewhere.
            self.store.catalog.sessions.changes().note_agent(agent);
        }
        Ok(())
    }

    /// Makes the entry of an agent. If its agent.json here is not the one that its row was made of, the file is replaced:
    /// the row is the truth. But if this node was the last that had the agent, somebody has edited the file since.
    async fn entry_of(&self, row: AgentRow, was_here: bool) -> Result<AgentEntry> {
        let defaults = self.config.current();
        let config = AgentConfig::parse(&row.config, &defaults)
            .map_err(|problem| Error::internal(format!("the agent.json of {} in the database {problem}", row.name)))?;
        let dir = self.home.join(&row.dir);
        let file = dir.join(AGENT_FILE);
        let (known, workspace) = (row.stamp.clone(), dir.join("workspace"));
        let is_shared = self.store.workspace_root.is_some();
        let here = run_blocking(move || {
            let here = inspect(&file, &known);
            if here.is_some() && !is_shared {
                // It is gone if the nodes shared the workspaces for a time.
                let made = create_private(&workspace);
                made.map_err(|e| Error::io(format_args!("cannot create {}", workspace.display()), &e))?;
            }
            Ok(here)
        })
        .await?;
        if here.as_ref().and_then(|here| here.agent).is_some_and(|other| other != row.id) {
            let what = format!("{} belongs to another agent than {}", dir.display(), row.name);
            return Err(Error::new(ErrorKind::AlreadyExists, what).hint("move the directory away on this machine"));
        }
        let is_new_here = here.is_none();
        let files = AgentDir { agent: row.id, name: row.name.clone(), dir: dir.clone() };
        let stamp = match here {
            Some(here) if was_here || here.stamp == row.stamp => row.stamp.clone(),
            _ => {
                let stamp = self.write_files(dir, config.clone()).await?;
                self.store.catalog.agents.upsert(AgentRow { stamp: stamp.clone(), ..row.clone() }).await?;
                stamp
            }
        };
        // Nobody else has had it since, if it was here: the next look finds what was edited.
        if !was_here || is_new_here {
            self.store.take_on_files(files, is_new_here).await?;
        }
        Ok(super::agent_entry(&self.home, &row.dir, &config, stamp))
    }

    /// Writes agent.json, and creates the directories around it. Returns the stamp of the file.
    async fn write_files(&self, dir: PathBuf, config: AgentConfig) -> Result<String> {
        run_blocking(move || {
            let write = || {
                create_dirs(&dir)?;
                write_config(&dir, &config)
            };
            write().map_err(|e| Error::io(format_args!("cannot write {}", dir.display()), &e))
        })
        .await
    }
}

/// An agent.json on this machine.
struct FoundFile {
    stamp: String,
    /// The id in it, if it was read.
    agent: Option<Uuid>,
}

/// Looks at an agent.json; `None` if there is none. It is not read if it has the stamp `known`. Blocks.
fn inspect(file: &Path, known: &str) -> Option<FoundFile> {
    let stamp = stamp(&std::fs::metadata(file).ok()?);
    if stamp == known {
        return Some(FoundFile { stamp, agent: None });
    }
    let json: Option<serde_json::Value> = std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let agent = json.and_then(|json| json.get("id")?.as_str()?.parse().ok());
    Some(FoundFile { stamp, agent })
}

fn create_dirs(dir: &Path) -> std::io::Result<()> {
    create_private(dir)?;
    DIRS.iter().try_for_each(|name| create_private(&dir.join(name)))
}

/// The files of an agent as the store takes them.
fn files_of(entry: &AgentEntry) -> AgentDir {
    let settings = &entry.settings;
    AgentDir { agent: settings.id, name: settings.name.clone(), dir: settings.dir.clone() }
}

fn granted(claim: Claim, name: &str) -> Result<()> {
    match claim {
        Claim::Granted { .. } => Ok(()),
        Claim::OwnedBy(Owner { node, address }) => Err(Error::elsewhere(name, Elsewhere { node, address })),
    }
}
