//! The tool `restore`: makes a saved conversation the live one.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::Session;
use chorus_proto::methods::context::{Restore, RestoreParams};
use chorus_proto::pluralize::pluralize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

pub(super) struct RestoreTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Conversation: an id or name from `search` or `list`, or `latest`.
    session: String,
    /// Load only the first messages, up to this number.
    #[schemars(range(min = 1))]
    at: Option<u64>,
    /// Load it into a new conversation with this name; the live one is unchanged.
    as_conversation: Option<String>,
}

impl Tool for RestoreTool {
    const NAME: &'static str = "restore";
    const TITLE: &'static str = "Restore a conversation";
    const DESCRIPTION: &'static str = "Makes a saved conversation the live one of Chorus, with all its messages. \
                                       Unsaved messages of the live one are saved first. To read it, use `show`.";
    const EFFECT: Effect = Effect::Replaces;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let params = RestoreParams {
            agent: context.agent(),
            conversation: context.conversation(),
            session: args.session,
            at: args.at,
            discard: false,
            own: context.own(),
            files: false,
            as_conversation: args.as_conversation,
        };
        let result = context.call_for_agent::<Restore>(&params).await?;
        let mut text = saved_first(result.saved_first.as_ref());
        let _ = writeln!(
            text,
            "restored {} of {}",
            pluralize(result.messages, "message"),
            text::session_line(&result.session)
        );
        for warning in &result.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        Ok(text)
    }
}

/// Says as what the live conversation was saved first.
pub(super) fn saved_first(saved: Option<&Session>) -> String {
    saved.map(|saved| format!("saved the previous conversation as {}\n", saved.short_id)).unwrap_or_default()
}
