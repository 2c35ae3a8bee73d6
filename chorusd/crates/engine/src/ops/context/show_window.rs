//! `context.show` with `window`: shows the window that the next model call would send.

use std::sync::Arc;

use chorus_agent_core::compaction::CompactionMode;
use chorus_agent_core::effect::CallModel;
use chorus_agent_core::state::State;
use chorus_agent_core::window::{Repair, ShortenedMessage};
use chorus_base::error::{Error, Result};
use chorus_llm::{ModelRef, ToolSpec};
use chorus_proto::{
    CountedTokens, ErrorKind, Mend, Message, PieceKind, Receipt, ShortMessage, TokenSource, Window, WindowBudget,
    WindowMessage, WindowPiece, WindowTool,
};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::token_estimate::{MessageSize, tokens_of_piece};
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::agent::memory_prompt;
use crate::agent::model_limits::ModelLimits;
use crate::agent::prompt::Prompt;
use crate::agent::request_builder::{BuildOutcome, build_request};
use crate::ops::context_meter::ContextMeter;
use crate::tools::McpTools;

/// Bytes of a reply that surround a window.
const REPLY_OVERHEAD_BYTES: usize = 16 << 10;

/// Describes the window, which is built exactly as for the model call itself.
///
/// # Errors
/// `corrupt_session` if the context cannot be read back; `frame_too_long`; a database error.
pub(super) async fn describe_window(
    meter: &ContextMeter,
    max_frame: usize,
    agent: &AgentEntry,
    conversation: ConversationKey,
) -> Result<Window> {
    let settings = &agent.settings;
    let call = match meter.registry.may_have_context(conversation) {
        false => State::default().next_call(settings),
        true => meter.registry.ask(conversation, command::window()).await?,
    };
    let target = call.settings.model.as_deref().and_then(|model| meter.models.resolve(model).ok());
    let longest = target.as_ref().map(|target| meter.models.max_reply_tokens(target, settings.window.tokens));
    let ratio = match &target {
        Some(target) => meter.usage.calibration_ratio(&target.to_string()).await?,
        None => None,
    };
    let accepts =
        target.as_ref().map_or_else(ModelLimits::default, |of| ModelLimits::for_target(&meter.models, of, ratio));
    let remembered = memory_prompt::load_memory_blocks(&meter.memories, vec![memory_prompt::memory_scope(settings)])
        .await?
        .pop()
        .flatten();
    let messages = call.settings.window.messages;
    let tight = call.reduced;
    let servers = meter.registry.tools.mcp.tools(&settings.mcp);
    let (prompt, compacts) = run_blocking(move || {
        let (mut prompt, compacts) = build_prompt(call, &remembered, &servers, accepts);
        if let Some(longest) = longest {
            prompt.limit_reply(longest, accepts.tokens, tight);
        }
        Ok((Arc::new(prompt), compacts))
    })
    .await?;
    let counted = match &target {
        Some(target) => count_prompt(meter, settings.id, target, &prompt, ratio).await?,
        None => None,
    };
    let name = settings.name.clone();
    run_blocking(move || {
        let budget =
            WindowBudget { takes: accepts.tokens, window_messages: messages as u64, counted, ..Default::default() };
        let prompt = Arc::try_unwrap(prompt).map_err(|_| Error::internal("the prompt is still in use"))?;
        let window = to_window(prompt, compacts, target.map(|target| target.to_string()), budget);
        ensure_fits_frame(window, max_frame, &name)
    })
    .await
}

/// Counts the prompt with the model's vocabulary, or asks the provider. `None` if neither is possible.
async fn count_prompt(
    meter: &ContextMeter,
    agent: Uuid,
    target: &ModelRef,
    prompt: &Arc<Prompt>,
    ratio: Option<f64>,
) -> Result<Option<CountedTokens>> {
    let counter = meter.registry.token_counter.clone();
    let (of, shared) = (target.clone(), prompt.clone());
    let (print, mut count) = run_blocking(move || {
        let print = counter.fingerprint(&of, &shared.request);
        let count = counter.count(agent, &of, (&shared.request, &print), ratio, true);
        drop(shared);
        Ok((print, count))
    })
    .await?;
    if count.source == TokenSource::Estimated
        && !prompt.request.messages.is_empty()
        && let Some(told) = meter.registry.token_counter.ask_provider(agent, target, &prompt.request, &print).await
    {
        count = told;
    }
    let counted = CountedTokens { tokens: count.tokens, source: count.source };
    Ok((counted.source != TokenSource::Estimated).then_some(counted))
}

/// Replaces the data of attachments by its size.
fn without_data(mut message: Message) -> Message {
    for file in &mut message.attachments {
        if let Some(data) = file.data.take() {
            let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
            file.size = Some((data.len() / 4 * 3).saturating_sub(padding) as u64);
        }
    }
    message
}

/// Checks that the window fits into a frame.
fn ensure_fits_frame(window: Window, max_frame: usize, agent: &str) -> Result<Window> {
    let mut length = ByteCounter(0);
    serde_json::to_writer(&mut length, &window).map_err(|e| Error::internal(e.to_string()))?;
    if length.0 <= max_frame.saturating_sub(REPLY_OVERHEAD_BYTES) {
        return Ok(window);
    }
    let what = format!("the window has {} bytes, more than fits in a frame", length.0);
    let hint = format!(
        "show only messages: chorusctl --agent {agent} context show --last N; or shrink the window: chorusctl \
         agent config {agent} window_messages N"
    );
    Err(Error::new(ErrorKind::FrameTooLong, what).hint(hint))
}

/// Counts the bytes that are written to it.
struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Builds the prompt, after the compaction that would precede the call if the prompt is too long.
fn build_prompt(
    mut call: CallModel,
    remembered: &Option<String>,
    servers: &McpTools,
    accepts: ModelLimits,
) -> (Prompt, Option<Receipt>) {
    let mut receipt = None;
    loop {
        match build_request(&call, remembered.clone(), servers, accepts) {
            BuildOutcome::Prompt(prompt) => return (*prompt, receipt),
            BuildOutcome::NeedsCompaction(plan) => {
                let compaction = plan.compact_by_rules(&call.messages, &call.working_set, None);
                (call.window_start, call.compaction_mode) = (plan.upto, CompactionMode::Off);
                compaction.derived.apply_to(&mut call.working_set);
                receipt = Some(compaction.receipt);
            }
        }
    }
}

fn to_window(prompt: Prompt, compacts: Option<Receipt>, model: Option<String>, budget: WindowBudget) -> Window {
    let Prompt { request, pieces, left_out, repairs: mended, shortened, conversation_budget: fits } = prompt;
    let system: Vec<_> = pieces
        .into_iter()
        .zip(request.system)
        .map(|(kind, text)| WindowPiece { kind, tokens: tokens_of_piece(&text), text })
        .collect();
    let messages: Vec<_> = request
        .messages
        .into_iter()
        .map(|message| WindowMessage {
            tokens: MessageSize::of_message(&message).tokens(),
            message: without_data(message),
        })
        .collect();
    let tool = |spec: &Arc<ToolSpec>| WindowTool { name: spec.name.clone(), tokens: chorus_llm::tokens_of_tool(spec) };
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
    let mended = mended.into_iter().map(|Repair { id, kind: what }| Mend { message_id: id, how: what }).collect();
    let shortened =
        shortened.into_iter().map(|ShortenedMessage { id, bytes }| ShortMessage { message_id: id, bytes }).collect();
    Window { model, system, messages, mended, shortened, tools, budget: WindowBudget { tokens, ..budget }, compacts }
}
