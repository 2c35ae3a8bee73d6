//! The feed of traces: model calls and tool calls as they end. Nothing is stored, and nobody waits for a reader; one that is too
//! slow misses the oldest records. Turns are among the events.

mod content;
mod export_state;
mod records;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_llm::{CallError, ModelRequest, Reply};
use chorus_proto::ToolCall;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use tokio::sync::broadcast;
use uuid::Uuid;

pub use self::content::{CallContent, ToolContent, TraceMessage, TracePart};
pub use self::export_state::{ExportState, ExportTotals};
pub use self::records::{CallOutcome, ModelCallRecord, ToolCallRecord, TraceRecord};
use crate::tools::ToolOutcome;
use crate::usage::ModelCallInfo;

/// Records that a reader may lag behind before it misses the oldest.
const CAPACITY: usize = 512;

/// The source of records, and the state of their export.
#[derive(Debug)]
pub struct TraceFeed {
    records: broadcast::Sender<Arc<TraceRecord>>,
    /// True if records have messages, parameters and results.
    has_content: AtomicBool,
    /// The fate of the spans.
    pub export: ExportState,
}

impl Default for TraceFeed {
    fn default() -> Self {
        Self {
            records: broadcast::Sender::new(CAPACITY),
            has_content: AtomicBool::new(false),
            export: ExportState::default(),
        }
    }
}

/// A model call that has started.
#[derive(Debug)]
pub struct StartedCall {
    max_tokens: u32,
    content: Option<CallContent>,
}

impl TraceFeed {
    /// Subscribes to the records from now on, with texts if `has_content`.
    #[must_use]
    pub fn subscribe(&self, has_content: bool) -> broadcast::Receiver<Arc<TraceRecord>> {
        self.has_content.store(has_content, Ordering::Relaxed);
        self.records.subscribe()
    }

    fn is_read(&self) -> bool {
        self.records.receiver_count() > 0
    }

    fn has_content(&self) -> bool {
        self.has_content.load(Ordering::Relaxed)
    }

    /// Notes what a model is asked. `None` if nobody reads records.
    pub(crate) fn start_call(&self, request: &ModelRequest) -> Option<StartedCall> {
        if !self.is_read() {
            return None;
        }
        let content = self.has_content().then(|| CallContent::of_request(request));
        Some(StartedCall { max_tokens: request.max_tokens, content })
    }

    /// Records a model call with its outcome.
    pub(crate) fn end_call(
        &self,
        started: Option<StartedCall>,
        caller: &ModelCallInfo<'_>,
        outcome: &Result<Reply, CallError>,
        end: Timestamp,
    ) {
        let Some(StartedCall { max_tokens, mut content }) = started else { return };
        if let Some(content) = &mut content {
            content.set_outcome(outcome);
        }
        let record = ModelCallRecord {
            turn: caller.turn_id,
            conversation: ConversationKey::from_stored(caller.agent.id, caller.conversation),
            agent_name: caller.agent.name.clone(),
            model: caller.target.clone(),
            kind: caller.kind,
            start: caller.at,
            end,
            max_tokens,
            outcome: CallOutcome::from_result(outcome),
            content,
        };
        self.send(TraceRecord::ModelCall(Box::new(record)));
    }

    /// Records a call of a tool.
    pub(crate) fn record_tool_call(
        &self,
        (conversation, agent_name, turn): (ConversationKey, &str, Uuid),
        call: &ToolCall,
        outcome: &ToolOutcome,
        (start, end): (Timestamp, Timestamp),
    ) {
        if !self.is_read() {
            return;
        }
        let error_type = match outcome {
            ToolOutcome::Completed { is_error: false, .. } => None,
            ToolOutcome::Completed { .. } => Some("tool_error"),
            ToolOutcome::Stop(_) => Some("turn_stopped"),
        };
        let content = self.has_content().then(|| ToolContent::new(call, outcome.text()));
        self.send(TraceRecord::ToolCall(Box::new(ToolCallRecord {
            turn,
            conversation,
            agent_name: agent_name.to_owned(),
            id: call.id.clone(),
            name: call.name.clone(),
            start,
            end,
            error_type,
            content,
        })));
    }

    fn send(&self, record: TraceRecord) {
        // Fails only if nobody reads any more.
        let _ = self.records.send(Arc::new(record));
    }
}
