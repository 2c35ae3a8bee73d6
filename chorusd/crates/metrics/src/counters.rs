//! Counts events and model calls as they happen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_catalog::UsageRow;
use chorus_proto::{Event, EventType};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::families::{
    CallLabels, EventLabels, Families, ModelLabels, OutcomeLabels, TokenLabels, ToolLabels, TriggerLabels,
};

/// Counts events until `stop`.
pub(crate) async fn count_events(families: Arc<Families>, mut events: Receiver<Arc<Event>>, stop: CancellationToken) {
    let mut counter = EventCounter { families, turns: HashMap::new(), tools: HashMap::new() };
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.recv() => event,
        };
        match event {
            Ok(event) => counter.count(&event),
            Err(RecvError::Lagged(missed)) => counter.on_missed(missed),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Counts model calls until `stop`.
pub(crate) async fn count_calls(families: Arc<Families>, mut calls: Receiver<Arc<UsageRow>>, stop: CancellationToken) {
    loop {
        let call = tokio::select! {
            () = stop.cancelled() => return,
            call = calls.recv() => call,
        };
        match call {
            Ok(call) => count_call(&families, &call),
            Err(RecvError::Lagged(missed)) => {
                families.missed_events.inc_by(missed);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn count_call(families: &Families, call: &UsageRow) {
    let model = || call.model.clone();
    families.calls.get_or_create(&CallLabels { model: model(), purpose: call.kind.as_str().to_owned() }).inc();
    let seconds = Duration::from_millis(call.duration_ms).as_secs_f64();
    families.call_seconds.get_or_create(&ModelLabels { model: model() }).observe(seconds);
    let kinds = [
        ("input", call.input),
        ("output", call.output),
        ("cache_read", call.cache_read),
        ("cache_write", call.cache_write),
    ];
    for (kind, tokens) in kinds {
        families.tokens.get_or_create(&TokenLabels { model: model(), kind: kind.to_owned() }).inc_by(tokens);
    }
    match call.cost_usd {
        Some(cost) => {
            families.cost.get_or_create(&ModelLabels { model: model() }).inc_by(cost.max(0.0));
        }
        None => {
            families.unpriced_calls.get_or_create(&ModelLabels { model: model() }).inc();
        }
    }
}

/// Counts events, and knows when turns and calls of tools that run now have started.
#[derive(Debug)]
struct EventCounter {
    families: Arc<Families>,
    /// By the id of the turn.
    turns: HashMap<String, Timestamp>,
    /// By the id of the turn and that of the call.
    tools: HashMap<(String, String), Timestamp>,
}

impl EventCounter {
    fn count(&mut self, event: &Event) {
        // Pieces of replies are no events of their own.
        if event.kind == EventType::TurnDelta {
            return;
        }
        let families = self.families.clone();
        families.events.get_or_create(&EventLabels { r#type: event.kind.as_str().to_owned() }).inc();
        let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match event.kind {
            EventType::MessageAppended => {
                let appended = event.data.get("appended").and_then(Value::as_u64).unwrap_or_default();
                families.messages.inc_by(appended);
            }
            EventType::ContextSaved => {
                families.saves.get_or_create(&TriggerLabels { trigger: text("trigger") }).inc();
            }
            EventType::TurnStarted => {
                self.turns.insert(text("turn_id"), event.time);
            }
            EventType::TurnFinished | EventType::TurnInterrupted => {
                let is_finished = event.kind == EventType::TurnFinished;
                let outcome = if is_finished { "finished" } else { "interrupted" }.to_owned();
                families.turns.get_or_create(&OutcomeLabels { outcome }).inc();
                let id = text("turn_id");
                if let Some(start) = self.turns.remove(&id) {
                    families.turn_seconds.observe(seconds_between(start, event.time));
                }
                // Those that the end of the turn ended.
                self.tools.retain(|(turn, _), _| *turn != id);
            }
            EventType::ToolStarted => {
                self.tools.insert((text("turn_id"), text("id")), event.time);
            }
            EventType::ToolFinished => {
                let is_error = event.data.get("is_error").and_then(Value::as_bool).unwrap_or_default();
                let outcome = if is_error { "error" } else { "ok" }.to_owned();
                families.tools.get_or_create(&ToolLabels { tool: text("name"), outcome }).inc();
                if let Some(start) = self.tools.remove(&(text("turn_id"), text("id"))) {
                    families.tool_seconds.observe(seconds_between(start, event.time));
                }
            }
            _ => {}
        }
        self.set_running();
    }

    /// Forgets what runs: its end may be among the events that were missed.
    fn on_missed(&mut self, missed: u64) {
        self.families.missed_events.inc_by(missed);
        self.turns.clear();
        self.tools.clear();
        self.set_running();
    }

    fn set_running(&self) {
        self.families.running_turns.set(i64::try_from(self.turns.len()).unwrap_or(i64::MAX));
    }
}

/// Returns the time between two events; 0 if the clock was set back.
fn seconds_between(start: Timestamp, end: Timestamp) -> f64 {
    end.duration_since(start).as_secs_f64().max(0.0)
}
