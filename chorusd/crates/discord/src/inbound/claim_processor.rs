//! Processes a claimed message: runs its turn, and applies edits while it waits for that.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::turn_resumption::is_unanswered_key_error;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::conversations::ConversationTarget;
use chorus_engine::ops::discord::DiscordTables;
use chorus_engine::ops::send::{MessageOrigin, cancel_queued, send_to_conversation};
use chorus_proto::methods::send::{SendParams, SendResult};
use chorus_proto::{Author, ErrorKind, Source, SourceKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::conversation_queue::PendingEdit;
use super::request::MessageRequest;
use super::{Claim, RETRY_BACKOFF, attachments, shared_claims};
use crate::app::DiscordApp;
use crate::reply::{LiveReply, RESTARTED_MESSAGE, TurnOwner, TurnStage};
use crate::threads;

/// An agent may learn of the stop this much earlier than the Discord front end does.
const STOP_SIGNAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The outcome of a message's turn.
enum TurnOutcome {
    Ended(Result<SendResult>),
    /// The message was deleted before its turn started.
    Deleted,
    /// Another node has taken the agent over, and processes the message.
    Moved,
    /// The daemon stops; the next one processes the message.
    Postponed,
}

/// Hint for a turn that was interrupted.
const RETRY_HINT: &str = "Send the message again to retry.";

/// Time for which a message waits for a store that cannot be reached, while the database can.
const MAX_WAIT_FOR_STORE: Duration = Duration::from_secs(60);

/// Since when the store cannot be reached.
#[derive(Debug, Default)]
struct StoreWait(Option<Instant>);

impl StoreWait {
    /// Returns true for a failure that passes by itself: the agent is busy, or the database is gone. A bucket may stay wrong, which the
    /// channel is told after a while.
    async fn may_pass(&mut self, app: &DiscordApp, claim: &Claim, failure: &Error) -> bool {
        match failure.kind {
            ErrorKind::Busy => true,
            ErrorKind::StorageUnavailable => {
                if shared_claims::current(app, claim).await.is_err() {
                    self.0 = None;
                }
                self.0.get_or_insert_with(Instant::now).elapsed() < MAX_WAIT_FOR_STORE
            }
            _ => false,
        }
    }
}

/// Processes a claimed message. If the outcome cannot be stored, it is repeated until it can: the turn's key returns
/// the same reply.
pub(super) async fn process_claim(app: &Arc<DiscordApp>, claim: &Claim, changes: watch::Receiver<Option<PendingEdit>>) {
    let mut backoff = RETRY_BACKOFF;
    loop {
        let done = match shared_claims::current(app, claim).await {
            Ok(None) => return,
            Ok(Some(claim)) => try_process(app, &claim, changes.clone()).await,
            Err(failure) => Err(failure),
        };
        let Err(failure) = done else { return };
        tracing::warn!(message = %claim.message, %failure, "cannot store the result of a message; retrying");
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = app.stop.cancelled() => return,
        }
    }
}

async fn try_process(
    app: &Arc<DiscordApp>,
    claim: &Claim,
    changes: watch::Receiver<Option<PendingEdit>>,
) -> Result<()> {
    let asked = TurnOwner { conversation: claim.conversation, by: claim.request.by.clone() };
    let answer = LiveReply::start(app, claim.channel, claim.message, asked);
    match run_turn(app, claim, &answer, changes).await {
        TurnOutcome::Ended(result) => answer.finish(result.map_err(|failure| channel_error(claim, failure))).await,
        TurnOutcome::Deleted => {
            app.tables.claims.finish_unanswered(claim.message.get()).await?;
            answer.withdraw().await
        }
        TurnOutcome::Postponed | TurnOutcome::Moved => Ok(()),
    }
}

/// Returns the error that the channel is told.
fn channel_error(claim: &Claim, failure: Error) -> Error {
    if !is_unanswered_key_error(&failure) {
        return failure;
    }
    let what = if claim.is_inherited { RESTARTED_MESSAGE } else { "The turn was interrupted." };
    Error::new(ErrorKind::Interrupted, what).hint(RETRY_HINT)
}

async fn run_turn(
    app: &Arc<DiscordApp>,
    claim: &Claim,
    answer: &LiveReply,
    mut changes: watch::Receiver<Option<PendingEdit>>,
) -> TurnOutcome {
    let (mut claim, mut asked) = (Cow::Borrowed(claim), claim.request.clone());
    let (mut backoff, mut interrupted, mut waits) = (RETRY_BACKOFF, None, StoreWait::default());
    loop {
        let wish = changes.borrow_and_update().clone();
        match wish {
            Some(PendingEdit::Deleted) => return TurnOutcome::Deleted,
            // What the message said when its turn began holds.
            Some(PendingEdit::Changed(_)) if interrupted.is_some() => {}
            Some(PendingEdit::Changed(new)) => {
                // Without a shard this node was told by the database.
                if app.has_any_shard() {
                    super::store_edit(&app.tables, claim.message, &new).await;
                }
                asked = new;
            }
            None => {}
        }
        match send_once(app, &claim, answer, &asked, &mut changes).await {
            // The turn was taken back: it is sent again, or not at all.
            None => {}
            Some(Err(failure)) if failure.elsewhere.is_some() || !shared_claims::is_here(app, &claim) => {
                tracing::info!(message = %claim.message, %failure, "another node has the agent of a message");
                return TurnOutcome::Moved;
            }
            Some(Err(failure)) if failure.kind == ErrorKind::Stopping => {
                return match timeout(STOP_SIGNAL_TIMEOUT, app.stop.cancelled()).await {
                    Ok(()) => TurnOutcome::Postponed,
                    Err(_) => TurnOutcome::Ended(Err(failure)),
                };
            }
            // Neither is a result, so retry however long it lasts.
            Some(Err(failure)) if waits.may_pass(app, &claim, &failure).await => {
                tracing::info!(message = %claim.message, %failure, "the agent cannot answer now; the message waits");
                if answer.pause() {
                    (interrupted, waits) = (Some(failure), StoreWait::default());
                }
                claim.to_mut().is_inherited = true;
                tokio::select! {
                    () = sleep(backoff.next_wait()) => {}
                    Ok(()) = changes.changed() => {}
                    () = shared_claims::follow_edits(app, &claim, &asked) => {}
                    () = app.stop.cancelled() => return TurnOutcome::Postponed,
                }
            }
            // The interrupted turn had done something, so it is not repeated.
            Some(Err(failure)) if is_unanswered_key_error(&failure) => {
                let interrupted = interrupted.map(|cause: Error| cause.hint(RETRY_HINT));
                return TurnOutcome::Ended(Err(interrupted.unwrap_or(failure)));
            }
            Some(ended) => return TurnOutcome::Ended(ended),
        }
    }
}

/// Sends the message once. Returns `None` if it was taken back before its turn started, because it was edited or
/// deleted.
async fn send_once(
    app: &Arc<DiscordApp>,
    claim: &Claim,
    answer: &LiveReply,
    asked: &MessageRequest,
    changes: &mut watch::Receiver<Option<PendingEdit>>,
) -> Option<Result<SendResult>> {
    let ops = &app.ops;
    let entry = match ops.agent_resolver.resolve_by_id(claim.conversation.agent).await {
        Ok(entry) => entry,
        Err(failure) => return Some(Err(failure)),
    };
    let (text, attachments) = tokio::select! {
        brought = attachments::load_attachments(ops, &app.inbound, &entry.settings, asked) => brought,
        () = app.stop.cancelled() => return Some(Err(Error::stopping())),
    };
    if changes.has_changed().unwrap_or(false) {
        return None;
    }
    if let Err(failure) = open_conversation(app, entry, claim).await {
        return Some(Err(failure));
    }
    let params = SendParams {
        conversation: None,
        agent: None,
        text,
        key: Some(claim.turn_key()),
        attachments,
        model: None,
        stream: false,
    };
    let listener = answer.listener_for_send();
    // Send by id: while the attachments were downloaded, the agent may have been renamed, and another may have its
    // name.
    let mut stages = listener.subscribe_stage();
    let sent =
        send_to_conversation(&ops.message_sender, claim.conversation, params, origin(claim, &asked.by), Some(listener));
    let (mut sent, mut noted) =
        (std::pin::pin!(sent), std::pin::pin!(record_start(&app.tables, claim, stages.clone())));
    let mut followed = std::pin::pin!(shared_claims::follow_edits(app, claim, asked));
    let (mut is_noted, mut may_change) = (false, true);
    loop {
        tokio::select! {
            biased;
            ended = &mut sent => return Some(ended),
            () = &mut noted, if !is_noted => is_noted = true,
            () = &mut followed, if !is_noted => {}
            turn = wait_for_edit_in_queue(changes, &mut stages), if may_change => {
                let taken = match turn {
                    Some(turn) => cancel_queued(&ops.registry, claim.conversation, turn).await.unwrap_or(false),
                    None => false,
                };
                if taken {
                    let _ = (&mut sent).await;
                    return None;
                }
                // The turn has started, and runs with the text that it started with.
                may_change = false;
            }
        }
    }
}

/// Opens the conversation of a message if it is closed, and makes room for it.
///
/// # Errors
/// `busy` if all conversations that the agent may have are at work: the message waits.
async fn open_conversation(app: &DiscordApp, entry: Arc<AgentEntry>, claim: &Claim) -> Result<()> {
    let opened = async {
        threads::open(app, &entry, claim.conversation).await?;
        let target = ConversationTarget::new(entry.clone(), claim.conversation);
        app.ops.agent_resolver.prepare_to_write(target).await.map(drop)
    };
    opened.await.map_err(|failure| match failure.kind {
        ErrorKind::LimitReached => Error { kind: ErrorKind::Busy, ..failure },
        _ => failure,
    })
}

/// Waits until the turn of a message has started, and records that.
async fn record_start(tables: &DiscordTables, claim: &Claim, mut stages: watch::Receiver<TurnStage>) {
    if stages.wait_for(|stage| *stage == TurnStage::Started).await.is_ok()
        && let Err(failure) = tables.claims.mark_running(claim.message.get()).await
    {
        tracing::warn!(message = %claim.message, %failure, "cannot record the start of a turn");
    }
}

/// Waits until a message is edited or deleted. Returns its turn if that is still in the queue, and `None` if it has
/// started.
async fn wait_for_edit_in_queue(
    changes: &mut watch::Receiver<Option<PendingEdit>>,
    stages: &mut watch::Receiver<TurnStage>,
) -> Option<Uuid> {
    if changes.changed().await.is_err() {
        return None;
    }
    match stages.wait_for(|stage| *stage != TurnStage::Pending).await.map(|stage| *stage) {
        Ok(TurnStage::Queued(turn)) => Some(turn),
        _ => None,
    }
}

/// Returns the origin of a message for its turn.
fn origin(claim: &Claim, by: &Requester) -> MessageOrigin {
    let author = match by {
        Requester::Person { id, name, .. } => Some(Author { id: id.clone(), name: name.clone() }),
        Requester::Owner | Requester::Nobody => None,
    };
    let source = Source {
        kind: SourceKind::Discord,
        channel_id: Some(claim.channel.to_string()),
        message_id: Some(claim.message.to_string()),
        format: None,
    };
    MessageOrigin { author, source, requester: by.clone(), is_resumption: claim.is_inherited }
}
