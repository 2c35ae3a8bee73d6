//! The operation `session.get`.

use chorus_agent_core::context::{PageBudget, PageBuilder};
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::SessionRow;
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{GetParams, GetResult};
use chorus_runtime::run_blocking;
use chorus_session::FormatError;
use chorus_session::stored_message::StoredMessage;
use jiff::SignedDuration;

use crate::agent::summaries::Summaries;
use crate::ops::session::SessionReader;
use crate::ops::session::message_source::MessageSource;

/// How much later a reading must be than the last use to be recorded.
const USE_RESOLUTION: SignedDuration = SignedDuration::from_hours(24);

/// Returns a saved session with a page of its messages. That counts as a use of it.
pub async fn get(
    sessions: &SessionReader,
    summaries: &Summaries,
    clock: &Clock,
    config: &Config,
    params: GetParams,
) -> Result<GetResult<StoredMessage>> {
    let (agent, conversation) = (params.agent.as_deref(), params.conversation.as_deref());
    let target = sessions.target_to_read(agent, conversation, &params.session).await?;
    let agent_said = params.agent.is_some() && !params.own;
    let by = &Requester::Owner;
    let row = sessions.resolve_to_read(by, &target, agent_said, &params.session, "show NAME").await?;
    let summary_pending = summaries.is_in_flight(row.header.id);
    // The row is read after `summary_pending`: if no summary is in progress, the row has the final one.
    let row = sessions.table.get(row.header.id).await?.unwrap_or(row);
    let open = sessions.open_row(row.clone()).await?;
    let now = clock.now();
    if now.duration_since(row.last_used_at) > USE_RESOLUTION {
        drop(sessions.table.touch(row.header.id, now));
    }
    let mut warnings =
        if row.has_saved(&open.header, &open.messages_hash) { Vec::new() } else { vec![changed_warning(&row)] };
    if !agent_said {
        warnings.extend(sessions.same_name_warning(&row, &params.session).await?);
    }
    let (offset, limit) = (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX));
    let room = PageBudget::from_max_frame(config.max_frame);
    let (messages, next) = run_blocking(move || read_page(&open.messages, (offset, limit), room)).await?;
    Ok(GetResult { session: sessions.describe(row).await?, messages, next, summary_pending, warnings })
}

/// Returns the messages of a page, selected as in [`chorus_agent_core::context::read_page`], and the offset of the next one.
fn read_page(
    source: &MessageSource,
    (offset, limit): (u64, u64),
    room: PageBudget,
) -> Result<(Vec<StoredMessage>, Option<u64>)> {
    let count = source.count();
    let (start, end) = (offset.min(count), offset.saturating_add(limit).min(count));
    let mut page = PageBuilder::new(room);
    let mut messages = source.messages_from(start);
    let mut next = start;
    while next < end
        && let Some(message) = messages.read()?
        && page.push(&message)
    {
        next += 1;
    }
    Ok((page.messages, (next < count && limit > 0).then_some(next)))
}

/// Returns the warning that the messages of a session differ from those that were saved.
pub fn changed_warning(row: &SessionRow) -> String {
    format!("the file of {} was changed after it was saved", row.header.session_id)
}

/// Returns the error for an invalid file of the session `name`.
#[must_use]
pub fn corrupt_error(name: &str, error: &FormatError) -> Error {
    Error::new(ErrorKind::CorruptSession, format!("the file of {name} {error}"))
        .hint("the file was left unchanged; repair it or restore a backup")
}
