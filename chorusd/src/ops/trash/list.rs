//! `trash.list`.

use chorus_proto::methods::trash::{ListParams, ListResult};

use crate::error::Result;
use crate::ops::Ops;

/// What is in the trash, newest first.
///
/// # Errors
/// A directory that cannot be read.
pub async fn list(ops: &Ops, _: ListParams) -> Result<ListResult> {
    Ok(ListResult { entries: super::list_entries(ops).await?.iter().map(super::to_trash_entry).collect() })
}
