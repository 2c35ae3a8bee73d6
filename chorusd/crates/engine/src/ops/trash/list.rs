//! The operation `trash.list`.

use std::path::Path;

use chorus_base::error::Result;
use chorus_proto::methods::trash::{ListParams, ListResult};

/// Lists the entries of the trash, newest first.
pub async fn list(home: &Path, _: ListParams) -> Result<ListResult> {
    Ok(ListResult { entries: super::list_entries(home).await?.iter().map(super::to_trash_entry).collect() })
}
