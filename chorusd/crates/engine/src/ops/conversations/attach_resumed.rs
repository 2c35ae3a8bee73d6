//! A client that follows a conversation again after its agent has moved: hears what it has missed, and nothing twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_agent_core::turn_sink::TurnListener;
use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_proto::Role;
use chorus_proto::frame::MAX_FRAME;
use chorus_proto::methods::conversations::ContextPosition;
use chorus_proto::methods::send::TurnEvent;
use chorus_session::conversation::ConversationKey;

use crate::agent::attached_clients::message_event;
use crate::agent::command;
use crate::agent::registry::Registry;

/// Limit of the messages that a client hears because it has missed them.
const MAX_MISSED: u64 = 1_000;

/// Lets the events of a conversation wait until what was missed is sent.
#[derive(Debug)]
pub(super) struct ResumedListener {
    listener: Arc<dyn TurnListener>,
    is_ready: AtomicBool,
    /// Messages that were missed: they may be among the events, too.
    sent: Mutex<HashSet<String>>,
}

impl ResumedListener {
    pub(super) fn new(listener: Arc<dyn TurnListener>) -> Self {
        Self { listener, is_ready: AtomicBool::new(false), sent: Mutex::default() }
    }

    /// Sends what was missed. What has waited may follow.
    pub(super) fn resume(&self, missed: Vec<TurnEvent>) {
        for event in missed {
            if let TurnEvent::Message { id, .. } = &event {
                self.sent.lock().insert(id.clone());
            }
            self.listener.send_when_ready(event);
        }
        self.is_ready.store(true, Ordering::Release);
    }

    /// Returns whether the client has heard of this already.
    fn is_known(&self, event: &TurnEvent) -> bool {
        match event {
            TurnEvent::Message { id, .. } => self.sent.lock().remove(id),
            TurnEvent::Attached { turn_id, .. } => turn_id.is_none(),
            _ => false,
        }
    }
}

impl TurnListener for ResumedListener {
    fn try_send(&self, event: &TurnEvent) -> bool {
        self.is_ready.load(Ordering::Acquire) && (self.is_known(event) || self.listener.try_send(event))
    }

    fn send_when_ready(&self, event: TurnEvent) {
        if !self.is_known(&event) {
            self.listener.send_when_ready(event);
        }
    }
}

/// Returns what was added to a conversation after a place. What the running turn says comes as its pieces.
pub(super) async fn missed_messages(
    registry: &Arc<Registry>,
    conversation: ConversationKey,
    after: ContextPosition,
) -> Result<Vec<TurnEvent>> {
    let in_turn = registry.attached.has_turn(conversation);
    if !registry.may_have_context(conversation) {
        return Ok(Vec::new());
    }
    // All of another context is new.
    let head = registry.live_head(conversation).map(|head| u64::try_from(head.context.0).unwrap_or_default());
    let offset = if head == Some(after.context) { after.messages } else { 0 };
    let range = PageRange::From { offset, limit: MAX_MISSED };
    let page = registry.ask(conversation, command::read_page(range, PageBudget::from_max_frame(MAX_FRAME))).await?;
    let begin = page.messages.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
    let is_piece = |at: usize, role: Role| in_turn && at > begin && matches!(role, Role::Assistant | Role::ToolResult);
    let messages = page.messages.iter().enumerate().filter(|(at, message)| !is_piece(*at, message.role()));
    Ok(messages.filter_map(|(_, message)| message_event(message)).collect())
}
