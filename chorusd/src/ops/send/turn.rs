//! `send`.

use std::sync::Arc;

use chorus_proto::methods::send::{SendParams, SendResult};
use chorus_proto::{Attachment, Author, NewMessage, Role, Source, SourceKind};
use uuid::Uuid;

use crate::agent::Facts;
use crate::agent::context::Room;
use crate::agent::directory::Entry;
use crate::agent::event::{Reply, Verb};
use crate::agent::turn::Send;
use crate::agent::voice::{Ear, Voice};
use crate::clock::new_id;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::context::append::{check_key, check_length};
use crate::ops::context::wrong_reply;
use crate::ops::{Ops, select};
use crate::who::Requester;

/// Where a message comes from, and on whose behalf its turn is. A front door says it; no field of a request does.
#[derive(Debug, Clone)]
pub struct Origin {
    /// `None`: the owner, who needs no name.
    pub author: Option<Author>,
    pub source: Source,
    pub by: Requester,
    /// It was asked before the daemon ended. A turn of its key in which nothing was done yet is gone on with.
    pub again: bool,
}

impl Origin {
    fn socket() -> Self {
        let source = Source { kind: SourceKind::Cli, channel_id: None, message_id: None, format: None };
        Self { author: None, source, by: Requester::Owner, again: false }
    }
}

/// One turn that the owner asks for. Whoever asked may go away; the turn goes on.
///
/// # Errors
/// As [`send_for`].
pub async fn send(ops: &Ops, params: SendParams, ear: Option<Arc<dyn Ear>>) -> Result<SendResult> {
    send_for(ops, params, Origin::socket(), ear).await
}

/// One turn.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `busy`, `model_unavailable`, `invalid_config`, `limit_reached`, `interrupted`, `disk_full`,
/// `storage_failed`.
pub async fn send_for(ops: &Ops, params: SendParams, origin: Origin, ear: Option<Arc<dyn Ear>>) -> Result<SendResult> {
    let name = params.agent.clone();
    sent(ops, select::agent(ops, name.as_deref()), params, origin, ear).await
}

/// One turn of the agent with this id, whatever its name is now; that in `params` counts for nothing.
///
/// # Errors
/// As [`send_for`].
pub async fn send_to(
    ops: &Ops,
    agent: Uuid,
    params: SendParams,
    origin: Origin,
    ear: Option<Arc<dyn Ear>>,
) -> Result<SendResult> {
    sent(ops, select::by_id(ops, agent), params, origin, ear).await
}

async fn sent(
    ops: &Ops,
    agent: impl Future<Output = Result<Arc<Entry>>>,
    params: SendParams,
    origin: Origin,
    ear: Option<Arc<dyn Ear>>,
) -> Result<SendResult> {
    if params.text.trim().is_empty() && params.attachments.is_empty() {
        return Err(Failure::invalid("there is nothing to send").hint("give `text`"));
    }
    check_key(params.key.as_deref())?;
    let agent = agent.await?;
    let known = match &params.key {
        Some(key) => ops.store.journal.knows_turn(agent.facts.id, key.clone()).await?,
        None => false,
    };
    // Said before anything is kept: without a model nobody would answer. What was asked before has its answer already, even
    // where that has used up what a day allows.
    if !known {
        may_begin(ops, &agent.facts, &params.attachments).await?;
    }
    let message = NewMessage {
        attachments: params.attachments,
        author: origin.author,
        source: Some(origin.source),
        ..NewMessage::text(Role::User, params.text)
    };
    let message = message.complete(|| new_id().to_string(), ops.clock.now());
    let message = Stored::new(&message).map_err(|e| Failure::invalid(format!("the message cannot be kept: {e}")))?;
    check_length(&message, ops.config.max_frame)?;
    let voice = Voice::new(ear);
    let (key, again) = (params.key, origin.again);
    let send = Send { turn: new_id(), message, key, again, voice: voice.clone(), by: origin.by };
    let asked = ops.registry.ask(agent.facts.id, Verb::Send(Box::new(send)));
    let mut asked = std::pin::pin!(asked);
    let answer = loop {
        tokio::select! {
            biased;
            () = voice.more() => voice.pass_on(),
            answer = &mut asked => break answer,
        }
    };
    voice.finish();
    match answer?.reply {
        Reply::Sent(result) => Ok(*result),
        _ => Err(wrong_reply()),
    }
}

/// Why an agent's model would not be shown what somebody attaches; `None`: it would, or what the turn comes to says why not.
#[must_use]
pub fn unfit(ops: &Ops, agent: &Facts, attachment: &Attachment) -> Option<String> {
    let target = ops.models.resolve(agent.model.as_deref()?).ok()?;
    ops.models.unfit(&target, attachment)
}

/// Bytes that one message may have as JSON.
#[must_use]
pub fn longest(ops: &Ops) -> usize {
    Room::of(ops.config.max_frame).message
}

/// Whether a turn can begin at all.
///
/// # Errors
/// Why not.
pub async fn may_begin(ops: &Ops, agent: &Facts, attachments: &[Attachment]) -> Result<()> {
    let model = agent.model.as_deref().ok_or_else(|| crate::agent::no_model(&agent.name))?;
    crate::ops::permissions::usable(agent)?;
    let target = ops.models.resolve(model)?;
    ops.models.takes(&target, attachments)?;
    ops.usage.may_call(agent).await
}
