//! Builds the request of the next model call. Both the call itself and the preview of it use this function.

use chorus_agent_core::compaction::{CompactionPlan, plan_compaction};
use chorus_agent_core::effect::CallModel;

use super::model_limits::ModelLimits;
use super::prompt::{Prompt, build_prompt, conversation_budget, max_tool_tokens};
use super::prompt_size;
use crate::tools::{self, McpTools};

/// The next step: a request, or a compaction first.
#[derive(Debug)]
pub enum BuildOutcome {
    /// Send this prompt.
    Prompt(Box<Prompt>),
    /// Compact the window first.
    NeedsCompaction(CompactionPlan),
}

/// Builds the prompt, or plans a compaction. `remembered` is the memory block, `servers` are the tools of MCP servers.
/// Blocks, since it reads docs/.
#[must_use]
pub fn build_request(
    call: &CallModel,
    remembered: Option<String>,
    servers: &McpTools,
    accepts: ModelLimits,
) -> BuildOutcome {
    let (record, set) = (&call.messages[..], &call.working_set);
    let fixed = prompt_size::fixed_tokens(&call.settings, remembered.as_deref());
    let room = max_tool_tokens(accepts.tokens, fixed);
    let tools = tools::offer_tools(call.settings.permission_profile(), servers, room);
    let limit = conversation_budget(&call.settings, accepts.tokens, fixed + tools.tokens);
    if let Some(plan) = plan_compaction(record, (call.window_start, call.turn_start), set, limit, call.compaction_mode)
    {
        return BuildOutcome::NeedsCompaction(plan);
    }
    let view = call.window_start.min(record.len());
    let mut asked = build_prompt(&call.settings, remembered, &record[view..], set, accepts, tools, call.reduced);
    asked.left_out += view;
    if let Some(word) = call.final_answer {
        asked.disable_tools(word);
    }
    BuildOutcome::Prompt(Box::new(asked))
}
