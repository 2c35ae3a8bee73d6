//! `context.show` with `window`: what the next call of the model would be sent.

use std::sync::Arc;

use chorus_proto::{Mend, PieceKind, Receipt, Window, WindowBudget, WindowMessage, WindowPiece, WindowTool};

use super::wrong_reply;
use crate::agent::compaction::Wish;
use crate::agent::directory::Entry;
use crate::agent::effect::CallModel;
use crate::agent::event::{Reply, Verb};
use crate::agent::memories;
use crate::agent::prepare::{Prepared, prepare};
use crate::agent::prompt::{Prompt, estimated};
use crate::agent::state::State;
use crate::agent::window::Mended;
use crate::estimate::{self, Parts, piece};
use crate::failure::Result;
use crate::llm::ToolSpec;
use crate::ops::{Ops, blocking};

/// The account of it: made of what the call itself would be made of.
///
/// # Errors
/// `corrupt_session` where the context cannot be read back; a database that cannot be read.
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
    let takes = match &target {
        Some(target) => {
            let ratio = ops.usage.ratio(&target.to_string()).await?;
            ops.models.window_of(target).map(|takes| estimated(takes, ratio))
        }
        None => None,
    };
    let remembered = memories::shown(&ops.store.catalog, vec![memories::whose(facts)]).await?.pop().flatten();
    let model = target.map(|target| target.to_string());
    blocking(move || {
        let messages = call.facts.window.messages;
        let (prompt, compacts) = prepared(call, &remembered, takes);
        Ok(account(
            prompt,
            compacts,
            model,
            WindowBudget { takes, window_messages: messages as u64, ..Default::default() },
        ))
    })
    .await
}

/// What is asked, after the compaction that comes before it, where one does.
fn prepared(mut call: CallModel, remembered: &Option<String>, takes: Option<u64>) -> (Prompt, Option<Receipt>) {
    let mut receipt = None;
    loop {
        match prepare(&call, remembered.clone(), takes) {
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
    let Prompt { request, pieces, left_out, mended, fits } = prompt;
    let system: Vec<_> = pieces
        .into_iter()
        .zip(request.system)
        .map(|(kind, text)| WindowPiece { kind, tokens: piece(text.len() as u64), text })
        .collect();
    let messages: Vec<_> = request
        .messages
        .into_iter()
        .map(|message| WindowMessage { tokens: Parts::of(&message).tokens(), message })
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
    Window { model, system, messages, mended, tools, budget: WindowBudget { tokens, ..budget }, compacts }
}
