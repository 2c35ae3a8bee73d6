//! The tool `resume`: starts a new conversation from the summary of a saved one.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::methods::continuation::{Resume, ResumeParams};
use schemars::JsonSchema;
use serde::Deserialize;

use super::restore::saved_first;
use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

pub(super) struct ResumeTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Conversation: an id or name from `search` or `list`, or `latest`.
    session: String,
    /// Start it as a new conversation with this name; the live one is unchanged.
    as_conversation: Option<String>,
}

impl Tool for ResumeTool {
    const NAME: &'static str = "resume";
    const TITLE: &'static str = "Resume a conversation";
    const DESCRIPTION: &'static str = "Starts a new live conversation of Chorus from the summary, decisions and open \
                                       tasks of a saved one, and returns them. Unsaved messages are saved first.";
    const EFFECT: Effect = Effect::Replaces;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let params = ResumeParams {
            agent: context.agent(),
            conversation: context.conversation(),
            session: args.session,
            as_conversation: args.as_conversation,
        };
        let result = context.call_for_agent::<Resume>(&params).await?;
        let mut text = saved_first(result.saved_first.as_ref());
        for warning in &result.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        let _ = write!(text, "resumed; {}\n{}", text::QUOTES, text::session_head(&result.session));
        let _ = write!(text, "first message:\n{}", text::quote(&result.acknowledgement));
        Ok(text)
    }
}
