//! The tool `search`: finds messages.

use std::fmt::Write as _;

use chorus_base::error::Result;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{Search, SearchHit, SearchParams};
use chorus_proto::pluralize::pluralize;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effect, Tool};
use crate::call::CallContext;
use crate::text;

pub(super) struct SearchTool;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Words to find, best with names and rare words; "a phrase", prefix* and -excluded work, too.
    query: String,
    /// Maximum number of results, 1 to 100 (default 10).
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u64>,
    /// Only messages since then: 7d, 1h30m, yesterday, or a date.
    since: Option<String>,
    /// Only messages before then.
    until: Option<String>,
    /// Only messages from this program, e.g. claude-code or codex.
    source: Option<String>,
    /// Only agents of this project.
    project: Option<String>,
    /// Search the conversations of all agents.
    #[serde(default)]
    all_agents: bool,
}

impl Tool for SearchTool {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search conversations";
    const DESCRIPTION: &'static str = "Finds messages of saved and live conversations with coding agents, best first. \
                                       Use it to find earlier decisions and attempts.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;

    async fn run(args: Args, context: &CallContext) -> Result<String> {
        let all_agents = args.all_agents || (args.project.is_some() && context.own());
        let mut params = SearchParams {
            agent: if all_agents { None } else { context.agent() },
            conversation: context.named_conversation(),
            all_agents,
            own: context.own(),
            query: args.query,
            limit: args.limit,
            since: args.since,
            until: args.until,
            source: args.source,
            project: args.project,
            ..SearchParams::default()
        };
        let result = match context.call::<Search>(&params).await {
            // No agent is chosen, or there is none.
            Err(error) if error.kind == ErrorKind::NoAgent => {
                params.all_agents = true;
                context.call::<Search>(&params).await?
            }
            result => result?,
        };
        let mut text = match result.hits.len() as u64 {
            0 if params.all_agents => "no results; try fewer or other words\n".to_owned(),
            0 => "no results; try fewer or other words, or all_agents\n".to_owned(),
            count => format!("{}, best first; {}\n", pluralize(count, "result"), text::QUOTES),
        };
        for warning in &result.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        if let Some(percent) = result.index.percent_indexed() {
            let _ = writeln!(text, "{percent} % indexed; results may be missing");
        }
        for hit in &result.hits {
            let snippet = text::one_line(&hit.snippet, text::MAX_SNIPPET_CHARS);
            let _ = write!(text, "\n{}\n> {snippet}\n", place(hit, result.agent_name.as_deref()));
        }
        if result.hits.iter().any(|hit| hit.message.is_some()) {
            text.push_str("\nto read on, call show with `session` and the message as `from`\n");
        }
        Ok(text)
    }
}

/// Returns what `show` needs to find the hit, and by whom and when it was said.
fn place(hit: &SearchHit, searched: Option<&str>) -> String {
    let name = |text: &str| text::one_line(text, 60);
    let mut text = match (&hit.session, &hit.conversation) {
        (Some(session), _) => format!("session {}", session.short_id),
        (None, None) => "session @main (live)".to_owned(),
        (None, Some(conversation)) => format!("session @{} (live)", name(&conversation.name)),
    };
    let _ = match hit.message {
        Some(number) => write!(text, ", message {number}"),
        None => write!(text, ", its title, summary or tags"),
    };
    if searched != Some(&*hit.agent_name) {
        let _ = write!(text, ", agent {}", name(&hit.agent_name));
    }
    if let Some(role) = hit.role {
        let _ = write!(text, ", {}", role.as_str());
    }
    let _ = write!(text, ", {}", text::time(hit.at));
    if let Some(title) = &hit.title {
        let _ = write!(text, ", titled {:?}", text::one_line(title, 100));
    }
    text
}
