//! Asks an agent's model for the opening message of a context: an acknowledgement of what a fresh context continues
//! from, or of what a merge brings together.

use std::pin::pin;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_base::new_id;
use chorus_llm::{ModelRequest, StopReason};
use chorus_proto::{NewMessage, Role, TokenPair};
use chorus_session::summary::{acknowledgement_prompt, sanitize_acknowledgement};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::redacted_stream;
use super::registry::Registry;
use crate::usage::{CallKind, ModelCallInfo};

/// How long to wait for the reply. After that the opening message is written without the model.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum tokens of the reply. Some models think aloud first.
const MAX_REPLY_TOKENS: u32 = 1024;

/// Asks the model to acknowledge a briefing, which is what it is told of the session before. Returns `None` if the agent has no model, a usage limit forbids the
/// call, or the call fails or says nothing usable; and the tokens that it cost.
pub async fn request_acknowledgement(
    registry: &Registry,
    settings: &AgentSettings,
    conversation: Option<Uuid>,
    briefing: &str,
    stop: CancellationToken,
) -> (Option<String>, TokenPair) {
    let asked = (CallKind::Acknowledgement, acknowledgement_prompt(briefing));
    let (said, cost) = request_opening(registry, settings, conversation, asked, stop).await;
    (said.as_deref().and_then(sanitize_acknowledgement), cost)
}

/// Sends a text to the model. Returns its reply, or `None` if the agent has no model, a usage limit forbids the call,
/// or the call fails or is refused; and the tokens that it cost.
pub async fn request_opening(
    registry: &Registry,
    settings: &AgentSettings,
    conversation: Option<Uuid>,
    (kind, text): (CallKind, String),
    stop: CancellationToken,
) -> (Option<String>, TokenPair) {
    let nothing = (None, TokenPair::default());
    let Some(Ok(target)) = settings.model.as_deref().map(|model| registry.models.resolve(model)) else {
        return nothing;
    };
    if let Err(failure) = registry.usage.check_limits(settings).await {
        tracing::info!(agent = %settings.name, %failure, "cannot ask a model for an opening");
        return nothing;
    }
    let at = registry.clock.now();
    let asked = NewMessage::text(Role::User, text).complete(|| new_id().to_string(), at);
    let request = ModelRequest {
        messages: vec![asked],
        system: settings.system_prompt.clone().into_iter().collect(),
        max_tokens: MAX_REPLY_TOKENS,
        ..ModelRequest::default()
    };
    let estimated = chorus_llm::tokens_of_request(&request);
    let traced = registry.traces.start_call(&request);
    let mut call = pin!(registry.models.call_once(&target, &request, stop.clone()));
    let called = match tokio::time::timeout(REPLY_TIMEOUT, &mut call).await {
        Ok(called) => called,
        Err(_) => {
            tracing::warn!(agent = %settings.name, model = %target, "timed out waiting for an opening");
            stop.cancel();
            // The cost is known only when the call has ended.
            call.await
        }
    };
    let price = registry.models.price(&target);
    let caller = ModelCallInfo {
        agent: settings,
        conversation,
        context: None,
        turn_id: None,
        kind,
        target: &target,
        price,
        estimated,
        at,
    };
    registry.traces.end_call(traced, &caller, &called, registry.clock.now());
    let cost = caller.to_row(&called).map(|row| {
        let cost = TokenPair { input: row.input, output: row.output };
        (row, cost)
    });
    let cost = match cost {
        Some((row, cost)) => {
            registry.usage.record_call(row).await;
            cost
        }
        None => TokenPair::default(),
    };
    let called = called.map(|reply| redacted_stream::redact_reply_text(reply, settings, &registry.redactor));
    let said = match called {
        Ok(reply) if reply.stop != StopReason::Refused => Some(reply.content),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(agent = %settings.name, %error, "opening request failed");
            None
        }
    };
    (said, cost)
}
