//! The operation `send`.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::context::PageBudget;
use chorus_agent_core::turn::TurnRequest;
use chorus_agent_core::turn_sink::{TurnListener, TurnSink};
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_base::requester::Requester;
use chorus_proto::methods::send::{SendParams, SendResult};
use chorus_proto::{Attachment, Author, NewMessage, Role, Source, SourceKind};
use chorus_session::stored_message::StoredMessage;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::ops::context::append::{check_key, check_length};
use crate::ops::{Ops, resolve_agent};

/// The source of a message, and the requester on whose behalf its turn runs. Front ends set it; no field of a request
/// does.
#[derive(Debug, Clone)]
pub struct MessageOrigin {
    /// `None` for the owner, who needs no name.
    pub author: Option<Author>,
    pub source: Source,
    pub requester: Requester,
    /// True if the message was sent before the last restart. A turn with its key in which nothing was done yet is
    /// continued.
    pub is_resumption: bool,
}

impl MessageOrigin {
    fn from_socket() -> Self {
        let source = Source { kind: SourceKind::Cli, channel_id: None, message_id: None, format: None };
        Self { author: None, source, requester: Requester::Owner, is_resumption: false }
    }
}

/// Runs a turn for the owner. The turn continues if the caller disconnects.
pub async fn send(ops: &Ops, params: SendParams, listener: Option<Arc<dyn TurnListener>>) -> Result<SendResult> {
    send_from(ops, params, MessageOrigin::from_socket(), listener).await
}

/// Runs a turn for the requester in `origin`.
pub async fn send_from(
    ops: &Ops,
    params: SendParams,
    origin: MessageOrigin,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    let name = params.agent.clone();
    run_send(ops, resolve_agent::agent(ops, name.as_deref()), params, origin, listener).await
}

/// Runs a turn of the agent with this id, whatever its name is now; the name in `params` is ignored.
pub async fn send_to_agent(
    ops: &Ops,
    agent: Uuid,
    params: SendParams,
    origin: MessageOrigin,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    run_send(ops, resolve_agent::agent_by_id(ops, agent), params, origin, listener).await
}

async fn run_send(
    ops: &Ops,
    agent: impl Future<Output = Result<Arc<AgentEntry>>>,
    params: SendParams,
    origin: MessageOrigin,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    if params.text.trim().is_empty() && params.attachments.is_empty() {
        return Err(Error::invalid("there is nothing to send").hint("give `text`"));
    }
    check_key(params.key.as_deref())?;
    let agent = agent.await?;
    let known = match &params.key {
        Some(key) => ops.store.journal.has_turn_key(agent.settings.id, key.clone()).await?,
        None => false,
    };
    // Checked before anything is stored, because without a model nobody would reply. A message that was sent before has
    // its reply already, even if that has used up the daily limit.
    if !known {
        ensure_can_begin(ops, &agent.settings, &params.attachments).await?;
    }
    let message = NewMessage {
        attachments: params.attachments,
        author: origin.author,
        source: Some(origin.source),
        ..NewMessage::text(Role::User, params.text)
    };
    let message = message.complete(|| new_id().to_string(), ops.clock.now());
    let message =
        StoredMessage::new(&message).map_err(|e| Error::invalid(format!("the message cannot be kept: {e}")))?;
    check_length(&message, ops.config.max_frame)?;
    let voice = TurnSink::new(listener);
    let (key, again) = (params.key, origin.is_resumption);
    let send = TurnRequest {
        turn: new_id(),
        message,
        key,
        resume_if_unstarted: again,
        sink: voice.clone(),
        requester: origin.requester,
    };
    let asked = ops.registry.ask(agent.settings.id, command::send(send));
    let mut asked = std::pin::pin!(asked);
    let answer = loop {
        tokio::select! {
            biased;
            () = voice.wait_for_backlog() => voice.flush(),
            answer = &mut asked => break answer,
        }
    };
    voice.close();
    answer
}

/// Returns the reason why an agent's model cannot accept an attachment; `None` if it can, or if the turn itself reports
/// the problem.
#[must_use]
pub fn attachment_problem(ops: &Ops, agent: &AgentSettings, attachment: &Attachment) -> Option<String> {
    let target = ops.models.resolve(agent.model.as_deref()?).ok()?;
    ops.models.attachment_problem(&target, attachment)
}

/// Returns the limit on the bytes of one message as JSON.
#[must_use]
pub fn max_message_bytes(ops: &Ops) -> usize {
    PageBudget::from_max_frame(ops.config.max_frame).message_bytes
}

/// Checks that a turn can begin; returns the reason if not.
pub async fn ensure_can_begin(ops: &Ops, agent: &AgentSettings, attachments: &[Attachment]) -> Result<()> {
    let model = agent.model.as_deref().ok_or_else(|| crate::agent::no_model_error(&agent.name))?;
    crate::ops::permissions::usable_profile(agent)?;
    let target = ops.models.resolve(model)?;
    ops.models.check_attachments(&target, attachments)?;
    ops.usage.check_limits(agent).await
}
