//! The result of the tool `search_sessions`: messages of the agent's own past, or those around one of them.
//!
//! All texts are quoted: each line of a message begins with `> `, and nothing else does. Conversations that are private to others
//! are left out, so that nobody gets to read them by asking the agent.

mod files;
mod hits;
mod place;
mod quote;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

use crate::ops::Ops;
use crate::tools::{SessionQuestion, ToolCaller};

/// Answers a question about the sessions of the agent.
pub(super) async fn answer(ops: &Ops, asker: ToolCaller, question: SessionQuestion) -> Result<String> {
    match question {
        SessionQuestion::Find(query) if query.trim().is_empty() => {
            Err(Error::invalid("nothing to search for").hint("set `query` to one or more words"))
        }
        SessionQuestion::Find(query) => match hits::find(ops, &asker, &query).await {
            Err(failure) if is_without_index(&failure) => files::search(ops, asker, query).await,
            found => found,
        },
        SessionQuestion::Read { session, message } => place::read(ops, &asker, &session, message).await,
    }
}

/// Returns true for the errors of a search whose index is off, is being opened or cannot be read.
fn is_without_index(failure: &Error) -> bool {
    matches!(
        failure.kind,
        ErrorKind::Busy | ErrorKind::InvalidConfig | ErrorKind::StorageFailed | ErrorKind::StorageUnavailable
    )
}
