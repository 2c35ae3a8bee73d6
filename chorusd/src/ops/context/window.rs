//! `context.show` with `window`: what the next call of the model would be sent.

use std::sync::Arc;

use chorus_proto::{
    ErrorKind, Mend, Message, PieceKind, Receipt, ShortMessage, Window, WindowBudget, WindowMessage, WindowPiece,
    WindowTool,
};

use super::wrong_reply;
use crate::agent::accepts::Accepts;
use crate::agent::compaction::Wish;
use crate::agent::directory::Entry;
use crate::agent::effect::CallModel;
use crate::agent::event::{Reply, Verb};
use crate::agent::memories;
use crate::agent::prepare::{Prepared, prepare};
use crate::agent::prompt::Prompt;
use crate::agent::state::State;
use crate::agent::window::{Mended, Shortened};
use crate::estimate::{self, Parts, piece};
use crate::failure::{Failure, Result};
use crate::llm::ToolSpec;
use crate::ops::{Ops, blocking};

/// Bytes that an answer may have around a window.
const AROUND: usize = 16 << 10;

/// The account of it: made of what the call itself would be made of.
///
/// # Errors
/// `corrupt_session` where the context cannot be read back; `frame_too_long`; a database that cannot be read.
pub async fn window(ops: &Ops, agent: &Entry) -> Result<Window> {
    let facts = &agent.facts;
    let call = match ops.registry.info(facts.id) {
        None => State::default().next_call(facts),
        Some(_) => match ops.registry.ask(facts.id, Verb::Window).await?.reply {
            Reply::Window(call) => *call,
            _ => return Err(wrong_reply()),
        },
    };
    let target = call.facts.model.as_deref().and_then(|model| ops.models.resolve(model).ok());
    let longest = target.as_ref().map(|target| ops.models.longest_answer(target, facts.window.tokens));
    let accepts = match &target {
        Some(target) => Accepts::of(&ops.models, target, ops.usage.ratio(&target.to_string()).await?),
        None => Accepts::default(),
    };
    let remembered = memories::shown(&ops.store.catalog, vec![memories::whose(facts)]).await?.pop().flatten();
    let model = target.map(|target| target.to_string());
    let (max_frame, name) = (ops.config.max_frame, facts.name.clone());
    blocking(move || {
        let messages = call.facts.window.messages;
        let tight = call.tight;
        let (mut prompt, compacts) = prepared(call, &remembered, accepts);
        if let Some(longest) = longest {
            prompt.bound_answer(longest, accepts.tokens, tight);
        }
        let budget = WindowBudget { takes: accepts.tokens, window_messages: messages as u64, ..Default::default() };
        let window = account(prompt, compacts, model, budget);
        fitting(window, max_frame, &name)
    })
    .await
}

/// The message with the size of what is attached in place of its data: it is a picture of the request.
fn pictured(mut message: Message) -> Message {
    for file in &mut message.attachments {
        if let Some(data) = file.data.take() {
            let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
            file.size = Some((data.len() / 4 * 3).saturating_sub(padding) as u64);
        }
    }
    message
}

/// The window, where a frame has room for it.
fn fitting(window: Window, max_frame: usize, agent: &str) -> Result<Window> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, &window).map_err(|e| Failure::internal(e.to_string()))?;
    if length.0 <= max_frame.saturating_sub(AROUND) {
        return Ok(window);
    }
    let what = format!("the window has {} bytes, more than a frame may have", length.0);
    let hint = format!(
        "`chorusctl --agent {agent} context show --last N` shows the messages alone; \
         `chorusctl agent config {agent} window_messages N` has the model shown fewer"
    );
    Err(Failure::new(ErrorKind::FrameTooLong, what).hint(hint))
}

/// Bytes that were written.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is asked, after the compaction that comes before it, where one does.
fn prepared(mut call: CallModel, remembered: &Option<String>, accepts: Accepts) -> (Prompt, Option<Receipt>) {
    let mut receipt = None;
    loop {
        match prepare(&call, remembered.clone(), accepts) {
            Prepared::Prompt(prompt) => return (*prompt, receipt),
            Prepared::Compacts(plan) => {
                let compaction = plan.by_rules(&call.messages, &call.working_set, None);
                (call.view, call.wish) = (plan.upto, Wish::No);
                compaction.derived.put_into(&mut call.working_set);
                receipt = Some(compaction.receipt);
            }
        }
    }
}

fn account(prompt: Prompt, compacts: Option<Receipt>, model: Option<String>, budget: WindowBudget) -> Window {
    let Prompt { request, pieces, left_out, mended, shortened, fits } = prompt;
    let system: Vec<_> = pieces
        .into_iter()
        .zip(request.system)
        .map(|(kind, text)| WindowPiece { kind, tokens: piece(text.len() as u64), text })
        .collect();
    let messages: Vec<_> = request
        .messages
        .into_iter()
        .map(|message| WindowMessage { tokens: Parts::of(&message).tokens(), message: pictured(message) })
        .collect();
    let tool = |spec: &Arc<ToolSpec>| WindowTool { name: spec.name.clone(), tokens: estimate::tool(spec) };
    let tools: Vec<_> = request.tools.iter().map(tool).collect();
    let of = |working_set: bool| -> u64 {
        let pieces = system.iter().filter(|piece| (piece.kind == PieceKind::WorkingSet) == working_set);
        pieces.map(|piece| piece.tokens).sum()
    };
    let budget = WindowBudget {
        system: of(false),
        working_set: of(true),
        messages: messages.iter().map(|message| message.tokens).sum(),
        tools: tools.iter().map(|tool| tool.tokens).sum(),
        limit: fits,
        left_out: left_out as u64,
        answer: request.max_tokens.into(),
        ..budget
    };
    let tokens = budget.system + budget.working_set + budget.messages + budget.tools;
    let mended = mended.into_iter().map(|Mended { id, what }| Mend { message_id: id, how: what }).collect();
    let shortened =
        shortened.into_iter().map(|Shortened { id, bytes }| ShortMessage { message_id: id, bytes }).collect();
    Window { model, system, messages, mended, shortened, tools, budget: WindowBudget { tokens, ..budget }, compacts }
}
