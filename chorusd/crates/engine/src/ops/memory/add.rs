//! The operation `memory.add`.

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::{Catalog, RememberOutcome, memories};
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::{AddParams, AddResult};
use chorus_redact::Redactor;

use super::{audit_row_of_change, new_row, to_entry};
use crate::ops::agent::AgentResolver;

/// Adds a memory for an agent, or for its project. A text that is remembered already is not added again.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `invalid_config` without a project, `limit_reached`, `disk_full`,
/// `storage_failed`.
pub async fn add(
    agents: &AgentResolver,
    catalog: &Catalog,
    redactor: &Redactor,
    clock: &Clock,
    params: AddParams,
) -> Result<AddResult> {
    add_as(agents, catalog, redactor, clock, params, &Requester::Owner).await
}

/// Like [`add`], on behalf of `by`.
///
/// # Errors
/// As [`add`].
pub async fn add_as(
    agents: &AgentResolver,
    catalog: &Catalog,
    redactor: &Redactor,
    clock: &Clock,
    params: AddParams,
    by: &Requester,
) -> Result<AddResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let unfit = |why| Error::invalid(why).hint("shorten it to one or two sentences; or put it in a file in docs/");
    let path = memories::validate_path(params.path.as_deref()).map_err(Error::invalid)?;
    let project = match (&agent.settings.project, params.project) {
        (_, false) => None,
        (Some(project), true) => Some(project.clone()),
        (None, true) => {
            let name = &agent.settings.name;
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("{name} has no project, so it cannot share entries"),
            )
            .hint(format!("set one: chorusctl agent config {name} project NAME")));
        }
    };
    let secrets_found = redactor.count_secrets(&params.text);
    let text = if params.redact { redactor.redact_text(&params.text).into_owned() } else { params.text };
    let text = memories::validate_text(&text).map_err(unfit)?;
    let mut row = new_row(&agent, text, path, project, clock.now());
    row.user = by.to_string();
    let (id, added) = match catalog.memories.insert(row.clone()).await? {
        RememberOutcome::New(id) => (id, true),
        RememberOutcome::Known(id) => (id, false),
    };
    if added
        && let Err(failure) =
            catalog.audit.append(audit_row_of_change(&agent, "add", (None, Some(&row.text)), clock.now())).await
    {
        catalog.memories.delete(vec![id]).await?;
        return Err(failure);
    }
    let kept = catalog
        .memories
        .list_visible(crate::agent::memory_prompt::memory_scope(&agent.settings))
        .await?
        .into_iter()
        .find(|row| row.id == id);
    let entry = to_entry(catalog, &agent, kept.unwrap_or(row)).await?;
    let entry = entry.ok_or_else(|| Error::internal("an entry cannot be shown"))?;
    Ok(AddResult { entry, added, secrets_found })
}
