//! `agent.init`.

use std::path::{Path, PathBuf};

use chorus_proto::methods::agent::{InitParams, InitResult};
use chorus_proto::{AgentStatus, ErrorKind, EventType};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::room::Room;
use super::{AGENTS, entry, may_grant, row, text_or_null};
use crate::config::Config;
use crate::config::agent::{AgentConfig, FILE, check_name, normalise, render};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking, scan, view};
use crate::permissions::Profiles;
use crate::store::agents_dir::{Before, create_private, move_dir, write_private};
use crate::store::catalog::Audit;
use crate::store::session_files::{TEMPORARY, stamp};
use crate::who::Requester;
use crate::{git, template};

/// Makes an agent, or revives one whose directory was kept. Where a step fails, those before it are undone.
///
/// # Errors
/// `invalid_name`, `invalid_params`, `model_unavailable`, `already_exists`, `git_failed`, `discord_failed`, `disk_full`,
/// `storage_failed`.
pub async fn init(ops: &Ops, params: InitParams) -> Result<InitResult> {
    init_for(ops, params, &Requester::Owner, None).await
}

/// As [`init`], for somebody else than the owner, whose channel is made in the server `guild` of Discord.
///
/// # Errors
/// As [`init`]; `denied` where they may not grant the permissions, and for a directory that was kept.
pub async fn init_for(ops: &Ops, params: InitParams, by: &Requester, guild: Option<u64>) -> Result<InitResult> {
    check_name(&params.name)?;
    let mut overrides = overrides(&params, &ops.config.profiles)?;
    if let Some(permissions) = overrides.get("permissions").filter(|permissions| !permissions.is_null()) {
        may_grant(ops, by, permissions)?;
    }
    if let Some(model) = params.model.as_deref().filter(|model| !model.is_empty()) {
        ops.models.admit(model)?;
    }
    let name = params.name;
    is_free(ops, &name, by)?;
    // Before the lock is taken: Discord may be slow, and nobody else is to wait for it.
    let room = Room::make(ops, &name, params.system_prompt, guild, &ops.home.join(AGENTS).join(&name)).await?;
    overrides.extend(room.keys());
    match make(ops, &name, overrides, &room, by).await {
        Ok(made) => Ok(InitResult { warnings: room.warnings, ..made }),
        Err(failure) => {
            room.undo(ops).await;
            Err(failure)
        }
    }
}

/// Whether `by` may make an agent of this name. What was kept of one comes back with its permissions and all that it was told, also by
/// people of other servers: that is for the owner.
fn is_free(ops: &Ops, name: &str, by: &Requester) -> Result<()> {
    if ops.directory.by_name(name).is_some() {
        return Err(Failure::new(ErrorKind::AlreadyExists, format!("there is an agent {name} already"))
            .hint(format!("`chorusctl agent show {name}`, or choose another name")));
    }
    if *by != Requester::Owner && ops.home.join(AGENTS).join(name).symlink_metadata().is_ok() {
        return Err(Failure::new(ErrorKind::Denied, format!("an agent {name} was kept"))
            .hint(format!("take it up at the terminal: `chorusctl agent init {name}`, or choose another name")));
    }
    Ok(())
}

/// All but the channel, which is there.
async fn make(ops: &Ops, name: &str, overrides: Map<String, Value>, room: &Room, by: &Requester) -> Result<InitResult> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    is_free(ops, name, by)?;
    let dir = format!("{AGENTS}/{name}");
    let target = ops.home.join(&dir);
    let revived = target.symlink_metadata().is_ok();
    let made = if revived {
        revive(ops, target.clone(), name, overrides).await?
    } else {
        create(ops, target.clone(), name, overrides).await?
    };
    if let Err(failure) = enrol(ops, &dir, &made, room, by).await {
        let _ = blocking(move || {
            made.undo.carry_out();
            Ok(())
        })
        .await;
        return Err(failure);
    }
    let new = ops.directory.put(entry(&ops.home, &dir, &made.config, made.stamp.clone()));
    tracing::info!(agent = %name, id = %made.config.id, revived, "agent made");
    ops.registry.tell(EventType::AgentCreated, Some(name.to_owned()), json!({"id": made.config.id}));
    room.open(ops, &new);
    if revived {
        // Sessions that came with the directory are in the history from the first answer on.
        scan::if_possible(ops, &new.facts).await;
    }
    Ok(InitResult { agent: view::changed(ops, &new).await, revived, warnings: Vec::new() })
}

/// A directory that is in place, and how it was before.
struct Made {
    config: AgentConfig,
    stamp: String,
    undo: Undo,
}

/// What an init that fails takes back.
struct Undo {
    /// The agent.json that stood there.
    before: Option<Before>,
    /// Directories that were not there.
    made: Vec<PathBuf>,
}

impl Undo {
    /// Notes a directory that is about to be made, unless it is there already.
    fn unless_there(&mut self, dir: PathBuf) {
        if dir.symlink_metadata().is_err() {
            self.made.push(dir);
        }
    }

    /// Blocks.
    fn carry_out(&self) {
        let there = self.made.iter().filter(|dir| dir.exists());
        for undone in there.map(std::fs::remove_dir_all).chain(self.before.iter().map(Before::put_back)) {
            if let Err(e) = undone {
                tracing::error!("a failed init could not be undone: {e}");
            }
        }
    }
}

fn overrides(params: &InitParams, profiles: &Profiles) -> Result<Map<String, Value>> {
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

/// Builds the directory aside and moves it into place whole.
async fn create(ops: &Ops, target: PathBuf, name: &str, overrides: Map<String, Value>) -> Result<Made> {
    let home = ops.home.clone();
    let defaults = ops.defaults();
    let name = name.to_owned();
    let now = ops.clock.now().to_string();
    blocking(move || {
        let agents = home.join(AGENTS);
        scan::sweep(&agents);
        let staging = agents.join(format!("{TEMPORARY}{}", Uuid::new_v4()));
        let made = (|| {
            let failed = |e: &std::io::Error| Failure::io(format_args!("cannot make {}", target.display()), e);
            create_private(&staging).map_err(|e| failed(&e))?;
            let text = template::fill(&staging, &home).map_err(|e| failed(&e))?;
            let mut map: Map<String, Value> = serde_json::from_str(&text).map_err(|e| {
                Failure::new(ErrorKind::InvalidConfig, format!("agent.json of the template is no JSON object: {e}"))
                    .hint(format!("correct {}", home.join("template").join(FILE).display()))
            })?;
            map.insert("id".into(), Uuid::new_v4().to_string().into());
            map.insert("created_at".into(), now.into());
            let config = merge(map, &name, overrides, &defaults)?;
            let stamp = put_config(&staging, &config).map_err(|e| failed(&e))?;
            git::init(&staging.join("workspace"))?;
            move_dir(&staging, &target).map_err(|e| failed(&e))?;
            Ok(Made { config, stamp, undo: Undo { before: None, made: vec![target] } })
        })();
        // Whether it was made or not: the sweep before it may have had no descriptor to look with.
        scan::sweep(&agents);
        made
    })
    .await
}

/// Takes up a directory that `destroy --keep-files` left, or that a rebuilt home has.
async fn revive(ops: &Ops, target: PathBuf, name: &str, overrides: Map<String, Value>) -> Result<Made> {
    let defaults = ops.defaults();
    let name = name.to_owned();
    blocking(move || {
        let path = target.join(FILE);
        let unusable = |why: String| {
            Failure::new(ErrorKind::AlreadyExists, format!("{} is in the way: {why}", target.display()))
                .hint("move it elsewhere, or mend its agent.json")
        };
        let before = Before::of(path).map_err(|e| unusable(format!("agent.json cannot be read: {e}")))?;
        let map: Map<String, Value> =
            serde_json::from_str(&before.text).map_err(|e| unusable(format!("agent.json is no JSON object: {e}")))?;
        let config = merge(map, &name, overrides, &defaults)?;
        let failed = |e: &std::io::Error| Failure::io(format_args!("cannot revive {}", target.display()), e);
        let mut undo = Undo { before: Some(before), made: Vec::new() };
        let revived = (|| {
            for part in ["docs", "sessions", "workspace"] {
                undo.unless_there(target.join(part));
                create_private(&target.join(part)).map_err(|e| failed(&e))?;
            }
            let repository = target.join("workspace/.git");
            if !repository.exists() {
                undo.unless_there(repository);
                git::init(&target.join("workspace"))?;
            }
            put_config(&target, &config).map_err(|e| failed(&e))
        })();
        match revived {
            Ok(stamp) => Ok(Made { config, stamp, undo }),
            Err(failure) => {
                undo.carry_out();
                Err(failure)
            }
        }
    })
    .await
}

fn merge(
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
        Failure::new(ErrorKind::InvalidConfig, format!("agent.json {e}"))
            .hint("correct it in the template or the kept files")
    })
}

/// Writes agent.json; answers the file's stamp.
pub fn put_config(dir: &Path, config: &AgentConfig) -> std::io::Result<String> {
    let path = dir.join(FILE);
    write_private(&path, render(config.map()).as_bytes())?;
    Ok(stamp(&std::fs::metadata(&path)?))
}

async fn enrol(ops: &Ops, dir: &str, made: &Made, room: &Room, by: &Requester) -> Result<()> {
    // A copy of a directory brings the id of the agent it was copied from.
    if let Some(other) = ops.directory.by_id(made.config.id) {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("the kept agent.json has the id of the agent {}", other.facts.name),
        )
        .hint("remove `id` from the copy's agent.json or give it a new UUID"));
    }
    let row = row(dir, &made.config, made.stamp.clone());
    debug_assert_eq!(row.status, AgentStatus::Active);
    if *by != Requester::Owner {
        ops.store.catalog.audit(audited(ops, &made.config, by)).await?;
    }
    room.enrol(ops, dir, &made.config, row).await
}

/// That somebody else than the owner made an agent, as the audit log has it.
fn audited(ops: &Ops, config: &AgentConfig, by: &Requester) -> Audit {
    Audit {
        at: ops.clock.now(),
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
