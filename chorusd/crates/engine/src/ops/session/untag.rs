//! The operation `session.untag`.

use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_proto::methods::session::{TagParams, TagResult};
use chorus_store::Store;
use tokio::sync::RwLock;

use super::tag::change_tags;
use crate::ops::agent::AgentResolver;
use crate::ops::session::SessionReader;

/// Removes tags from a session; missing ones are ignored. Fails like `session.tag`.
pub async fn untag(
    agents: &AgentResolver,
    sessions: &SessionReader,
    lock: &RwLock<()>,
    store: &Store,
    clock: &Clock,
    params: TagParams,
) -> Result<TagResult> {
    let gone: Vec<String> = params.tag.iter().map(|tag| tag.trim().to_owned()).collect();
    change_tags(agents, sessions, lock, (store, clock), params, "session untag NAME TAG", move |header| {
        header.tags.retain(|tag| !gone.contains(tag))
    })
    .await
}
