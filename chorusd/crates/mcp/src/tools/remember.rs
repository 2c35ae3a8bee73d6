//! The tool `remember`: adds a memory.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::methods::memory::{Add, AddParams};
use chorus_proto::pluralize::pluralize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;

pub(super) struct RememberTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to remember, one or two sentences that stand on their own. Secrets are redacted.
    text: String,
    /// The file of the agent's workspace that it is about.
    path: Option<String>,
    /// Share it with all agents of the agent's project.
    #[serde(default)]
    project: bool,
}

impl Tool for RememberTool {
    const NAME: &'static str = "remember";
    const TITLE: &'static str = "Remember something";
    const DESCRIPTION: &'static str = "Remembers a fact that the agent is to know in every later conversation.";
    const EFFECT: Effect = Effect::AddsOnce;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let params =
            AddParams { agent: context.agent(), text: args.text, path: args.path, project: args.project, redact: true };
        let result = context.call_for_agent::<Add>(&params).await?;
        let id = &result.entry.short_id;
        let mut text =
            if result.added { format!("remembered as {id}\n") } else { format!("already remembered ({id})\n") };
        if result.secrets_found > 0 {
            let _ = writeln!(text, "redacted {}", pluralize(result.secrets_found, "secret"));
        }
        Ok(text)
    }
}
