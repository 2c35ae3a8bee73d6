//! `context.save`.

use chorus_proto::methods::context::{SaveParams, SaveResult};

use super::wrong_reply;
use crate::agent::event::{Reply, Verb};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select};

/// Longest tag.
const MAX_TAG: usize = 64;

/// Saves a checkpoint; the context goes on unless `clear` is said.
///
/// # Errors
/// `nothing_to_save`, `invalid_params`, `agent_not_found`, `disk_full`, `storage_failed`.
pub async fn save(ops: &Ops, params: SaveParams) -> Result<SaveResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let tags = tags(params.tag)?;
    let description = params.description.filter(|text| !text.trim().is_empty());
    let verb = Verb::Save { description, tags, clear: params.clear };
    match ops.registry.ask(agent.facts.id, verb).await?.reply {
        Reply::Saved { session, cleared } => Ok(SaveResult { session: *session, cleared }),
        _ => Err(wrong_reply()),
    }
}

/// Tags as they are kept: no doubles, in the order given.
fn tags(given: Vec<String>) -> Result<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for tag in given {
        let tag = tag.trim();
        if tag.is_empty() || tag.len() > MAX_TAG || tag.chars().any(char::is_control) {
            return Err(Failure::invalid(format!("a tag is one line of 1 to {MAX_TAG} bytes")));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}
