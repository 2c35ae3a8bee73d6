//! The operation `context.pin`.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::window::working_set_block::shown_pins;
use chorus_base::error::Result;
use chorus_base::new_id;
use chorus_proto::methods::context::{PinParams, PinResult};
use chorus_proto::{Item, ItemSource, WorkingSet};
use chorus_session::notes::{NoteEdit, NoteList};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::conversations::ConversationTarget;
use crate::ops::notes::validate_text;

/// Pins a fact.
pub async fn pin(agents: &AgentResolver, registry: &Arc<Registry>, params: PinParams) -> Result<PinResult> {
    let text = validate_text("a fact", &params.fact)?;
    let target = agents.conversation_to_write(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let ConversationTarget { agent, key: conversation, .. } = target;
    let item = Item { id: new_id().to_string(), text, source: ItemSource::Hand, message_id: None };
    let edit = NoteEdit::Add { list: NoteList::PinnedFacts, item };
    let set = registry.ask(conversation, command::edit_notes(edit)).await?.working_set;
    let warnings = pins_warning(&agent.settings, &set).into_iter().collect();
    Ok(PinResult { pinned_facts: set.pinned_facts, warnings })
}

/// Returns the warning that the pinned facts have no room in the agent's window.
pub fn pins_warning(settings: &AgentSettings, set: &WorkingSet) -> Option<String> {
    let (total, shown) = (set.pinned_facts.len(), shown_pins(set, settings.window.tokens));
    (shown < total).then(|| {
        format!(
            "the model sees only the newest {shown} of {total} pinned facts, because they may use {} tokens (half of \
             `compact_at_tokens`); remove some: chorusctl context unpin N",
            settings.window.tokens / 2
        )
    })
}
