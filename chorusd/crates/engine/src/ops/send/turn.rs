//! The operation `send`.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::context::PageBudget;
use chorus_agent_core::turn::TurnRequest;
use chorus_agent_core::turn_sink::{TurnListener, TurnSink};
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_base::requester::Requester;
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_llm::Models;
use chorus_proto::methods::send::{SendParams, SendResult, TurnEvent};
use chorus_proto::{Attachment, Author, NewMessage, Role, Source, SourceKind};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use chorus_store::Store;

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::context::append::{check_key, check_length};
use crate::ops::conversations::ConversationTarget;
use crate::usage::UsageTracker;

/// The services that check a message and run its turn.
#[derive(Debug)]
pub struct MessageSender {
    pub agents: Arc<AgentResolver>,
    pub registry: Arc<Registry>,
    pub store: Arc<Store>,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
    pub config: Arc<Config>,
    pub clock: Clock,
}

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
pub async fn send(
    sender: &MessageSender,
    params: SendParams,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    let (agent, conversation) = (params.agent.clone(), params.conversation.clone());
    let target = sender.agents.conversation_to_write(agent.as_deref(), conversation.as_deref());
    run_send(sender, target, params, MessageOrigin::from_socket(), listener).await
}

/// Runs a turn in this conversation, whatever its name and that of its agent are now; the names in `params` are ignored.
pub async fn send_to_conversation(
    sender: &MessageSender,
    conversation: ConversationKey,
    params: SendParams,
    origin: MessageOrigin,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    let target = async {
        let agent = sender.agents.resolve_by_id(conversation.agent).await?;
        sender.agents.prepare_to_write(ConversationTarget::new(agent, conversation)).await
    };
    run_send(sender, target, params, origin, listener).await
}

async fn run_send(
    sender: &MessageSender,
    target: impl Future<Output = Result<ConversationTarget>>,
    params: SendParams,
    origin: MessageOrigin,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<SendResult> {
    if params.text.trim().is_empty() && params.attachments.is_empty() {
        return Err(Error::invalid("nothing to send").hint("set `text`"));
    }
    check_key(params.key.as_deref())?;
    let target = target.await?;
    let sink = TurnSink::new(listener);
    let is_repeated = matches!(origin.source.kind, SourceKind::Discord);
    // Also if nobody waits any more.
    let _end = CloseOnDrop(sink.clone());
    // Other front ends than the command line reopen conversations for reasons of their own.
    if matches!(origin.source.kind, SourceKind::Cli)
        && let Some(note) = sender.agents.reopened_note(&target).await
    {
        sink.send(&TurnEvent::Note(note));
    }
    let (agent, conversation) = (&target.agent, target.key);
    let already_sent = match &params.key {
        Some(key) => sender.store.journal.has_turn_key(conversation, key.clone()).await?,
        None => false,
    };
    // Checked before anything is stored, because without a model nobody would reply. A message that was sent before has
    // its reply already, even if that has used up the daily limit.
    if !already_sent {
        if let Some(model) = &params.model {
            sender.models.check_assignable(model)?;
        }
        let settings = agent.settings.with_model(params.model.as_deref());
        ensure_can_begin(&sender.models, &sender.usage, &settings, &params.attachments).await?;
    }
    let message = NewMessage {
        attachments: params.attachments,
        author: origin.author,
        source: Some(origin.source),
        ..NewMessage::text(Role::User, params.text)
    };
    let message = message.complete(|| new_id().to_string(), sender.clock.now());
    let message = StoredMessage::new(&message).map_err(|e| Error::invalid(format!("cannot store the message: {e}")))?;
    check_length(&message, sender.config.max_frame)?;
    let request = TurnRequest {
        turn: new_id(),
        message,
        key: params.key,
        model: params.model,
        resume_if_unstarted: origin.is_resumption,
        is_repeated,
        sink: sink.clone(),
        requester: origin.requester,
    };
    let turn = sender.registry.ask(conversation, command::send(request));
    let mut turn = std::pin::pin!(turn);
    loop {
        tokio::select! {
            biased;
            () = sink.wait_for_backlog() => sink.flush(),
            result = &mut turn => return result,
        }
    }
}

/// Closes the sink of a turn at the end.
struct CloseOnDrop(TurnSink);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns the reason why an agent's model cannot accept an attachment; `None` if it can, or if the turn itself reports
/// the problem.
#[must_use]
pub fn attachment_problem(models: &Models, agent: &AgentSettings, attachment: &Attachment) -> Option<String> {
    let target = models.resolve(agent.model.as_deref()?).ok()?;
    models.attachment_problem(&target, attachment)
}

/// Returns the limit on the bytes of one message as JSON.
#[must_use]
pub fn max_message_bytes(config: &Config) -> usize {
    PageBudget::from_max_frame(config.max_frame).message_bytes
}

/// Checks that a turn can begin; returns the reason if not.
pub async fn ensure_can_begin(
    models: &Models,
    usage: &UsageTracker,
    agent: &AgentSettings,
    attachments: &[Attachment],
) -> Result<()> {
    let model = agent.model.as_deref().ok_or_else(|| crate::agent::no_model_error(&agent.name, models))?;
    crate::ops::permissions::usable_profile(agent)?;
    let target = models.resolve(model)?;
    models.check_attachments(&target, attachments)?;
    usage.check_limits(agent).await
}
