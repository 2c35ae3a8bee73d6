//! Claims that the node with the gateway makes for all, and that each node works on for its own agents.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::discord::{OpenClaim, SharedDiscord};
use serenity::model::id::{ChannelId, MessageId};
use tokio::time::sleep;

use super::conversation_queue::PendingEdit;
use super::{Claim, MessageRequest, claim_from_row, drop_unreadable, message_id};
use crate::app::DiscordApp;
use crate::{direct, threads};

/// Time between two looks whether a message that waits was edited or deleted, if nobody says so.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Queues open claims of this node's agents that are in no queue, in their order.
///
/// # Errors
/// Fails if the database cannot be read.
pub(crate) async fn queue_claims(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord, open: Vec<u64>) -> Result<()> {
    let queued = app.inbound.queues.message_ids();
    for message in open.into_iter().filter(|message| !queued.contains(message)) {
        let Some(row) = shared.open_claim(message).await? else { continue };
        match take_on(app, &row).await {
            Ok(Some(claim)) => app.inbound.queues.enqueue(app, claim),
            Ok(None) => drop_unreadable(&app.tables, &app.outbox, &row).await,
            Err(failure) => tracing::info!(message, %failure, "a message waits for its agent"),
        }
    }
    Ok(())
}

/// Returns the claim of a row, once its agent is here and it is known what its channel is.
async fn take_on(app: &DiscordApp, row: &OpenClaim) -> Result<Option<Claim>> {
    app.ops.agent_resolver.claims.ensure(row.agent, &row.agent.to_string()).await?;
    if let Some(channel) = app.tables.channels.get(row.channel).await? {
        threads::learn(app, &channel);
        direct::learn(app, &channel);
    }
    claim_from_row(app, row).await
}

/// Returns a claim as it is now, because the message may have been edited or deleted since it was queued. `None` if nothing is
/// to be done for it here any more.
pub(super) async fn current(app: &DiscordApp, claim: &Claim) -> Result<Option<Claim>> {
    let Some(shared) = &app.tables.shared else { return Ok(Some(claim.clone())) };
    if !is_here(app, claim) {
        return Ok(None);
    }
    let Some(row) = shared.open_claim(claim.message.get()).await? else { return Ok(None) };
    let request = serde_json::from_str(&row.request).unwrap_or_else(|_| claim.request.clone());
    Ok(Some(Claim { request, ..claim.clone() }))
}

/// Applies an edit or the deletion of a message that another node received, `asked` being what the message says as far as
/// its task knows. For a message whose turn has not started. Never returns.
pub(super) async fn follow_edits(app: &DiscordApp, claim: &Claim, asked: &MessageRequest) {
    let Some(shared) = &app.tables.shared else { return std::future::pending().await };
    let (mut news, mut known) = (shared.news(), asked.clone());
    loop {
        tokio::select! {
            () = sleep(LOOK_INTERVAL) => {}
            Ok(()) = news.changed() => {}
        }
        let edit = match shared.open_claim(claim.message.get()).await {
            Ok(None) if is_here(app, claim) => match shared.is_answered(claim.message.get()).await {
                Ok(false) => PendingEdit::Deleted,
                // Another node has had the agent meanwhile, which this one learns soon.
                _ => continue,
            },
            Ok(Some(row)) if !row.running => match serde_json::from_str::<MessageRequest>(&row.request) {
                Ok(asked) if asked != known => {
                    known = asked.clone();
                    PendingEdit::Changed(asked)
                }
                _ => continue,
            },
            _ => continue,
        };
        app.inbound.queues.apply_edit(claim.message, &edit);
        tracing::info!(message = %claim.message, "another node received an edit of a message that waits");
    }
}

/// Returns whether this node has the agent of a claim.
pub(super) fn is_here(app: &DiscordApp, claim: &Claim) -> bool {
    app.ops.agent_resolver.claims.has(claim.conversation.agent)
}

/// Returns the requests of the messages of a channel that are not answered yet.
///
/// # Errors
/// Fails if they are in the database and cannot be read.
pub(super) async fn waiting_requests(app: &DiscordApp, channel: ChannelId) -> Result<Vec<(MessageId, MessageRequest)>> {
    let Some(shared) = &app.tables.shared else { return Ok(app.inbound.queues.requests_in_channel(channel)) };
    let rows = shared.open_claims_in(channel.get()).await?;
    let read = |row: OpenClaim| Some((message_id(row.message)?, serde_json::from_str(&row.request).ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
}
