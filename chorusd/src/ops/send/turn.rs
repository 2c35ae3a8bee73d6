//! `send`.

use chorus_proto::methods::send::{Said, SendParams, SendResult};
use chorus_proto::{NewMessage, Role, Source, SourceKind};
use uuid::Uuid;

use crate::agent::event::{Reply, Verb};
use crate::agent::turn::Send;
use crate::agent::voice::Voice;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::context::append::{check_key, check_length};
use crate::ops::context::wrong_reply;
use crate::ops::{Ops, select};

/// Hears what is said while it is said; waits as long as who listens is slow.
pub type OnSaid = Box<dyn Fn(Said) -> futures_util::future::BoxFuture<'static, ()> + std::marker::Send + Sync>;

/// One turn. Whoever asked may go away; the turn goes on.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `busy`, `model_unavailable`, `invalid_config`, `limit_reached`, `interrupted`, `disk_full`,
/// `storage_failed`.
pub async fn send(ops: &Ops, params: SendParams, on_said: Option<OnSaid>) -> Result<SendResult> {
    if params.text.trim().is_empty() && params.attachments.is_empty() {
        return Err(Failure::invalid("there is nothing to send").hint("give `text`"));
    }
    check_key(params.key.as_deref())?;
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    // Said before anything is kept: without a model nobody would answer.
    let name = &agent.facts.name;
    let model = agent.facts.model.as_deref().ok_or_else(|| crate::agent::no_model(name))?;
    crate::ops::permissions::usable(&agent.facts)?;
    ops.models.resolve(model)?;
    ops.usage.may_call(&agent.facts).await?;
    let source = Source { kind: SourceKind::Cli, channel_id: None, message_id: None, format: None };
    let message = NewMessage {
        attachments: params.attachments,
        source: Some(source),
        ..NewMessage::text(Role::User, params.text)
    };
    let message = message.complete(|| Uuid::now_v7().to_string(), ops.clock.now());
    let message = Stored::new(&message).map_err(|e| Failure::invalid(format!("the message cannot be kept: {e}")))?;
    check_length(&message, ops.config.max_frame)?;
    let voice = Voice::default();
    let send = Send { turn: Uuid::now_v7(), message, key: params.key, voice: voice.clone() };
    let asked = ops.registry.ask(agent.facts.id, Verb::Send(Box::new(send)));
    let mut asked = std::pin::pin!(asked);
    let answer = loop {
        tokio::select! {
            biased;
            () = voice.more(), if on_said.is_some() => pass_on(&voice, on_said.as_ref()).await,
            answer = &mut asked => break answer,
        }
    };
    pass_on(&voice, on_said.as_ref()).await;
    match answer?.reply {
        Reply::Sent(result) => Ok(*result),
        _ => Err(wrong_reply()),
    }
}

async fn pass_on(voice: &Voice, on_said: Option<&OnSaid>) {
    if let Some(on_said) = on_said {
        for said in voice.take() {
            on_said(said).await;
        }
    }
}
