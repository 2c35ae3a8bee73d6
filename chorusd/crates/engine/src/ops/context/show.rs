//! The operation `context.show`.

use std::sync::Arc;

use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_agent_core::event::ContextPage;
use chorus_base::error::{Error, Result};
use chorus_config::Config;
use chorus_proto::methods::context::{ShowParams, ShowResult};
use chorus_proto::{ContextInfo, WorkingSet};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;

use super::show_window::describe_window;
use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::context_meter::ContextMeter;
use crate::ops::conversations::ConversationTarget;

/// Returns a page of the live context, which is empty for an idle agent.
///
/// # Errors
/// `invalid_params`, `agent_not_found`; `corrupt_session` if the context cannot be read back.
pub async fn show(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    meter: &ContextMeter,
    config: &Config,
    params: ShowParams,
) -> Result<ShowResult<StoredMessage>> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    if params.window {
        if params.last.is_some() || params.offset.is_some() || params.limit.is_some() {
            return Err(Error::invalid("`window` cannot be combined with `last`, `offset` or `limit`")
                .hint("use `window` alone: it shows the whole next request"));
        }
        let context = registry.context_info(conversation);
        let window = describe_window(meter, config.max_frame, &agent, conversation).await?;
        return Ok(ShowResult {
            context,
            window: Some(Box::new(window)),
            ..empty_result(agents, &agent, conversation)
        });
    }
    let pick = match (params.last, params.offset, params.limit) {
        (Some(last), None, None) => PageRange::Last(last),
        (None, offset, limit) => PageRange::From { offset: offset.unwrap_or(0), limit: limit.unwrap_or(u64::MAX) },
        _ => {
            return Err(Error::invalid("`last` cannot be combined with `offset` or `limit`")
                .hint("use `last` alone, or `offset` and `limit`"));
        }
    };
    let empty = empty_result(agents, &agent, conversation);
    if !registry.may_have_context(conversation) {
        return Ok(empty);
    }
    let budget = PageBudget::from_max_frame(config.max_frame);
    let page = registry.ask(conversation, command::read_page(pick, budget)).await?;
    let ContextPage { messages, working_set, info, next } = page;
    let meter = meter.measure_one(&ConversationTarget::new(agent, conversation)).await?;
    let context = info.map(|info| ContextInfo { meter, ..info });
    Ok(ShowResult { messages, working_set: *working_set, context, next, ..empty })
}

/// Returns the result for a conversation without a context.
fn empty_result(agents: &AgentResolver, agent: &AgentEntry, key: ConversationKey) -> ShowResult<StoredMessage> {
    ShowResult {
        agent_name: agent.settings.name.clone(),
        conversation: agents.index.conversations.reference(key),
        messages: Vec::new(),
        working_set: WorkingSet::default(),
        context: None,
        next: None,
        window: None,
    }
}
