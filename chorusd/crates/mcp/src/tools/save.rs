//! The tool `save`: saves the live conversation.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::methods::context::{Save, SaveParams};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

pub(super) struct SaveTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Title of the saved conversation.
    description: Option<String>,
    /// Tags of the saved conversation.
    #[serde(default)]
    tags: Vec<String>,
}

impl Tool for SaveTool {
    const NAME: &'static str = "save";
    const TITLE: &'static str = "Save the conversation";
    const DESCRIPTION: &'static str =
        "Saves the live conversation of Chorus as a session, which cannot change any more. The conversation continues.";
    const EFFECT: Effect = Effect::AddsOnce;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let params = SaveParams {
            agent: context.agent(),
            conversation: context.conversation(),
            description: args.description,
            tag: args.tags,
            clear: false,
        };
        let result = context.call::<Save>(&params).await?;
        let done = if result.unchanged_since.is_some() { "already saved" } else { "saved" };
        let mut text = format!("{done}: {}\n", text::session_line(&result.session));
        for warning in &result.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        Ok(text)
    }
}
