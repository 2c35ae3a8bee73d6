//! The operation `context.unpin`.

use std::sync::Arc;

use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::context::{PinResult, UnpinParams};
use chorus_session::notes::{NoteEdit, NoteRef};

use super::pin::pins_warning;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;
use crate::ops::hints;

/// Removes a pinned fact.
pub async fn unpin(agents: &AgentResolver, registry: &Arc<Registry>, params: UnpinParams) -> Result<PinResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let edit = NoteEdit::Remove { note: NoteRef::pinned_fact(params.n) };
    let set = match registry.ask(conversation, command::edit_notes(edit)).await {
        Ok(edited) => edited.working_set,
        Err(failure) if failure.kind == ErrorKind::NotFound => {
            let room = PageBudget { page_bytes: 0, message_bytes: 0 };
            let page = registry.ask(conversation, command::read_page(PageRange::Last(0), room)).await?;
            let (n, there_are) = (params.n, page.working_set.pinned_facts.len());
            return Err(Error::new(ErrorKind::NotFound, format!("no pinned fact {n} (there are {there_are})"))
                .hint(hints::LIST_PINNED_FACTS));
        }
        Err(failure) => return Err(failure),
    };
    let warnings = pins_warning(&agent.settings, &set).into_iter().collect();
    Ok(PinResult { pinned_facts: set.pinned_facts, warnings })
}
