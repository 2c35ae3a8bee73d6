//! The operation `session.untag`.

use chorus_base::error::Result;
use chorus_proto::methods::session::{TagParams, TagResult};

use super::tag::change_tags;
use crate::ops::Ops;

/// Removes tags from a session; missing ones are ignored. Fails like `session.tag`.
pub async fn untag(ops: &Ops, params: TagParams) -> Result<TagResult> {
    let gone: Vec<String> = params.tag.iter().map(|tag| tag.trim().to_owned()).collect();
    change_tags(ops, params, move |header| header.tags.retain(|tag| !gone.contains(tag))).await
}
