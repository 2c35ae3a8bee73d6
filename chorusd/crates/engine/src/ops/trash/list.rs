//! The operation `trash.list`.

use chorus_base::error::Result;
use chorus_proto::methods::trash::{ListParams, ListResult};

use crate::ops::Ops;

/// Lists the entries of the trash, newest first.
pub async fn list(ops: &Ops, _: ListParams) -> Result<ListResult> {
    Ok(ListResult { entries: super::list_entries(ops).await?.iter().map(super::to_trash_entry).collect() })
}
