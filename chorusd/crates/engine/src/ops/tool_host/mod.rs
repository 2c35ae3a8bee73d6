//! Implements [`ToolHost`]: operations that tools request.

mod agent_messages;
mod list_agents;
mod schedules;
mod search_sessions;
mod self_edit;

use std::time::Duration;

use chorus_base::error::Result;
use chorus_session::conversation::ConversationKey;
use futures_util::future::{BoxFuture, FutureExt as _};
use uuid::Uuid;

use super::Ops;
use crate::tools::{ScheduleRequest, SelfEdit, SessionQuestion, ToolCaller, ToolHost};
pub use agent_messages::AgentMessageLimits;

impl ToolHost for Ops {
    fn list_agents(&self, asker: Uuid) -> BoxFuture<'_, String> {
        list_agents::describe_agents(self, asker).boxed()
    }

    fn self_edit(&self, asker: ToolCaller, edit: SelfEdit) -> BoxFuture<'_, Result<()>> {
        self_edit::self_edit(self, asker, edit).boxed()
    }

    fn search_sessions(&self, asker: ToolCaller, question: SessionQuestion) -> BoxFuture<'_, Result<String>> {
        search_sessions::answer(self, asker, question).boxed()
    }

    fn reserve_worktree(&self, conversation: ConversationKey) -> BoxFuture<'_, Result<String>> {
        self.agent_resolver.reserve_worktree(conversation).boxed()
    }

    fn schedule(&self, asker: ToolCaller, request: ScheduleRequest) -> BoxFuture<'_, Result<String>> {
        schedules::carry_out(self, asker, request).boxed()
    }

    fn send_to_agent(
        &self,
        asker: ToolCaller,
        agent: String,
        message: String,
        wait: Option<Duration>,
    ) -> BoxFuture<'_, Result<String>> {
        agent_messages::send_message(self, asker, agent, message, wait).boxed()
    }
}
