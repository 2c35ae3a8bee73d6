//! The tool `append`: adds a message to the live conversation.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::Role;
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::pluralize::pluralize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;

pub(super) struct AppendTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The message. Secrets are redacted.
    text: String,
    /// Who says it (default user).
    role: Option<Author>,
    /// Idempotency key: a call with the same key adds nothing.
    key: Option<String>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Author {
    User,
    Assistant,
}

impl Tool for AppendTool {
    const NAME: &'static str = "append";
    const TITLE: &'static str = "Append a message";
    const DESCRIPTION: &'static str =
        "Adds a message to the live conversation of Chorus, without calling a model. `save` keeps it as a session.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let role = match args.role {
            Some(Author::Assistant) => Role::Assistant,
            Some(Author::User) | None => Role::User,
        };
        let params = AppendParams {
            agent: context.agent(),
            conversation: context.conversation(),
            text: Some(args.text),
            role: Some(role),
            key: args.key,
            redact: true,
            ..AppendParams::default()
        };
        let result = context.call_for_agent::<Append>(&params).await?;
        let mut text = format!("appended {} ({} total)\n", pluralize(result.appended, "message"), result.messages);
        if let Some(found) = result.secrets_found.filter(|found| *found > 0) {
            let _ = writeln!(text, "redacted {}", pluralize(found, "secret"));
        }
        if let Some(note) = &result.note {
            let _ = writeln!(text, "{note}");
        }
        Ok(text)
    }
}
