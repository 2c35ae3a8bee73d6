//! Part of the state machine: a large context whose first messages are still being loaded. Its last messages can be
//! read, and messages can be appended to it, meanwhile.

use std::mem;

use chorus_base::error::Result;
use chorus_proto::EventType;
use serde_json::json;

use super::context::{Context, PageRange};
use super::effect::Effect;
use super::event::{AgentCommand, Request};
use super::state::State;

/// Progress of loading a context whose first messages are not in memory yet.
#[derive(Debug)]
pub(super) struct PartialLoad {
    /// Number of messages that were loaded first; the whole context contains them once more.
    tail_messages: usize,
    /// Whether the working set is loaded.
    set_known: bool,
    /// The first request that needs the whole context; later requests wait behind it.
    held_request: Option<Request>,
}

impl State {
    /// Returns the state of an agent of whose context only the last messages were loaded, and with `set_known` also the
    /// working set. [`super::event::Event::ContextLoaded`] brings the whole context.
    #[must_use]
    pub fn partially_loaded(tail: Context, next_record: u32, set_known: bool) -> Self {
        let partial = PartialLoad { tail_messages: tail.messages.len(), set_known, held_request: None };
        let mut state = Self::recovered(tail, next_record, None);
        state.partial_load = Some(partial);
        state
    }

    /// Whether the first messages of the context are still being loaded.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.partial_load.is_some()
    }

    /// Whether a request waits until the whole context is loaded.
    pub(super) fn holds_request(&self) -> bool {
        self.partial_load.as_ref().is_some_and(|partial| partial.held_request.is_some())
    }

    /// Returns the request if it can be handled now, or holds it until the whole context is loaded.
    pub(super) fn admit_or_hold(&mut self, request: Request) -> Option<Request> {
        let first = self.context.as_ref().map_or(0, Context::first_in_memory);
        let Some(partial) = &mut self.partial_load else { return Some(request) };
        let needs_only_tail = match request.command {
            AgentCommand::Append { .. } => true,
            AgentCommand::ReadPage { pick: PageRange::From { offset, .. }, .. } => partial.set_known && offset >= first,
            AgentCommand::ReadPage { pick: PageRange::Last(last), .. } => {
                let in_memory = self.context.as_ref().map_or(0, |context| context.messages.len());
                partial.set_known && last <= in_memory as u64
            }
            _ => false,
        };
        if needs_only_tail {
            return Some(request);
        }
        partial.held_request = Some(request);
        None
    }

    /// Puts the whole context in place, with the messages that were appended while it was loaded. If loading failed,
    /// marks the context as unreadable and notifies observers.
    pub(super) fn on_context_loaded(&mut self, result: Result<Context>, effects: &mut Vec<Effect>) {
        let Some(partial) = self.partial_load.take() else { return };
        let Some(mut current) = self.context.take() else { return };
        self.context = Some(match result {
            Ok(mut whole) => {
                let appended = current.messages.get(partial.tail_messages..).unwrap_or_default();
                if !appended.is_empty() {
                    whole.push(appended.to_vec(), current.last_activity_at, current.deadline);
                }
                whole
            }
            Err(failure) => {
                // A client that has read the last messages, or appended some, may send no further request.
                let hint = failure.hint.as_deref().unwrap_or("run `chorusctl doctor`");
                let text = format!("cannot load the live context, so it accepts no messages: {failure}; {hint}");
                effects.push(Effect::EmitEvent(EventType::Notice, json!({"text": text})));
                self.load_error = Some(failure);
                mem::take(&mut current.messages);
                current
            }
        });
        if let Some(request) = partial.held_request {
            self.handle_request(request, effects);
        }
    }
}
