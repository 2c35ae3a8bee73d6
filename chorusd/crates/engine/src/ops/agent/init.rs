//! The operation `agent.init`.

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{FileSnapshot, TEMPORARY_PREFIX, create_private, move_dir, write_private};
use chorus_base::requester::Requester;
use chorus_catalog::AuditDecision;
use chorus_config::Config;
use chorus_config::agent::{AGENT_FILE, AgentConfig, MAX_NAME_CHARS, check_name, normalise, render};
use chorus_permissions::Profiles;
use chorus_proto::methods::agent::{InitParams, InitResult};
use chorus_proto::{AgentStatus, ErrorKind, EventType};
use chorus_runtime::run_blocking;
use chorus_store::session_files::stamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::discord_channel::NewAgentChannel;
use super::{AGENTS_DIR, AgentEditor, AgentResolver, agent_entry, agent_row, ensure_may_grant, text_or_null};
use crate::agent::agent_index::AgentEntry;
use crate::ops::catalog_sync;
use crate::ops::catalog_sync::CatalogSync;
use crate::{agent_template, git_init};

/// Creates an agent, or revives one whose directory was kept. If a step fails, the earlier ones are undone.
pub async fn init(editor: &AgentEditor, catalog_sync: &CatalogSync, params: InitParams) -> Result<InitResult> {
    editor.agents.claims.check_may_create(&params.name).await?;
    init_as(editor, catalog_sync, params, &Requester::Owner, None).await
}

/// Like [`init`], on behalf of `by`; the agent's channel is created in the Discord server `guild`.
///
/// # Errors
/// As [`init`]; `denied` if `by` may not grant the permissions, or is not the owner and the name has a kept directory.
pub async fn init_as(
    editor: &AgentEditor,
    catalog_sync: &CatalogSync,
    params: InitParams,
    by: &Requester,
    guild: Option<u64>,
) -> Result<InitResult> {
    check_name(&params.name)?;
    let mut overrides = build_overrides(&params, &editor.config.current().profiles)?;
    if let Some(permissions) = overrides.get("permissions").filter(|permissions| !permissions.is_null()) {
        ensure_may_grant(&editor.config.current(), by, permissions)?;
    }
    if let Some(model) = params.model.as_deref().filter(|model| !model.is_empty()) {
        editor.models.check_assignable(model)?;
    }
    let name = params.name;
    ensure_name_free(&editor.agents, &name, by).await?;
    // Before the lock is acquired, because Discord may be slow and must not delay others.
    let agents = &editor.agents;
    let channel =
        NewAgentChannel::create(agents, &name, params.system_prompt, guild, &agents.home.join(AGENTS_DIR).join(&name))
            .await?;
    overrides.extend(channel.keys());
    match init_locked(editor, catalog_sync, &name, overrides, &channel, by).await {
        Ok(made) => Ok(InitResult { warnings: channel.warnings, ..made }),
        Err(failure) => {
            channel.delete_if_created(&agents.discord).await;
            Err(failure)
        }
    }
}

/// Returns the agent that holds the imported conversations of `source`, such as `claude-code`; creates it if there is
/// none. An agent that a person gave this name is used as it is.
pub async fn ensure_import_agent(
    editor: &AgentEditor,
    catalog_sync: &CatalogSync,
    source: &str,
) -> Result<Arc<AgentEntry>> {
    let agents = &editor.agents;
    let name = match find_import_agent(agents, source).await? {
        ImportAgent::Found(entry) => return Ok(entry),
        ImportAgent::ToCreate(name) => name,
    };
    let overrides = Map::from_iter([("import_source".to_owned(), Value::from(source))]);
    let made =
        init_locked(editor, catalog_sync, &name, overrides, &NewAgentChannel::default(), &Requester::Owner).await;
    match made {
        Err(failure) if failure.kind != ErrorKind::AlreadyExists => Err(failure),
        // Another import may have created it in the meantime.
        _ => agents.index.by_name(&name).ok_or_else(Error::agent_destroyed),
    }
}

/// The agent for the imported conversations of a program.
enum ImportAgent {
    Found(Arc<AgentEntry>),
    /// There is none; with the name that it gets.
    ToCreate(String),
}

/// Finds the agent of `source` on this node. In a cluster each node has its own, because transcripts are on its machine: that
/// of the first node has the name of the program, and that of another one ends with the name of its node.
async fn find_import_agent(agents: &AgentResolver, source: &str) -> Result<ImportAgent> {
    let here = |name: &str| agents.index.by_name(name).filter(|entry| agents.claims.has(entry.settings.id));
    if let Some(entry) = here(source) {
        return Ok(ImportAgent::Found(entry));
    }
    let Some(ownership) = &agents.claims.store.ownership else { return Ok(ImportAgent::ToCreate(source.to_owned())) };
    let Some(first) = agents.table.find(source.to_owned()).await? else {
        return Ok(ImportAgent::ToCreate(source.to_owned()));
    };
    // What this node had, it has again since its start. So it is another node's, or nobody has had it yet.
    if !ownership.was_owned(first.id).await?
        && let Some(entry) = agents.claims.find(source).await?
    {
        return Ok(ImportAgent::Found(entry));
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let node: String = ownership.node().chars().map(plain).collect();
    let own: String = format!("{source}-{node}").chars().take(MAX_NAME_CHARS).collect();
    match here(&own) {
        Some(entry) => Ok(ImportAgent::Found(entry)),
        None => Ok(agents.claims.find(&own).await?.map_or(ImportAgent::ToCreate(own), ImportAgent::Found)),
    }
}

/// Checks that `by` may create an agent with this name. Only the owner may revive a kept directory, because it comes
/// back with its permissions and conversations, possibly with people of other servers.
async fn ensure_name_free(agents: &AgentResolver, name: &str, by: &Requester) -> Result<()> {
    // Without a cluster the index has all agents.
    let is_taken = agents.index.by_name(name).is_some()
        || (agents.claims.store.ownership.is_some() && agents.table.find(name.to_owned()).await?.is_some());
    if is_taken {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("agent {name} already exists"))
            .hint(format!("choose another name, or see it: chorusctl agent show {name}")));
    }
    if *by != Requester::Owner && agents.home.join(AGENTS_DIR).join(name).symlink_metadata().is_ok() {
        return Err(Error::new(ErrorKind::Denied, format!("files of a destroyed agent {name} were kept"))
            .hint(format!("choose another name; or restore it at a terminal: chorusctl agent init {name}")));
    }
    Ok(())
}

/// Creates the agent; its channel exists already.
async fn init_locked(
    editor: &AgentEditor,
    catalog_sync: &CatalogSync,
    name: &str,
    overrides: Map<String, Value>,
    channel: &NewAgentChannel,
    by: &Requester,
) -> Result<InitResult> {
    let agents = &editor.agents;
    let _one_at_a_time = agents.lock.lock().await;
    ensure_name_free(agents, name, by).await?;
    let dir = format!("{AGENTS_DIR}/{name}");
    let target = agents.home.join(&dir);
    let revived = target.symlink_metadata().is_ok();
    let made = if revived {
        revive_agent_dir(agents.config.current(), target.clone(), name, overrides).await?
    } else {
        create_agent_dir(agents, target.clone(), name, overrides, editor.clock.now()).await?
    };
    if let Err(failure) = register_agent(editor, &dir, &made, channel, by).await {
        let _ = run_blocking(move || {
            made.undo.roll_back();
            Ok(())
        })
        .await;
        return Err(failure);
    }
    let new = agents.index.insert(agent_entry(&agents.home, &dir, &made.config, made.stamp.clone()));
    agents.claims.store_files_of(&new).await;
    tracing::info!(agent = %name, id = %made.config.id, revived, "agent created");
    editor.registry.emit_event(EventType::AgentCreated, Some(name.to_owned()), None, json!({"id": made.config.id}));
    channel.on_agent_created(&agents.discord, &new);
    if revived {
        // So that sessions in the directory appear in the history immediately.
        catalog_sync.try_sync_sessions(&new.settings).await;
        let identities = editor.store.catalog.sessions.identities_of_agent(new.settings.id).await;
        let restored = async { editor.deleted.remove_identities(&identities?).await };
        if let Err(failure) = restored.await {
            tracing::warn!(agent = %name, %failure, "its conversations are not captured again yet");
        }
    }
    Ok(InitResult { agent: editor.describer.describe_changed(&new).await, revived, warnings: Vec::new() })
}

/// A directory that is in place, and how to undo that.
struct PreparedAgent {
    config: AgentConfig,
    stamp: String,
    undo: InitRollback,
}

/// The changes that a failed init undoes.
struct InitRollback {
    /// The agent.json that was there before.
    previous_config: Option<FileSnapshot>,
    /// Directories that did not exist before.
    created_dirs: Vec<PathBuf>,
}

impl InitRollback {
    /// Records a directory that is about to be created, unless it exists already.
    fn add_unless_exists(&mut self, dir: PathBuf) {
        if dir.symlink_metadata().is_err() {
            self.created_dirs.push(dir);
        }
    }

    /// Undoes the changes. Blocks.
    fn roll_back(&self) {
        let there = self.created_dirs.iter().filter(|dir| dir.exists());
        for undone in there.map(std::fs::remove_dir_all).chain(self.previous_config.iter().map(FileSnapshot::restore)) {
            if let Err(e) = undone {
                tracing::error!("cannot undo a failed init: {e}");
            }
        }
    }
}

fn build_overrides(params: &InitParams, profiles: &Profiles) -> Result<Map<String, Value>> {
    let given = [
        ("system_prompt", text_or_null(params.system_prompt.clone())),
        ("model", text_or_null(params.model.clone())),
        ("permissions", text_or_null(params.permissions.clone())),
        ("idle_timeout", text_or_null(params.idle_timeout.clone())),
    ];
    let mut map = Map::new();
    for (key, value) in given {
        if let Some(value) = value {
            map.insert(key.to_owned(), normalise(key, value, profiles)?);
        }
    }
    Ok(map)
}

/// Builds the directory under a temporary name and moves it into place complete.
async fn create_agent_dir(
    agents: &AgentResolver,
    target: PathBuf,
    name: &str,
    overrides: Map<String, Value>,
    now: Timestamp,
) -> Result<PreparedAgent> {
    let home = agents.home.clone();
    let defaults = agents.config.current();
    let name = name.to_owned();
    let now = now.to_string();
    run_blocking(move || {
        let agents = home.join(AGENTS_DIR);
        catalog_sync::remove_unfinished_dirs(&agents);
        let staging = agents.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
        let made = (|| {
            let failed = |e: &std::io::Error| Error::io(format_args!("cannot create {}", target.display()), e);
            create_private(&staging).map_err(|e| failed(&e))?;
            let text = agent_template::fill_agent_dir(&staging, &home).map_err(|e| failed(&e))?;
            let mut map: Map<String, Value> = serde_json::from_str(&text).map_err(|e| {
                Error::new(ErrorKind::InvalidConfig, format!("agent.json of the template is not a JSON object: {e}"))
                    .hint(format!("fix {}", home.join("template").join(AGENT_FILE).display()))
            })?;
            map.insert("id".into(), Uuid::new_v4().to_string().into());
            map.insert("created_at".into(), now.into());
            let config = merge_config(map, &name, overrides, &defaults)?;
            let stamp = write_config(&staging, &config).map_err(|e| failed(&e))?;
            git_init::init_repository(&staging.join("workspace"))?;
            move_dir(&staging, &target).map_err(|e| failed(&e))?;
            let created_dirs = iter::once(target).chain(config.shared_dir.clone()).collect();
            Ok(PreparedAgent { config, stamp, undo: InitRollback { previous_config: None, created_dirs } })
        })();
        // In any case: the first call may have had no descriptor to list the directory with.
        catalog_sync::remove_unfinished_dirs(&agents);
        made
    })
    .await
}

/// Revives a directory that `destroy --keep-files` left, or that a rebuilt home has.
async fn revive_agent_dir(
    defaults: Arc<Config>,
    target: PathBuf,
    name: &str,
    overrides: Map<String, Value>,
) -> Result<PreparedAgent> {
    let name = name.to_owned();
    run_blocking(move || {
        let path = target.join(AGENT_FILE);
        let unusable = |why: String| {
            Error::new(
                ErrorKind::AlreadyExists,
                format!("{} already exists and cannot be used: {why}", target.display()),
            )
            .hint("move it, or repair its agent.json")
        };
        let before = FileSnapshot::read(path).map_err(|e| unusable(format!("cannot read agent.json: {e}")))?;
        let map: Map<String, Value> = serde_json::from_str(&before.text)
            .map_err(|e| unusable(format!("agent.json is not a JSON object: {e}")))?;
        let config = merge_config(map, &name, overrides, &defaults)?;
        let failed = |e: &std::io::Error| Error::io(format_args!("cannot restore {}", target.display()), e);
        let mut undo = InitRollback { previous_config: Some(before), created_dirs: Vec::new() };
        let revived = (|| {
            for part in ["docs", "sessions", "workspace"] {
                undo.add_unless_exists(target.join(part));
                create_private(&target.join(part)).map_err(|e| failed(&e))?;
            }
            let repository = target.join("workspace/.git");
            // The one that the nodes share is looked at when the agent is claimed.
            let is_shared = config.shared_dir.as_ref().is_some_and(|dir| dir.join("workspace").exists());
            if !repository.exists() && !is_shared {
                undo.add_unless_exists(repository);
                git_init::init_repository(&target.join("workspace"))?;
            }
            write_config(&target, &config).map_err(|e| failed(&e))
        })();
        match revived {
            Ok(stamp) => Ok(PreparedAgent { config, stamp, undo }),
            Err(failure) => {
                undo.roll_back();
                Err(failure)
            }
        }
    })
    .await
}

fn merge_config(
    mut map: Map<String, Value>,
    name: &str,
    overrides: Map<String, Value>,
    defaults: &Config,
) -> Result<AgentConfig> {
    map.insert("name".into(), name.into());
    for (key, value) in overrides {
        map.insert(key, value);
    }
    let config = AgentConfig::from_map(map, defaults);
    config.and_then(|config| config.profile.clone().map(|_| config)).map_err(|e| {
        Error::new(ErrorKind::InvalidConfig, format!("agent.json {e}"))
            .hint("fix it in the template or in the kept files")
    })
}

/// Writes agent.json and returns the file's stamp.
pub fn write_config(dir: &Path, config: &AgentConfig) -> std::io::Result<String> {
    let path = dir.join(AGENT_FILE);
    write_private(&path, render(config.map()).as_bytes())?;
    Ok(stamp(&std::fs::metadata(&path)?))
}

async fn register_agent(
    editor: &AgentEditor,
    dir: &str,
    made: &PreparedAgent,
    channel: &NewAgentChannel,
    by: &Requester,
) -> Result<()> {
    // A copied directory has the id of the agent that it was copied from.
    if let Some(other) = editor.agents.index.by_id(made.config.id) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("the kept agent.json has the same `id` as agent {}", other.settings.name),
        )
        .hint("remove `id` from the copy's agent.json, or set a new UUID"));
    }
    let claims = &editor.agents.claims;
    claims.claim_new(made.config.id, &made.config.name).await?;
    let dir_here = editor.agents.home.join(dir);
    match made.undo.previous_config {
        None => claims.move_new_workspace((made.config.id, &dir_here)).await?,
        Some(_) => claims.settle_kept_workspace((made.config.id, &dir_here)).await?,
    }
    let row = agent_row(dir, &made.config, made.stamp.clone());
    debug_assert_eq!(row.status, AgentStatus::Active);
    if *by != Requester::Owner {
        editor.store.catalog.audit.append(audit_row_of_init(editor.clock.now(), &made.config, by)).await?;
    }
    channel.register_agent(&editor.agents, &editor.store.catalog.discord, dir, &made.config, row).await
}

/// Builds the audit row for an agent that a requester other than the owner created.
fn audit_row_of_init(at: Timestamp, config: &AgentConfig, by: &Requester) -> AuditDecision {
    AuditDecision {
        at,
        agent: config.id,
        agent_name: config.name.clone(),
        turn: None,
        action: "agent.init".into(),
        decision: "changed".into(),
        rule: "agent init".into(),
        user: by.to_string(),
        old: None,
        new: Some(config.permissions.to_string()),
    }
}
