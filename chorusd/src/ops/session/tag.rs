//! `session.tag`.

use chorus_proto::SessionHeader;
use chorus_proto::methods::session::{TagParams, TagResult};

use crate::failure::{Failure, Result};
use crate::ops::{Ops, select, view};

/// Longest tag.
const MAX_TAG: usize = 64;

const TAGS: &str = "for example `postgres` or `to review`";

/// Adds tags to a session; those it has already stay where they are.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `invalid_params`, `corrupt_session`, `disk_full`, `storage_failed`.
pub async fn tag(ops: &Ops, params: TagParams) -> Result<TagResult> {
    let added = tags(params.tag.clone())?;
    change(ops, params, move |header| {
        for tag in &added {
            if !header.tags.contains(tag) {
                header.tags.push(tag.clone());
            }
        }
    })
    .await
}

/// Changes a session's tags.
///
/// # Errors
/// As [`tag`].
pub async fn change(
    ops: &Ops,
    params: TagParams,
    change: impl Fn(&mut SessionHeader) + Send + 'static,
) -> Result<TagResult> {
    if params.tag.is_empty() {
        return Err(Failure::invalid("no tag was named").hint(TAGS));
    }
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let row = select::session(ops, &agent, params.agent.is_some() && !params.own, &params.session).await?;
    let _stays = ops.sessions_lock.read().await;
    let dir = view::dir(ops, &row.header).await?;
    let row = ops.store.amend(row.header.id, dir, change).await?;
    Ok(TagResult { session: view::session(ops, row).await? })
}

/// Tags as they are kept: no doubles, in the order given.
///
/// # Errors
/// `invalid_params` for one that is no tag.
pub fn tags(given: Vec<String>) -> Result<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for tag in given {
        let tag = tag.trim();
        if tag.is_empty() || tag.len() > MAX_TAG || tag.chars().any(char::is_control) {
            return Err(Failure::invalid(format!("a tag is one line of 1 to {MAX_TAG} bytes")).hint(TAGS));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}
