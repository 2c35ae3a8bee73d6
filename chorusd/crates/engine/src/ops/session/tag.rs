//! The operation `session.tag`.

use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_proto::SessionHeader;
use chorus_proto::methods::session::{TagParams, TagResult};
use chorus_store::Store;
use tokio::sync::RwLock;

use crate::ops::agent::AgentResolver;
use crate::ops::session::SessionReader;

/// The limit on a tag in bytes.
const MAX_TAG_BYTES: usize = 64;

const TAG_HINT: &str = "for example `postgres` or `to review`";

/// Adds tags to a session; existing ones keep their position.
pub async fn tag(
    agents: &AgentResolver,
    sessions: &SessionReader,
    lock: &RwLock<()>,
    store: &Store,
    clock: &Clock,
    params: TagParams,
) -> Result<TagResult> {
    let added = parse_tags(params.tag.clone())?;
    change_tags(agents, sessions, lock, (store, clock), params, "session tag NAME TAG", move |header| {
        for tag in &added {
            if !header.tags.contains(tag) {
                header.tags.push(tag.clone());
            }
        }
    })
    .await
}

/// Changes a session's tags; `command` is as in [`SessionReader::resolve`]. Fails like [`tag`].
pub async fn change_tags(
    agents: &AgentResolver,
    sessions: &SessionReader,
    lock: &RwLock<()>,
    (store, clock): (&Store, &Clock),
    params: TagParams,
    command: &str,
    change: impl Fn(&mut SessionHeader) + Send + 'static,
) -> Result<TagResult> {
    if params.tag.is_empty() {
        return Err(Error::invalid("no tag given").hint(TAG_HINT));
    }
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let row = sessions.resolve(&target, params.agent.is_some() && !params.own, &params.session, command).await?;
    let _stays = lock.read().await;
    let dir = sessions.agent_dir(&row.header).await?;
    let row = store.update_session_header(row.header.id, dir, change).await?;
    drop(sessions.table.touch(row.header.id, clock.now()));
    Ok(TagResult { session: sessions.describe(row).await? })
}

/// Trims tags and removes duplicates, keeping their order.
///
/// # Errors
/// `invalid_params` for an invalid tag.
pub fn parse_tags(given: Vec<String>) -> Result<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    for tag in given {
        let tag = tag.trim();
        if tag.is_empty() || tag.len() > MAX_TAG_BYTES || tag.chars().any(char::is_control) {
            return Err(Error::invalid(format!("a tag must be one line of 1 to {MAX_TAG_BYTES} bytes")).hint(TAG_HINT));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}
