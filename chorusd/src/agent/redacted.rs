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
            Output::Retry { attempt, wait, why } => {
                Output::Retry { attempt, wait, why: flows.redactor.text(&why).into_owned() }
            }
            // It is told when it runs.
            Output::Call { .. } => return,
        };
        self.pass_on(piece);
    }

    /// Passes on what was held back. `cut`: the answer is not whole.
    pub fn end(&self, cut: bool) {
        let Some(flows) = &self.flows else { return };
        let mut flows = flows.lock().unwrap_or_else(PoisonError::into_inner);
        let thinking = flows.thinking.end(cut);
        self.pass_on(Output::Thinking(thinking));
        let text = flows.text.end(cut);
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
