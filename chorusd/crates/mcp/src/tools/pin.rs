//! The tool `pin`: pins a fact in the live conversation.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::methods::context::{Pin, PinParams};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

pub(super) struct PinTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The fact, one or two sentences.
    fact: String,
}

impl Tool for PinTool {
    const NAME: &'static str = "pin";
    const TITLE: &'static str = "Pin a fact";
    const DESCRIPTION: &'static str = "Pins a fact in the live conversation of Chorus: it stays visible to the model, \
                                       through saves and restores.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let params = PinParams { agent: context.agent(), conversation: context.conversation(), fact: args.fact };
        let result = context.call_for_agent::<Pin>(&params).await?;
        let mut text = format!("pinned as number {}\n", result.pinned_facts.len());
        for warning in &result.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        for (index, fact) in result.pinned_facts.iter().enumerate() {
            let _ = writeln!(text, "{}. {}", index + 1, text::one_line(&fact.text, text::MAX_SNIPPET_CHARS));
        }
        Ok(text)
    }
}
