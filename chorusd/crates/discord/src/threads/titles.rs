//! The title of a thread's conversation is the name of the thread.

use std::sync::Arc;

use chorus_engine::ops::conversations::ConversationKey;
use chorus_runtime::SpawnTracked as _;
use serenity::model::id::ChannelId;

use crate::app::DiscordApp;
use crate::conversations::{conversation_title, of_thread};

/// Gives the conversation of a thread the name that the thread has now as its title, in the background. The name of the
/// conversation stays, because scripts may use it.
pub(super) fn follow_name(app: &Arc<DiscordApp>, id: ChannelId) {
    if wanted_title(app, id).is_some() {
        app.tasks.spawn_tracked(set_title(app.clone(), id));
    }
}

/// Returns the conversation of a thread and the title that it should have, if it has another one.
fn wanted_title(app: &DiscordApp, id: ChannelId) -> Option<(ConversationKey, String)> {
    let thread = app.channels.threads.get(id)?;
    let title = conversation_title(app, thread.name.as_deref()?)?;
    let row = of_thread(&app.ops, app.channels.agent_of(thread.parent)?.settings.id, id)?;
    (row.title.as_ref() != Some(&title)).then_some((row.key, title))
}

async fn set_title(app: Arc<DiscordApp>, id: ChannelId) {
    // One task at a time for a thread, so that the last name stays.
    let Some((key, _)) = wanted_title(&app, id) else { return };
    let _one_at_a_time = app.channels.thread_locks.lock(key.id).await;
    let Some((key, title)) = wanted_title(&app, id) else { return };
    if let Err(failure) = app.ops.agent_resolver.set_conversation_title(key, title).await {
        tracing::warn!(thread = %id, %failure, "cannot give the conversation of a thread its new title");
    }
}
