//! Carrying out what one message asks, and what becomes of it while it waits for its turn.

use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::send::{SendParams, SendResult};
use chorus_proto::{Author, ErrorKind, Source, SourceKind};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::desk::Wish;
use super::ear::{Listening, Stage};
use super::heard::Asked;
use super::{Claim, FIRST, LONGEST, files};
use crate::agent::again::has_ended;
use crate::discord::answer::{self, Answer};
use crate::discord::bridge::Bridge;
use crate::failure::{Failure, Result};
use crate::ops::discord::claims;
use crate::ops::select;
use crate::ops::send::{Origin, send_to, take_back};
use crate::who::Requester;

/// An agent may hear of a stop earlier than this door.
const STOPS_TOO: Duration = Duration::from_secs(5);

/// What a message comes to.
enum Outcome {
    Ended(Result<SendResult>),
    /// It was deleted before its turn began.
    Gone,
    /// The daemon stops; the next one does it.
    Later,
}

/// Has a message answered. What cannot be kept is done anew until it is: the key brings the same answer.
pub async fn carry_out(bridge: &Arc<Bridge>, claim: &Claim, changes: watch::Receiver<Option<Wish>>) {
    let mut pause = FIRST;
    while let Err(failure) = carried_out(bridge, claim, changes.clone()).await {
        tracing::warn!(message = %claim.message, %failure, "what became of a message cannot be kept now");
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LONGEST),
            () = bridge.stop.cancelled() => return,
        }
    }
}

async fn carried_out(bridge: &Arc<Bridge>, claim: &Claim, changes: watch::Receiver<Option<Wish>>) -> Result<()> {
    let asked = answer::Asked { agent: claim.agent, by: claim.asked.by.clone() };
    let answer = Answer::begin(bridge, claim.channel, claim.message, asked);
    match ask(bridge, claim, &answer, changes).await {
        Outcome::Ended(result) => answer.finish(result.map_err(|failure| told(claim, failure))).await,
        Outcome::Gone => {
            claims::drop(&bridge.ops, claim.message.get()).await?;
            answer.withdraw().await
        }
        Outcome::Later => Ok(()),
    }
}

/// A failure as the channel is told of it.
fn told(claim: &Claim, failure: Failure) -> Failure {
    if claim.again && has_ended(&failure) {
        return Failure::new(
            ErrorKind::Interrupted,
            "the daemon ended in the middle of this turn, which has no answer",
        )
        .hint("what came of it is in the conversation; send the message again to have it done anew");
    }
    failure
}

async fn ask(
    bridge: &Arc<Bridge>,
    claim: &Claim,
    answer: &Answer,
    mut changes: watch::Receiver<Option<Wish>>,
) -> Outcome {
    let mut asked = claim.asked.clone();
    let mut pause = FIRST;
    loop {
        let wish = changes.borrow_and_update().clone();
        match wish {
            Some(Wish::Gone) => return Outcome::Gone,
            Some(Wish::Says(new)) => {
                super::reword(bridge, claim.message, &new).await;
                asked = new;
            }
            None => {}
        }
        match once(bridge, claim, answer, &asked, &mut changes).await {
            // It was taken back: it is asked anew, or not at all.
            None => {}
            Some(Err(failure)) if failure.kind == ErrorKind::Stopping => {
                return match timeout(STOPS_TOO, bridge.stop.cancelled()).await {
                    Ok(()) => Outcome::Later,
                    Err(_) => Outcome::Ended(Err(failure)),
                };
            }
            // However long that lasts: it is no answer.
            Some(Err(failure)) if failure.kind == ErrorKind::Busy => {
                tracing::info!(message = %claim.message, %failure, "a message waits for its agent");
                tokio::select! {
                    () = sleep(pause) => {}
                    Ok(()) = changes.changed() => {}
                    () = bridge.stop.cancelled() => return Outcome::Later,
                }
                pause = (pause * 2).min(LONGEST);
            }
            Some(ended) => return Outcome::Ended(ended),
        }
    }
}

/// Asks once. `None`: the message was taken back before its turn began, because it was changed or deleted.
async fn once(
    bridge: &Arc<Bridge>,
    claim: &Claim,
    answer: &Answer,
    asked: &Asked,
    changes: &mut watch::Receiver<Option<Wish>>,
) -> Option<Result<SendResult>> {
    let ops = &bridge.ops;
    let entry = match select::by_id(ops, claim.agent).await {
        Ok(entry) => entry,
        Err(failure) => return Some(Err(failure)),
    };
    let (text, attachments) = tokio::select! {
        brought = files::bring(bridge, &entry.facts, asked) => brought,
        () = bridge.stop.cancelled() => return Some(Err(Failure::stopping())),
    };
    if changes.has_changed().unwrap_or(false) {
        return None;
    }
    let params = SendParams { agent: None, text, key: Some(claim.key()), attachments, stream: false };
    let ear = Arc::new(Listening::new(answer.ear()));
    // Files may have taken a while: it may have another name by now, and that name another agent.
    let sent = send_to(ops, claim.agent, params, origin(claim, &asked.by), Some(ear.clone()));
    let (mut sent, mut noted) = (std::pin::pin!(sent), std::pin::pin!(note(bridge, claim, ear.stages())));
    let mut stages = ear.stages();
    let (mut is_noted, mut may_change) = (false, true);
    loop {
        tokio::select! {
            biased;
            ended = &mut sent => return Some(ended),
            () = &mut noted, if !is_noted => is_noted = true,
            turn = withdrawn(changes, &mut stages), if may_change => {
                let taken = match turn {
                    Some(turn) => take_back(ops, claim.agent, turn).await.unwrap_or(false),
                    None => false,
                };
                if taken {
                    let _ = (&mut sent).await;
                    return None;
                }
                // It has begun, and says what it said then.
                may_change = false;
            }
        }
    }
}

/// Notes that the turn of a message has begun as soon as it has.
async fn note(bridge: &Bridge, claim: &Claim, mut stages: watch::Receiver<Stage>) {
    if stages.wait_for(|stage| *stage == Stage::Begun).await.is_ok()
        && let Err(failure) = claims::runs(&bridge.ops, claim.message.get()).await
    {
        tracing::warn!(message = %claim.message, %failure, "that a turn has begun is not noted");
    }
}

/// Waits until a message that waits for its turn is changed or deleted: that turn, or `None` where it has begun already.
async fn withdrawn(changes: &mut watch::Receiver<Option<Wish>>, stages: &mut watch::Receiver<Stage>) -> Option<Uuid> {
    if changes.changed().await.is_err() {
        return None;
    }
    match stages.wait_for(|stage| *stage != Stage::Unknown).await.map(|stage| *stage) {
        Ok(Stage::Waits(turn)) => Some(turn),
        _ => None,
    }
}

/// Where the message of a claim comes from.
fn origin(claim: &Claim, by: &Requester) -> Origin {
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
    Origin { author, source, by: by.clone(), again: claim.again }
}
