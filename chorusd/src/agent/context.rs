//! The live conversation of an agent.

use chorus_proto::ContextInfo;
use jiff::Timestamp;
use uuid::Uuid;

use crate::message::{ContextNo, Stored, Totals};

/// A live context in memory.
#[derive(Debug, Clone)]
pub struct Context {
    pub no: ContextNo,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub idle_deadline_at: Option<Timestamp>,
    /// The session it was restored out of.
    pub parent: Option<Uuid>,
    pub messages: Vec<Stored>,
    pub totals: Totals,
    /// The first messages, as many as `saved_session` holds.
    pub saved: u64,
    pub saved_session: Option<Uuid>,
    /// The session that the journal refers to instead of holding its messages.
    pub base_session: Option<Uuid>,
}

/// Which messages a page is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The newest ones.
    Last(u64),
    /// From an index, at most so many.
    From { offset: u64, limit: u64 },
}

/// Most bytes of messages in a page whose frame may have `max_frame` bytes: there is room to spare for the rest.
#[must_use]
pub fn page_bytes(max_frame: usize) -> usize {
    (max_frame / 4 * 3).min(4 << 20)
}

impl Context {
    /// Messages that no session holds yet.
    #[must_use]
    pub fn unsaved(&self) -> u64 {
        self.totals.messages.saturating_sub(self.saved)
    }

    /// Takes messages that are durable.
    pub fn push(&mut self, messages: Vec<Stored>, at: Timestamp, deadline: Option<Timestamp>) {
        self.totals.join(Totals::of(&messages));
        self.messages.extend(messages);
        self.last_activity_at = at;
        self.idle_deadline_at = deadline;
    }

    /// The context in numbers.
    #[must_use]
    pub fn info(&self) -> ContextInfo {
        ContextInfo {
            messages: self.totals.messages,
            token_estimate: self.totals.tokens(),
            started_at: self.started_at,
            last_activity_at: self.last_activity_at,
            idle_deadline_at: self.idle_deadline_at,
            parent_id: self.parent,
            unsaved: self.unsaved(),
        }
    }
}

/// The messages of a page and the offset of the next one. A page is cut before it has more than `most` bytes.
#[must_use]
pub fn page(messages: &[Stored], pick: Pick, most: usize) -> (Vec<Stored>, Option<u64>) {
    let count = messages.len() as u64;
    let (start, end) = match pick {
        Pick::Last(n) => (count.saturating_sub(n), count),
        Pick::From { offset, limit } => (offset.min(count), offset.saturating_add(limit).min(count)),
    };
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let mut page = Vec::new();
    let mut bytes = 0;
    for message in &messages[index(start)..index(end)] {
        bytes += message.json().len();
        // One message always fits: it came in a frame, or the reader has to cope.
        if bytes > most && !page.is_empty() {
            break;
        }
        page.push(message.clone());
    }
    let next = start + page.len() as u64;
    (page, (next < count).then_some(next))
}

/// How many of the first `at` messages can be kept so that no call lacks its result: the cut goes back to before the
/// assistant message whose calls are not all answered by what directly follows it.
#[must_use]
pub fn whole_calls(messages: &[Stored], at: usize) -> usize {
    let at = at.min(messages.len());
    // Walk back over the results that end the cut to the message that made the calls.
    let mut start = at;
    while start > 0 && messages[start - 1].role() == chorus_proto::Role::ToolResult {
        start -= 1;
    }
    let Some(caller) = start.checked_sub(1).and_then(|i| messages[i].to_message().ok()) else {
        return at;
    };
    let answered: Vec<String> = messages[start..at].iter().filter_map(|m| m.to_message().ok()?.tool_call_id).collect();
    if caller.tool_calls.iter().all(|call| answered.contains(&call.id)) { at } else { start - 1 }
}
