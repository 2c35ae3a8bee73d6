//! Follows turns and calls, and makes spans of those that ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use chorus_engine::agent::agent_index::AgentIndex;
use chorus_engine::ops::Ops;
use chorus_engine::traces::{ModelCallRecord, TraceRecord};
use chorus_proto::{Event, EventType};
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::provider::ProviderNames;
use crate::queue::SpanSender;
use crate::spans::{SpanBuilder, TurnSummary};

/// Turns whose calls are summed up at once. If there are more, the oldest ones lose their sums.
const MAX_TURNS: usize = 4096;

/// Makes spans.
#[derive(Debug)]
pub(crate) struct Collector {
    spans: SpanBuilder,
    queue: SpanSender,
    agents: Arc<AgentIndex>,
    /// Turns that run. The ids sort by time.
    turns: BTreeMap<Uuid, TurnState>,
}

/// The knowledge of a turn.
#[derive(Debug, Default)]
struct TurnState {
    start: Option<Timestamp>,
    conversation: Option<ConversationKey>,
    model: Option<(ProviderNames, String)>,
    input_tokens: u64,
    output_tokens: u64,
    /// Class of the error of the last model call.
    failed_call: Option<&'static str>,
}

impl Collector {
    pub(crate) fn new(ops: &Ops, spans: SpanBuilder, queue: SpanSender) -> Self {
        Self { spans, queue, agents: ops.agents.clone(), turns: BTreeMap::new() }
    }

    /// Makes spans until `closing`, and then of what happened before.
    pub(crate) async fn run(
        mut self,
        mut events: Receiver<Arc<Event>>,
        mut records: Receiver<Arc<TraceRecord>>,
        closing: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                record = records.recv() => match record {
                    Ok(record) => self.on_record(&record),
                    Err(RecvError::Lagged(missed)) => self.queue.count_missed(missed),
                    Err(RecvError::Closed) => break,
                },
                event = events.recv() => match event {
                    Ok(event) => self.on_event(&event, &mut records),
                    Err(RecvError::Lagged(_)) => self.on_missed_events(),
                    Err(RecvError::Closed) => break,
                },
            }
        }
        self.drain_records(&mut records);
        loop {
            match events.try_recv() {
                Ok(event) => self.on_event(&event, &mut records),
                Err(TryRecvError::Lagged(_)) => self.on_missed_events(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn on_event(&mut self, event: &Event, records: &mut Receiver<Arc<TraceRecord>>) {
        let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_of_turn =
            matches!(event.kind, EventType::TurnStarted | EventType::TurnFinished | EventType::TurnInterrupted);
        let Some(turn) = is_of_turn.then(|| Uuid::try_parse(text("turn_id")).ok()).flatten() else { return };
        match event.kind {
            EventType::TurnStarted => self.turn(turn).start = Some(event.time),
            EventType::TurnFinished => self.end_turn(turn, event, None, records),
            EventType::TurnInterrupted => self.end_turn(turn, event, Some(text("reason")), records),
            _ => {}
        }
    }

    fn on_record(&mut self, record: &TraceRecord) {
        match record {
            TraceRecord::ModelCall(call) => {
                if let Some(turn) = call.turn {
                    self.add_to_turn(turn, call);
                }
                self.queue.push(self.spans.model_call(call));
            }
            TraceRecord::ToolCall(call) => self.queue.push(self.spans.tool_call(call)),
        }
    }

    fn add_to_turn(&mut self, turn: Uuid, call: &ModelCallRecord) {
        let model = (self.spans.provider(call), call.model.model.clone());
        let (usage, start) = (&call.outcome.usage, call.start);
        let state = self.turn(turn);
        state.start = Some(state.start.map_or(start, |known| known.min(start)));
        state.conversation = Some(call.conversation);
        state.model = Some(model);
        state.input_tokens += usage.input_tokens.unwrap_or(0);
        state.output_tokens += usage.output_tokens.unwrap_or(0);
        state.failed_call = call.outcome.error_type;
    }

    /// Ends a turn. Its calls were recorded before the event, but may not have been read yet.
    fn end_turn(&mut self, turn: Uuid, event: &Event, reason: Option<&str>, records: &mut Receiver<Arc<TraceRecord>>) {
        self.drain_records(records);
        let state = self.turns.remove(&turn).unwrap_or_default();
        let agent_name = event.agent.clone().unwrap_or_default();
        let main = || event.conversation.is_none().then(|| self.agents.by_name(&agent_name)).flatten();
        let conversation = state.conversation.or_else(|| Some(ConversationKey::main(main()?.settings.id)));
        let error = reason.map(|reason| (state.failed_call.unwrap_or("interrupted").to_owned(), reason.to_owned()));
        let summary = TurnSummary {
            conversation,
            agent_name,
            model: state.model,
            input_tokens: state.input_tokens,
            output_tokens: state.output_tokens,
            start: state.start.or_else(|| time_of_id(turn)).unwrap_or(event.time),
            end: event.time,
            error,
        };
        self.queue.push(self.spans.turn(turn, summary));
    }

    fn drain_records(&mut self, records: &mut Receiver<Arc<TraceRecord>>) {
        loop {
            match records.try_recv() {
                Ok(record) => self.on_record(&record),
                Err(TryRecvError::Lagged(missed)) => self.queue.count_missed(missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Forgets the turns that run: their ends may be among the events that were missed. Those that end later have a span all the same.
    fn on_missed_events(&mut self) {
        self.queue.count_missed(self.turns.len() as u64);
        self.turns.clear();
    }

    fn turn(&mut self, turn: Uuid) -> &mut TurnState {
        if self.turns.len() >= MAX_TURNS {
            self.turns.pop_first();
        }
        self.turns.entry(turn).or_default()
    }
}

/// Returns when an id was made.
fn time_of_id(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
}
