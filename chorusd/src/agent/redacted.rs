//! What a model says, without secrets: while it says it, and as it is kept.

use std::sync::{Arc, Mutex, PoisonError};

use chorus_proto::ToolCall;

use super::Facts;
use crate::llm::{CallError, Models, Output, Reply};
use crate::redact::{Flow, Redactor, kept_calls};

/// Hears an answer as it comes and passes it on.
pub struct Hearing<F> {
    /// `None`: everything goes on as it comes.
    flows: Option<Mutex<Flows>>,
    tell: F,
}

struct Flows {
    text: Flow,
    thinking: Flow,
    redactor: Arc<Redactor>,
}

impl<F: Fn(Output)> Hearing<F> {
    pub fn new(redactor: Option<&Arc<Redactor>>, tell: F) -> Self {
        let flows = |redactor: &Arc<Redactor>| {
            Mutex::new(Flows { text: redactor.flow(), thinking: redactor.flow(), redactor: redactor.clone() })
        };
        Self { flows: redactor.map(flows), tell }
    }

    /// Takes a piece. What may become a secret is not passed on before that can be told.
    pub fn hear(&self, piece: Output) {
        let Some(flows) = &self.flows else { return (self.tell)(piece) };
        let mut flows = flows.lock().unwrap_or_else(PoisonError::into_inner);
        let piece = match piece {
            Output::Text(text) => Output::Text(flows.text.push(text)),
            Output::Thinking(text) => Output::Thinking(flows.thinking.push(text)),
            Output::Note(note) => Output::Note(flows.redactor.text(&note).into_owned()),
            Output::Retry { attempt, wait, why } => {
                Output::Retry { attempt, wait, why: flows.redactor.text(&why).into_owned() }
            }
            // It is told when it runs.
            Output::Call { .. } => return,
        };
        self.pass_on(piece);
    }

    /// Passes on what was held back. An answer may be cut off anywhere, and must not end with a piece of a secret.
    pub fn end(&self) {
        let Some(flows) = &self.flows else { return };
        let mut flows = flows.lock().unwrap_or_else(PoisonError::into_inner);
        let thinking = flows.thinking.end(true);
        self.pass_on(Output::Thinking(thinking));
        let text = flows.text.end(true);
        self.pass_on(Output::Text(text));
    }

    fn pass_on(&self, piece: Output) {
        if !matches!(&piece, Output::Text(text) | Output::Thinking(text) if text.is_empty()) {
            (self.tell)(piece);
        }
    }
}

/// An answer with the calls as they are kept; those in the reply itself run as the model wrote them.
pub type Answered = Result<(Reply, Vec<ToolCall>), CallError>;

/// What came of a call, as it is kept.
pub fn redacted(answered: Result<Reply, CallError>, redactor: Option<&Arc<Redactor>>) -> Answered {
    let Some(redactor) = redactor else {
        return answered.map(|reply| {
            let calls = reply.tool_calls.clone();
            (reply, calls)
        });
    };
    match answered {
        Ok(mut reply) => {
            reply.content = redactor.cut_text(reply.content);
            // What goes back signed goes back as it came, or not at all.
            reply.provider = reply.provider.filter(|blocks| redactor.json(blocks.get()).1 == 0);
            for call in &mut reply.tool_calls {
                call.name = redactor.text(&call.name).into_owned();
                call.id = redactor.text(&call.id).into_owned();
            }
            let kept = kept_calls(&reply.tool_calls, redactor);
            Ok((reply, kept))
        }
        Err(error) => Err(CallError { partial: redactor.cut_text(error.partial), ..error }),
    }
}

/// An answer of which only the text counts.
pub fn text_of(reply: Reply, facts: &Facts, models: &Models) -> Reply {
    if !facts.redact {
        return reply;
    }
    Reply { content: models.redactor().cut_text(reply.content), ..reply }
}

#[cfg(test)]
mod tests {
    use chorus_proto::Usage;
    use serde_json::value::RawValue;

    use super::*;
    use crate::config::Secret;
    use crate::llm::Stop;

    #[test]
    fn what_runs_is_what_the_model_wrote_and_what_is_kept_is_not() {
        let redactor = Arc::new(Redactor::new(|| [1; 32]));
        redactor.learn(&Secret::new("own-key-0123456789".into()));
        let written = r#"{"command":"curl -H 'x: own-key-0123456789'","n":1.50}"#;
        let params = RawValue::from_string(written.into()).unwrap();
        let tool_calls = vec![ToolCall { id: "c".into(), name: "bash".into(), params }];
        let reply = Reply {
            content: "with own-key-0123456789".into(),
            tool_calls,
            provider: None,
            usage: Usage::default(),
            cache_write_tokens: None,
            stop: Stop::Calls,
        };
        let (reply, kept) = redacted(Ok(reply), Some(&redactor)).unwrap();
        assert_eq!(reply.tool_calls[0].params.get(), written);
        assert!(reply.content.starts_with("with [redacted:chorus-key:"), "{}", reply.content);
        let kept = kept[0].params.get();
        assert!(
            kept.starts_with(r#"{"command":"curl -H 'x: [redacted:chorus-key:"#) && kept.ends_with(r#"'","n":1.50}"#)
        );
    }
}
