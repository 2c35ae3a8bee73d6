//! `memory.add`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::{AddParams, AddResult};

use super::{by_hand, entry, written};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select};
use crate::store::catalog::{Remembered, memory};

/// Remembers something for an agent, or for all of its project. What is remembered already is not added twice.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `invalid_config` without a project, `limit_reached`, `disk_full`, `storage_failed`.
pub async fn add(ops: &Ops, params: AddParams) -> Result<AddResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let unfit = |why| Failure::invalid(why).hint("a sentence or two; what is longer has its place in docs/");
    let path = memory::path(params.path.as_deref()).map_err(Failure::invalid)?;
    let project = match (&agent.facts.project, params.project) {
        (_, false) => None,
        (Some(project), true) => Some(project.clone()),
        (None, true) => {
            let name = &agent.facts.name;
            return Err(Failure::new(ErrorKind::InvalidConfig, format!("{name} has no project to share it with"))
                .hint(format!("chorusctl agent config {name} project NAME")));
        }
    };
    let redactor = ops.models.redactor();
    let secrets_found = redactor.count(&params.text);
    let text = if params.redact { redactor.text(&params.text).into_owned() } else { params.text };
    let text = memory::text(&text).map_err(unfit)?;
    let row = written(ops, &agent, text, path, project);
    let catalog = &ops.store.catalog;
    let (id, added) = match catalog.remember(row.clone()).await? {
        Remembered::New(id) => (id, true),
        Remembered::Known(id) => (id, false),
    };
    if added && let Err(failure) = catalog.audit(by_hand(ops, &agent, "add", (None, Some(&row.text)))).await {
        catalog.unremember(vec![id]).await?;
        return Err(failure);
    }
    let kept =
        catalog.memories(crate::agent::memories::whose(&agent.facts)).await?.into_iter().find(|row| row.id == id);
    let entry = entry(ops, &agent, kept.unwrap_or(row)).await?;
    let entry = entry.ok_or_else(|| Failure::internal("an entry is not shown"))?;
    Ok(AddResult { entry, added, secrets_found })
}
