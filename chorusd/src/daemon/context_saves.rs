//! Saves the live contexts when the daemon stops, and after a stop that did not come to it.

use chorus_base::sync::Mutex;
use chorus_engine::agent::command;
use chorus_engine::ops::Ops;
use chorus_proto::Trigger;
use futures_util::StreamExt as _;

/// The limit on contexts that are saved concurrently when the daemon stops.
const MAX_CONCURRENT_SAVES: usize = 16;

/// Saves every context that has unsaved messages; the contexts stay live in the journal. Returns false if some could
/// not be saved; the next start saves those.
pub(super) async fn save_contexts(ops: &Ops) -> bool {
    let unsaved = ops.registry.unsaved_conversations();
    let count = unsaved.len();
    let failed = Mutex::new(0_usize);
    futures_util::stream::iter(unsaved)
        .for_each_concurrent(MAX_CONCURRENT_SAVES, |conversation| {
            let failed = &failed;
            async move {
                let save = command::save_if_unsaved(Trigger::Shutdown, false);
                if let Err(failure) = ops.registry.ask(conversation, save).await {
                    tracing::warn!(agent = %conversation.agent, %failure, "cannot save a context; it is in the journal");
                    *failed.lock() += 1;
                }
            }
        })
        .await;
    let failed = failed.into_inner();
    if count > 0 {
        tracing::info!(saved = count - failed, failed, "contexts saved");
    }
    failed == 0
}

/// Saves and ends every context, so that all agents start idle.
pub(super) async fn save_and_clear_all(ops: &Ops) {
    for conversation in ops.registry.live_conversations(None) {
        let save = command::save_if_unsaved(Trigger::Shutdown, true);
        if let Err(failure) = ops.registry.ask(conversation, save).await {
            tracing::warn!(agent = %conversation.agent, %failure, "cannot save an idle context; it stays live");
        }
    }
}
