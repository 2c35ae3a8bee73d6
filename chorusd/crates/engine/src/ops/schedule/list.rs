//! The operation `schedule.list`.

use std::collections::HashMap;

use chorus_base::error::{Error, Result};
use chorus_config::Config;
use chorus_proto::AgentStatus;
use chorus_proto::methods::schedule::{ListParams, ListResult};
use uuid::Uuid;

use super::Schedules;

/// The limit on schedules in a page, and the default.
const MAX_PAGE: u64 = 200;

/// The limit on the bytes of messages in a page; its first schedule is included in any case.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Lists the schedules of an agent, or of all, by name.
///
/// # Errors
/// `agent_not_found`, `invalid_params`.
pub async fn list(schedules: &Schedules, config: &Config, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(MAX_PAGE);
    if limit == 0 {
        return Err(Error::invalid("`limit` must be at least 1").hint("use `offset` for more schedules"));
    }
    let (limit, offset) = (limit.min(MAX_PAGE), params.offset.unwrap_or(0));
    let agent = match params.all_agents {
        true => None,
        false => Some(schedules.agents.resolve(params.agent.as_deref()).await?.settings.id),
    };
    let mut rows = schedules.table.list(agent, offset, limit + 1).await?;
    let most = MAX_PAGE_BYTES.min(config.max_frame / 8);
    let mut bytes = 0;
    let fit = rows.iter().position(|row| {
        bytes += row.message.len() + 1024 + row.progress.runs.len() * 512;
        bytes > most
    });
    let fit = fit.unwrap_or(rows.len()).max(1).min(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = (rows.len() > fit).then(|| offset + fit as u64);
    rows.truncate(fit);
    let mut names: HashMap<Uuid, Option<String>> = HashMap::new();
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        let name = match names.get(&row.agent) {
            Some(known) => known.clone(),
            None => {
                let name = match schedules.agents.index.by_id(row.agent) {
                    Some(entry) => Some(entry.settings.name.clone()),
                    // Also if its configuration cannot be used.
                    None => {
                        let rows = schedules.agents.table.list_by_id(vec![row.agent]).await?;
                        rows.into_iter().find(|row| row.status == AgentStatus::Active).map(|row| row.name)
                    }
                };
                names.insert(row.agent, name.clone());
                name
            }
        };
        // Those of agents in the trash come back with them.
        if let Some(name) = name {
            listed.push(schedules.describe(row, &name));
        }
    }
    Ok(ListResult { schedules: listed, next })
}
