//! Redacts secrets in a model's reply: in the stream, and in what is recorded.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::sync::Mutex;
use chorus_llm::{CallError, Reply, StreamEvent};
use chorus_proto::ToolCall;
use chorus_redact::{Redactor, StreamRedactor, redact_tool_calls};

/// Redacts the stream of a reply and forwards it.
pub(super) struct RedactedStream<F> {
    /// `None`: everything is forwarded as it is.
    redactors: Option<Mutex<StreamRedactors>>,
    forward: F,
}

struct StreamRedactors {
    text: StreamRedactor,
    thinking: StreamRedactor,
    redactor: Arc<Redactor>,
}

impl<F: Fn(StreamEvent)> RedactedStream<F> {
    pub(super) fn new(redactor: Option<&Arc<Redactor>>, forward: F) -> Self {
        let flows = |redactor: &Arc<Redactor>| {
            Mutex::new(StreamRedactors {
                text: redactor.stream(),
                thinking: redactor.stream(),
                redactor: redactor.clone(),
            })
        };
        Self { redactors: redactor.map(flows), forward }
    }

    /// Pushes a piece. Text that may be the start of a secret is held back until that is decided.
    pub(super) fn push(&self, piece: StreamEvent) {
        let Some(flows) = &self.redactors else { return (self.forward)(piece) };
        let mut flows = flows.lock();
        let piece = match piece {
            StreamEvent::Text(text) => StreamEvent::Text(flows.text.push(text)),
            StreamEvent::Thinking(text) => StreamEvent::Thinking(flows.thinking.push(text)),
            StreamEvent::Note(note) => StreamEvent::Note(flows.redactor.redact_text(&note).into_owned()),
            StreamEvent::Retry { attempt, wait, why } => {
                StreamEvent::Retry { attempt, wait, why: flows.redactor.redact_text(&why).into_owned() }
            }
            // Announced when the tool runs.
            StreamEvent::ToolCall { .. } => return,
        };
        self.forward_non_empty(piece);
    }

    /// Forwards what was held back. A reply may be cut off anywhere, and its end must not show part of a secret.
    pub(super) fn finish(&self) {
        let Some(flows) = &self.redactors else { return };
        let mut flows = flows.lock();
        let thinking = flows.thinking.finish(true);
        self.forward_non_empty(StreamEvent::Thinking(thinking));
        let text = flows.text.finish(true);
        self.forward_non_empty(StreamEvent::Text(text));
    }

    fn forward_non_empty(&self, piece: StreamEvent) {
        if !matches!(&piece, StreamEvent::Text(text) | StreamEvent::Thinking(text) if text.is_empty()) {
            (self.forward)(piece);
        }
    }
}

/// A reply, and its tool calls as they are recorded. The calls in the reply itself run as the model wrote them.
pub(super) type RedactedReply = Result<(Reply, Vec<ToolCall>), CallError>;

/// Redacts the outcome of a model call for the record.
pub(super) fn redact_reply(answered: Result<Reply, CallError>, redactor: Option<&Arc<Redactor>>) -> RedactedReply {
    let Some(redactor) = redactor else {
        return answered.map(|reply| {
            let calls = reply.tool_calls.clone();
            (reply, calls)
        });
    };
    match answered {
        Ok(mut reply) => {
            reply.content = redactor.redact_truncated(reply.content);
            // Signed provider blocks must be returned unchanged, so one with a secret is dropped.
            reply.provider = reply.provider.filter(|blocks| redactor.redact_json(blocks.get()).1 == 0);
            for call in &mut reply.tool_calls {
                call.name = redactor.redact_text(&call.name).into_owned();
                call.id = redactor.redact_text(&call.id).into_owned();
            }
            let kept = redact_tool_calls(&reply.tool_calls, redactor);
            Ok((reply, kept))
        }
        Err(error) => Err(CallError { partial: redactor.redact_truncated(error.partial), ..error }),
    }
}

/// Redacts a reply of which only the text is used.
pub(super) fn redact_reply_text(reply: Reply, settings: &AgentSettings, redactor: &Redactor) -> Reply {
    if !settings.redact {
        return reply;
    }
    Reply { content: redactor.redact_truncated(reply.content), ..reply }
}

#[cfg(test)]
mod tests {
    use chorus_base::Secret;
    use chorus_llm::StopReason;
    use chorus_proto::Usage;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn what_runs_is_what_the_model_wrote_and_what_is_kept_is_not() {
        let redactor = Arc::new(Redactor::new(|| [1; 32]));
        redactor.add_own_key(&Secret::new("own-key-0123456789".into()));
        let written = r#"{"command":"curl -H 'x: own-key-0123456789'","n":1.50}"#;
        let params = RawValue::from_string(written.into()).unwrap();
        let tool_calls = vec![ToolCall { id: "c".into(), name: "bash".into(), params }];
        let reply = Reply {
            content: "with own-key-0123456789".into(),
            tool_calls,
            provider: None,
            usage: Usage::default(),
            cache_write_tokens: None,
            stop: StopReason::ToolCalls,
        };
        let (reply, kept) = redact_reply(Ok(reply), Some(&redactor)).unwrap();
        assert_eq!(reply.tool_calls[0].params.get(), written);
        assert!(reply.content.starts_with("with [redacted:chorus-key:"), "{}", reply.content);
        let kept = kept[0].params.get();
        assert!(
            kept.starts_with(r#"{"command":"curl -H 'x: [redacted:chorus-key:"#) && kept.ends_with(r#"'","n":1.50}"#)
        );
    }
}
