//! `agent.import.*`: checks the whole archive, builds the agent in a staging directory, and moves that into place in
//! one step.

mod contents;
mod session_ids;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, create_private, move_dir, remove_dir};
use chorus_catalog::{Catalog, MemoryRow, MemoryScope, MemoryTable, ScheduleRow};
use chorus_config::agent::AgentConfig;
use chorus_llm::Models;
use chorus_proto::methods::agent_transfer::{
    ImportAddParams, ImportAddResult, ImportBeginParams, ImportBeginResult, ImportCommitParams, ImportCommitResult,
};
use chorus_proto::{ErrorKind, EventType};
use chorus_runtime::run_blocking;
use chorus_sandbox::Sandbox;
use serde_json::json;
use uuid::Uuid;

use self::contents::ImportPlan;
use super::{AGENTS_DIR, AgentEditor, agent_entry, agent_row, workspace_bundle};
use crate::agent::agent_index::AgentIndex;
use crate::agent_archive::Archive;
use crate::ops::catalog_sync::CatalogSync;
use crate::ops::import_sink::create_spool;
use crate::ops::memory::audit_row_of_change;
use crate::ops::schedule::add::MAX_SCHEDULES;
use crate::ops::session::import::OnProgress;
use crate::ops::transfers::AllTransfers;

/// Opens an import on a connection.
pub async fn begin(
    transfers: &AllTransfers,
    home: &Path,
    connection: u64,
    _: ImportBeginParams,
) -> Result<ImportBeginResult> {
    let dir = home.join("db");
    let file = run_blocking(move || create_spool(&dir).map_err(|e| Error::io("cannot start an import", &e))).await?;
    Ok(ImportBeginResult { import: transfers.agent_uploads.open(connection, (), file)? })
}

/// Receives the next bytes of the archive.
pub async fn add(transfers: &Arc<AllTransfers>, connection: u64, params: ImportAddParams) -> Result<ImportAddResult> {
    let bytes = STANDARD.decode(params.data_base64).map_err(|e| {
        Error::invalid(format!("`data_base64` is not base64: {e}"))
            .hint("use the standard base64 alphabet with padding")
    })?;
    let transfers = transfers.clone();
    let received = run_blocking(move || transfers.agent_uploads.append(connection, params.import, &bytes)).await?;
    Ok(ImportAddResult { received })
}

/// Checks the archive and creates the agent. If a step fails, the earlier ones are undone.
///
/// # Errors
/// `invalid_params` for an unusable archive, `unsupported`, `invalid_name`, `already_exists`, `git_failed`,
/// `disk_full`, `storage_failed`.
pub async fn commit(
    editor: &AgentEditor,
    catalog_sync: &CatalogSync,
    sandbox: &Sandbox,
    transfers: &AllTransfers,
    connection: u64,
    params: ImportCommitParams,
    mut progress: OnProgress,
) -> Result<ImportCommitResult> {
    let spool = transfers.agent_uploads.remove(connection, params.import)?;
    let received = spool.received;
    let archive = run_blocking(move || {
        Archive::open(spool.file, |read| progress(read, received)).map_err(contents::archive_error)
    });
    let agents = &editor.agents;
    let (name, defaults) = (params.name, agents.config.current());
    let archive = archive.await?;
    let planned = run_blocking(move || {
        let plan = ImportPlan::from_archive(&archive, name, &defaults)?;
        Ok((archive, plan))
    });
    let (archive, mut plan) = planned.await?;
    // The lock also keeps an init from deleting the staging directory as the leftover of another.
    let _one_at_a_time = agents.lock.lock().await;
    let dir = format!("{AGENTS_DIR}/{}", plan.config.name);
    let target = agents.home.join(&dir);
    if agents.index.by_name(&plan.config.name).is_some() || target.symlink_metadata().is_ok() {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("agent {} or its directory already exists", plan.config.name),
        )
        .hint("choose another name: --as NAME"));
    }
    let id = plan.config.id;
    let new_id =
        agents.index.by_id(id).is_some() || !editor.store.catalog.agents.list_by_id(vec![id]).await?.is_empty();
    if new_id {
        plan.assign_new_id(&agents.config.current())?;
    }
    let shared = drop_shared_memories(&agents.index, &editor.store.catalog.memories, &mut plan).await?;
    let staging = agents.home.join(AGENTS_DIR).join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    let mut undo = ImportRollback { dirs: vec![staging.clone()], ..ImportRollback::default() };
    let made = build_agent((editor, sandbox), Arc::new(archive), &plan, (&staging, &target, &dir), &mut undo).await;
    let BuiltAgent { stamp, sessions, new_session_ids, memory_texts: added } = match made {
        Ok(made) => made,
        Err(failure) => {
            undo.roll_back(&editor.store.catalog).await;
            return Err(failure);
        }
    };
    let new = agents.index.insert(agent_entry(&agents.home, &dir, &plan.config, stamp));
    agents.claims.store_files_of(&new).await;
    editor.registry.emit_event(
        EventType::AgentCreated,
        Some(plan.config.name.clone()),
        None,
        json!({"id": plan.config.id}),
    );
    let corrupt = catalog_sync.add_files(&new.settings).await.map_or(0, |found| found.corrupt);
    tracing::info!(agent = %plan.config.name, id = %plan.config.id, sessions, "agent imported");
    let mut warnings = import_warnings(&editor.models, &plan.config);
    warnings.extend(shared);
    warnings.extend(schedules_warning(&plan));
    let memories = added.len() as u64;
    for text in added {
        editor
            .store
            .catalog
            .audit
            .append(audit_row_of_change(&new, "import", (None, Some(&text)), editor.clock.now()))
            .await?;
    }
    let agent = editor.describer.describe_changed(&new).await;
    Ok(ImportCommitResult { agent, sessions, corrupt, memories, new_id, new_session_ids, warnings })
}

/// An agent that was built.
struct BuiltAgent {
    stamp: String,
    sessions: u64,
    new_session_ids: u64,
    /// The texts of the memories that were added.
    memory_texts: Vec<String>,
}

/// The directories and rows that a failed import removes.
#[derive(Default)]
struct ImportRollback {
    dirs: Vec<PathBuf>,
    row: Option<Uuid>,
    memories: Vec<Uuid>,
    /// The agent whose schedules were added.
    schedules_of: Option<Uuid>,
}

impl ImportRollback {
    async fn roll_back(self, catalog: &Catalog) {
        if let Some(id) = self.row
            && let Err(failure) = catalog.agents.delete(id).await
        {
            tracing::error!(%failure, "cannot remove an agent from the catalog after a failed import");
        }
        if let Some(id) = self.schedules_of
            && let Err(failure) = catalog.schedules.delete_of_agent(id).await
        {
            tracing::error!(%failure, "cannot remove schedules from the catalog after a failed import");
        }
        if let Err(failure) = catalog.memories.delete(self.memories).await {
            tracing::error!(%failure, "cannot remove memory entries from the catalog after a failed import");
        }
        let removed = run_blocking(move || {
            let mut there = self.dirs.iter().filter(|dir| dir.symlink_metadata().is_ok());
            let removed = there.try_for_each(|dir| remove_dir(dir));
            removed.map_err(|e| Error::io("cannot undo an import", &e))
        });
        if let Err(failure) = removed.await {
            tracing::error!(%failure, "cannot undo a failed import");
        }
    }
}

/// Builds the agent's directory in `staging` and moves it to `target`, which is `dir` below the home.
async fn build_agent(
    (editor, sandbox): (&AgentEditor, &Sandbox),
    archive: Arc<Archive>,
    plan: &ImportPlan,
    (staging, target, dir): (&Path, &Path, &str),
    undo: &mut ImportRollback,
) -> Result<BuiltAgent> {
    let (source, at, config) = (archive.clone(), staging.to_owned(), plan.config.clone());
    let (stamp, available) = run_blocking(move || {
        create_private(&at).map_err(|e| Error::io("cannot create the agent's directory", &e))?;
        let stamp = contents::unpack_files(&source, &at, &config)?;
        Ok((stamp, contents::available_bytes(&at)?))
    })
    .await?;
    workspace_bundle::unpack(sandbox, &editor.agents.home, &staging.join("workspace"), available).await?;
    let new_session_ids =
        session_ids::resolve_conflicts(&editor.store.catalog.sessions, &staging.join("sessions"), plan).await?;
    let at = staging.to_owned();
    run_blocking(move || contents::sync_files(&at)).await?;
    // One commit adds the row and the memories, before the directory is in place. If the move is interrupted, the next
    // start completes it (`catalog_sync::sync_agents`), so nobody finds the agent with less than the archive has.
    let memories = plan.memories.iter().map(|row| MemoryRow { agent: plan.config.id, ..row.clone() }).collect();
    let claims = &editor.agents.claims;
    claims.claim_new(plan.config.id, &plan.config.name).await?;
    // Paused, so that none is due before the agent is there. Another attempt that was interrupted may have left some.
    undo.schedules_of = Some(plan.config.id);
    let schedules = &editor.store.catalog.schedules;
    schedules.delete_of_agent(plan.config.id).await?;
    for row in &plan.schedules {
        schedules.insert(ScheduleRow { agent: plan.config.id, ..row.clone() }, MAX_SCHEDULES).await?;
    }
    claims.move_new_workspace((plan.config.id, staging)).await?;
    undo.dirs.extend(plan.config.shared_dir.clone());
    let row = agent_row(dir, &plan.config, stamp.clone());
    let added = editor.store.catalog.agents.upsert_with_memories(row, memories).await?;
    undo.row = Some(plan.config.id);
    undo.memories = added.iter().map(|(id, _)| *id).collect();
    let (from, to) = (staging.to_owned(), target.to_owned());
    let moved = run_blocking(move || {
        move_dir(&from, &to).map_err(|e| Error::io(format_args!("cannot create {}", to.display()), &e))
    });
    moved.await?;
    let added = added.into_iter().map(|(_, text)| text).collect();
    Ok(BuiltAgent { stamp, sessions: plan.sessions, new_session_ids, memory_texts: added })
}

/// Removes memories from the plan that agents of this home would share, and returns a warning about them.
async fn drop_shared_memories(
    agents: &AgentIndex,
    memories: &Arc<dyn MemoryTable>,
    plan: &mut ImportPlan,
) -> Result<Option<String>> {
    let Some(project) = plan.config.project.clone() else { return Ok(None) };
    let is_known = agents.all().iter().any(|other| other.settings.project.as_ref() == Some(&project));
    let scope = MemoryScope { agent: plan.config.id, project: Some(project.clone()) };
    let has_shared = memories.list_visible(scope).await?.iter().any(|row| row.project.is_some());
    if !is_known && !has_shared {
        return Ok(None);
    }
    let all = plan.memories.len();
    plan.memories.retain(|row| row.project.is_none());
    let left_out = all - plan.memories.len();
    Ok(Some(format!(
        "its project {project:?} already exists here, so it uses that project's memory; skipped {left_out} \
         shared entries of the archive"
    )))
}

/// Returns the warning that the schedules are paused.
fn schedules_warning(plan: &ImportPlan) -> Option<String> {
    let first = plan.schedules.first()?;
    let (name, schedule) = (&plan.config.name, &first.name);
    let count = match plan.schedules.len() {
        1 => "its schedule is".to_owned(),
        count => format!("its {count} schedules are"),
    };
    Some(format!("{count} paused; to resume: chorusctl --agent {name} schedule resume {schedule}"))
}

/// Returns warnings about an agent that comes from another home.
fn import_warnings(models: &Models, config: &AgentConfig) -> Vec<String> {
    let name = &config.name;
    let mut warnings = Vec::new();
    match (&config.profile, config.permissions.as_str()) {
        (Err(problem), _) => warnings.push(format!("it cannot act: agent.json {problem}")),
        (Ok(_), Some("standard" | "locked")) => {}
        (Ok(_), profile) => warnings.push(format!(
            "it keeps its permissions ({}); to use the default: chorusctl agent config {name} permissions standard",
            profile.unwrap_or("its own")
        )),
    }
    let rules = config.profile.as_ref().map_or(0, |profile| profile.agent_rules().count());
    if rules > 0 {
        warnings.push(format!(
            "it keeps {rules} permanent approvals; to see and remove them: chorusctl permissions rules {name}"
        ));
    }
    if let Some(Err(failure)) = config.model.as_deref().map(|model| models.check_assignable(model)) {
        warnings.push(failure.message);
    }
    warnings
}
