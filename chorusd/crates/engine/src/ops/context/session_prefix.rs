//! The first messages of a session, with the matching working set, as they become a live context.

use std::collections::HashSet;

use chorus_agent_core::context::complete_calls_prefix;
use chorus_agent_core::event::{Restore, RestoredContext};
use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::pluralize::pluralize;
use chorus_proto::{ErrorKind, Item, ItemSource, WorkingSet};
use chorus_session::stored_message::StoredMessage;
use chorus_store::unverified_session::UnverifiedSession;
use serde::Deserialize;

use crate::agent::command::{self, Command};
use crate::ops::session::SessionReader;
use crate::ops::session::get::changed_warning;

/// The first messages of a session, or all of them.
#[derive(Debug)]
pub struct SessionPrefix {
    pub messages: Vec<StoredMessage>,
    pub working_set: WorkingSet,
    /// Warnings for a person. That the session was changed is not among them; see [`SessionPrefix::read`].
    pub warnings: Vec<String>,
}

/// The check that the messages of a session are those that were saved, which goes on while they are used.
#[derive(Debug)]
pub struct PendingCheck(UnverifiedSession);

impl PendingCheck {
    /// Returns the warning for a person if the messages are other ones.
    pub async fn warning(self, row: &SessionRow) -> Option<String> {
        let header = self.0.file.header.clone();
        let sha256 = self.0.sha256().await?;
        (!row.has_saved(&header, &sha256)).then(|| changed_warning(row))
    }
}

impl SessionPrefix {
    /// Reads a session; with `at`, only its first messages, shortened until every tool call has its result. A changed session is
    /// no error, so its messages can be used before the check has ended.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`; `invalid_params` if it has fewer messages, `nothing_to_save` if none is
    /// left.
    pub async fn read(sessions: &SessionReader, row: &SessionRow, at: Option<u64>) -> Result<(Self, PendingCheck)> {
        let mut session = sessions.read_unverified(row).await?;
        let name = &row.header.session_id;
        let mut warnings = Vec::new();
        let mut messages = std::mem::take(&mut session.file.messages);
        let mut working_set = session.file.header.working_set.clone();
        if let Some(at) = at {
            let wanted = usize::try_from(at).unwrap_or(usize::MAX);
            if wanted > messages.len() {
                let all = pluralize(messages.len() as u64, "message");
                return Err(Error::invalid(format!("{name} has only {all}, not {at}"))
                    .hint(format!("use a smaller number; see the messages: chorusctl show {name}")));
            }
            let keep = complete_calls_prefix(&messages, wanted);
            if keep < wanted {
                warnings.push(format!(
                    "cut to {}, because the next message calls tools whose results would be missing",
                    pluralize(keep as u64, "message")
                ));
            }
            drop_later_items(&mut working_set, &messages[keep..]);
            messages.truncate(keep);
        }
        if messages.is_empty() {
            return Err(Error::new(ErrorKind::NothingToSave, "the conversation would have no messages")
                .hint("to clear the conversation: chorusctl context clear"));
        }
        Ok((Self { messages, working_set, warnings }, PendingCheck(session)))
    }

    /// Returns the command that replaces the live context by these messages of the session in `row`.
    #[must_use]
    pub fn into_command(self, row: &SessionRow, discard: bool) -> Command<RestoredContext> {
        command::restore(Restore {
            session: row.header.id,
            session_id: row.header.session_id.clone(),
            messages: self.messages,
            appended: Vec::new(),
            working_set: self.working_set,
            restoration: row.header.restoration_tokens,
            discard,
        })
    }
}

/// Removes items from a working set that came from messages after the prefix. Items that people added stay.
pub fn drop_later_items(set: &mut WorkingSet, later: &[StoredMessage]) {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    if later.is_empty() {
        return;
    }
    // The summary covers all messages, and passages may have been recalled for later ones.
    (set.summary, set.recalled) = (None, None);
    // All fields are named, so that a new field must be considered here.
    let WorkingSet {
        topics,
        facts,
        decisions,
        open_tasks,
        files_touched,
        conflicts,
        background: _,
        summary: _,
        pinned_facts: _,
        closed: _,
        token_budget: _,
        recalled: _,
    } = set;
    let lists = [topics, facts, decisions, open_tasks, files_touched, conflicts];
    if lists.iter().all(|list| list.is_empty()) {
        return;
    }
    let ids = later.iter().filter_map(|message| serde_json::from_slice::<Id>(message.json()).ok());
    let later: HashSet<String> = ids.map(|message| message.id).collect();
    let stays =
        |item: &Item| item.source == ItemSource::Hand || item.message_id.as_ref().is_none_or(|id| !later.contains(id));
    for list in lists {
        list.retain(stays);
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::{NewMessage, Role};

    use super::*;

    #[test]
    fn what_was_found_in_later_messages_goes_and_what_people_put_there_stays() {
        let item = |text: &str, source, message: &str| Item {
            id: text.into(),
            text: text.into(),
            source,
            message_id: Some(message.into()),
        };
        let items = vec![
            item("early", ItemSource::Model, "m1"),
            item("late", ItemSource::Rule, "m2"),
            item("by hand", ItemSource::Hand, "m2"),
        ];
        let list = || items.clone();
        let mut set = WorkingSet {
            background: Some("before".into()),
            summary: Some("all of it".into()),
            topics: list(),
            pinned_facts: list(),
            facts: list(),
            decisions: list(),
            open_tasks: list(),
            files_touched: list(),
            conflicts: list(),
            ..WorkingSet::default()
        };
        let message = NewMessage::text(Role::User, "x").complete(|| "m2".into(), jiff::Timestamp::UNIX_EPOCH);
        drop_later_items(&mut set, &[StoredMessage::new(&message).unwrap()]);
        assert_eq!((set.background.as_deref(), set.summary), (Some("before"), None));
        assert_eq!(set.pinned_facts.len(), 3);
        for list in [set.topics, set.facts, set.decisions, set.open_tasks, set.files_touched, set.conflicts] {
            assert_eq!(list.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["early", "by hand"]);
        }
    }
}
