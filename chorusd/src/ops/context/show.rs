//! `context.show`.

use chorus_proto::methods::context::{ShowParams, ShowResult};
use chorus_proto::{ContextInfo, WorkingSet};

use super::window::window;
use super::wrong_reply;
use crate::agent::context::{Pick, Room};
use crate::agent::directory::Entry;
use crate::agent::event::{Reply, Verb};
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::{Ops, meter, select};

/// A page of the live context; an idle agent shows an empty one.
///
/// # Errors
/// `invalid_params`, `agent_not_found`; `corrupt_session` where the context cannot be read back.
pub async fn show(ops: &Ops, params: ShowParams) -> Result<ShowResult<Stored>> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    if params.window {
        return of_window(ops, &agent, &params).await;
    }
    let pick = match (params.last, params.offset, params.limit) {
        (Some(last), None, None) => Pick::Last(last),
        (None, offset, limit) => Pick::From { offset: offset.unwrap_or(0), limit: limit.unwrap_or(u64::MAX) },
        _ => {
            return Err(Failure::invalid("`last` does not go with `offset` or `limit`")
                .hint("give `last` alone, or a page by `offset` and `limit`"));
        }
    };
    let empty = ShowResult {
        agent_name: agent.facts.name.clone(),
        messages: Vec::new(),
        working_set: WorkingSet::default(),
        context: None,
        next: None,
        window: None,
    };
    if ops.registry.info(agent.facts.id).is_none() {
        return Ok(empty);
    }
    match ops.registry.ask(agent.facts.id, Verb::Show { pick, room: Room::of(ops.config.max_frame) }).await?.reply {
        Reply::Page { messages, working_set, info, next } => {
            let meter = meter::read(ops, std::slice::from_ref(&agent)).await?.remove(&agent.facts.id);
            let context = info.map(|info| ContextInfo { meter, ..info });
            Ok(ShowResult { messages, working_set: *working_set, context, next, ..empty })
        }
        _ => Err(wrong_reply()),
    }
}

/// What the next call of the model would be sent, in place of a page.
async fn of_window(ops: &Ops, agent: &Entry, params: &ShowParams) -> Result<ShowResult<Stored>> {
    if params.last.is_some() || params.offset.is_some() || params.limit.is_some() {
        return Err(Failure::invalid("`window` does not go with `last`, `offset` or `limit`")
            .hint("give `window` alone: it shows all of the next request"));
    }
    Ok(ShowResult {
        agent_name: agent.facts.name.clone(),
        messages: Vec::new(),
        working_set: WorkingSet::default(),
        context: ops.registry.info(agent.facts.id),
        next: None,
        window: Some(Box::new(window(ops, agent).await?)),
    })
}
