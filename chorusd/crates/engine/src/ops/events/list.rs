//! The operation `events.list`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_journal::Journal;
use chorus_proto::methods::events::{ListParams, ListResult};

use super::DEFAULT_PAGE;

/// The limit on events in a page.
const MAX_PAGE: u64 = 10_000;

/// Lists stored events, oldest first.
pub async fn list(journal: &Arc<dyn Journal>, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::invalid(format!("`limit` must be 1 to {MAX_PAGE}")).hint("use `after` for more events"));
    }
    let (events, lagged) = journal.events_after(params.after.unwrap_or(0), limit).await?;
    let next = events.last().map(|event| event.seq).filter(|_| events.len() as u64 == limit);
    // A client that starts at the beginning has not missed what was pruned before.
    let lagged = if params.after.is_none() { 0 } else { lagged };
    Ok(ListResult { events, lagged, next })
}
