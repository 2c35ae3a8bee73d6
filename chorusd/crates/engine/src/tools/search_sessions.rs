//! The tool `search_sessions`: searches the agent's earlier conversations, and reads on in them.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::{SessionQuestion, ToolCaller};
use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

/// The limit on bytes of a query and of the name of a session.
const MAX_BYTES: usize = 500;

pub(super) struct SearchSessions;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// Words to find, best with names and rare words; "a phrase" and -excluded work, too.
    query: Option<String>,
    /// Instead of `query`: read this session, as a result names it.
    session: Option<String>,
    /// With `session`: number of the message to read around (default 1).
    message: Option<u64>,
}

impl Params {
    /// Returns the question, or why it is none.
    fn question(&self) -> Result<SessionQuestion, String> {
        let is_wrong = |text: &String| text.len() > MAX_BYTES || text.chars().any(char::is_control);
        if self.query.as_ref().is_some_and(is_wrong) {
            return Err(format!(
                "`query` is longer than {MAX_BYTES} bytes or contains control characters; use a few words"
            ));
        }
        match (&self.query, &self.session, self.message) {
            (Some(query), None, None) => Ok(SessionQuestion::Find(query.clone())),
            (None, Some(session), _) if is_wrong(session) || session.trim().is_empty() => {
                Err("`session` is not the name of a session".into())
            }
            (None, Some(_), Some(0)) => Err("the first `message` is 1".into()),
            (None, Some(session), message) => {
                Ok(SessionQuestion::Read { session: session.clone(), message: message.unwrap_or(1) })
            }
            _ => Err("set either `query`, or `session` and `message`".into()),
        }
    }
}

/// Returns what an action says of a question.
fn argument(question: &SessionQuestion) -> String {
    match question {
        SessionQuestion::Find(query) => query.clone(),
        SessionQuestion::Read { session, message } => format!("{session} {message}"),
    }
}

/// Returns the action of a search for a text.
pub(crate) fn search_action(text: &str) -> String {
    Action::Other { tool: SearchSessions::NAME, argument: text }.to_string()
}

impl Tool for SearchSessions {
    const NAME: &'static str = "search_sessions";
    const DESCRIPTION: &'static str =
        "Finds messages of your past conversations, best first (up to 10), or reads the messages around a result.";
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        let argument = argument(&params.question()?);
        Ok(Action::Other { tool: Self::NAME, argument: &argument }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let question = match params.question() {
            Ok(question) => question,
            Err(why) => return ToolOutcome::error(why),
        };
        let Some(outside) = ctx.services.host() else {
            return ToolOutcome::error("the daemon is not ready");
        };
        let argument = argument(&question);
        let action = Action::Other { tool: Self::NAME, argument: &argument };
        match outside.search_sessions(ToolCaller::new(&ctx, action), question).await {
            Ok(text) => ToolOutcome::success(text),
            Err(failure) => error_outcome(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(params: Value) -> Result<String, String> {
        serde_json::from_value::<Params>(params).unwrap().question().map(|question| argument(&question))
    }

    #[test]
    fn a_question_is_a_query_or_a_place() {
        assert_eq!(question(json!({"query": "drop redis"})), Ok("drop redis".into()));
        assert_eq!(question(json!({"session": "2026-03-02_rows"})), Ok("2026-03-02_rows 1".into()));
        assert_eq!(question(json!({"session": "@main", "message": 16})), Ok("@main 16".into()));
        for wrong in [
            json!({}),
            json!({"query": "a", "session": "b"}),
            json!({"query": "a", "message": 1}),
            json!({"query": "a\nb"}),
            json!({"query": "x".repeat(501)}),
            json!({"session": "a", "message": 0}),
            json!({"session": " "}),
            json!({"session": "a\u{7}"}),
        ] {
            assert!(question(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
