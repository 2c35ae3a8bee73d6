//! The operation `context.append`.

use std::sync::Arc;

use chorus_agent_core::context::PageBudget;
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_proto::methods::context::{AppendParams, AppendResult};
use chorus_proto::{ErrorKind, NewMessage, Role};
use chorus_redact::Redactor;
use chorus_session::stored_message::StoredMessage;

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::redact_import::ImportRedactor;

/// The limit on an idempotency key in bytes.
const MAX_KEY_BYTES: usize = 256;

/// Appends messages to the live context: all of them, or none.
pub async fn append(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    redactor: &Redactor,
    clock: &Clock,
    config: &Config,
    params: AppendParams,
) -> Result<AppendResult> {
    let given = build_messages(params.text, params.role, params.messages)?;
    check_key(params.key.as_deref())?;
    let target = agents.conversation_to_write(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let now = clock.now();
    let new_id = || new_id().to_string();
    let messages: Vec<_> = given.into_iter().map(|message| message.complete(new_id, now)).collect();
    let unfit = |e| Error::invalid(format!("cannot store a message: {e}"));
    let mut messages = StoredMessage::from_messages(&messages).map_err(unfit)?;
    let secrets = redact_messages(redactor, &mut messages, params.redact).map_err(unfit)?;
    messages.iter().try_for_each(|message| check_length(message, config.max_frame))?;
    let note = agents.reopened_note(&target).await;
    let result = registry.ask(target.key, command::append(messages, params.key)).await?;
    Ok(AppendResult { secrets_found: Some(secrets), note, ..result })
}

/// Counts the secrets in `messages`; with `redact`, replaces them.
fn redact_messages(redactor: &Redactor, messages: &mut [StoredMessage], redact: bool) -> serde_json::Result<u64> {
    let search = ImportRedactor { redactor, redact };
    let mut found = 0;
    for stored in messages {
        let json = std::str::from_utf8(stored.json()).unwrap_or_default();
        let count = search.count_secrets(json);
        found += count;
        if redact && count > 0 {
            let clean = search.redact_message(&stored.to_message()?, json).0;
            *stored = clean.map_or_else(|| Ok(stored.clone()), |(_, bytes)| StoredMessage::parse(bytes.into()))?;
        }
    }
    Ok(found)
}

/// Checks the length of a key.
pub fn check_key(key: Option<&str>) -> Result<()> {
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY_BYTES => {
            Err(Error::invalid(format!("an idempotency key must have 1 to {MAX_KEY_BYTES} bytes"))
                .hint("use a UUID, for example"))
        }
        _ => Ok(()),
    }
}

/// Refuses messages too long to be returned. A message that arrived in one frame must also fit into one with a reply
/// around it.
pub fn check_length(message: &StoredMessage, max_frame: usize) -> Result<()> {
    let (bytes, most) = (message.json().len(), PageBudget::from_max_frame(max_frame).message_bytes);
    if bytes <= most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::FrameTooLong, format!("a message has {bytes} bytes; the maximum is {most}"))
        .hint("split it, or raise max_frame"))
}

fn build_messages(text: Option<String>, role: Option<Role>, messages: Vec<NewMessage>) -> Result<Vec<NewMessage>> {
    match (text, messages.is_empty()) {
        (Some(text), true) => {
            let message = NewMessage::text(role.unwrap_or(Role::User), text);
            check_message(&message).map_err(|e| Error::invalid(format!("invalid message: {e}")).hint("set `text`"))?;
            Ok(vec![message])
        }
        (None, false) if role.is_none() => {
            for (index, message) in messages.iter().enumerate() {
                check_message(message).map_err(|e| {
                    Error::invalid(format!("message {}: {e}", index + 1))
                        .hint("see the fields of a message in docs/PROTOCOL.md")
                })?;
            }
            Ok(messages)
        }
        (None, true) => Err(Error::invalid("nothing to append").hint("set `text` or `messages`")),
        (None, false) => {
            Err(Error::invalid("`role` can only be combined with `text`; `messages` have their own roles")
                .hint("remove `role`, or use `text` instead of `messages`"))
        }
        (Some(_), false) => {
            Err(Error::invalid("`text` cannot be combined with `messages`").hint("set only one of them"))
        }
    }
}

/// Refuses messages that make no sense in a conversation.
fn check_message(message: &NewMessage) -> Result<(), &'static str> {
    if !message.tool_calls.is_empty() && message.role != Role::Assistant {
        return Err("only an assistant message can have tool calls");
    }
    if message.tool_call_id.is_some() && message.role != Role::ToolResult {
        return Err("`tool_call_id` requires the role `tool_result`");
    }
    if message.id.as_ref().is_some_and(String::is_empty) {
        return Err("the id is empty");
    }
    // A tool may print nothing; every other message has text, attachments or tool calls.
    let silent = message.content.is_empty() && message.attachments.is_empty() && message.tool_calls.is_empty();
    if silent && message.provider.is_none() && message.role != Role::ToolResult {
        return Err("the message is empty");
    }
    Ok(())
}
