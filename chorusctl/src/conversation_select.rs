//! Selects the conversation to name in a request: `--conversation`, else `$CHORUS_CONVERSATION`, else `@`, by which the
//! daemon means the one chosen with `conversations use`, or `main`.

use crate::app::App;

/// The conversation chosen with `conversations use`.
pub const SELECTED: &str = "@";

/// The conversation that every agent has.
pub const MAIN: &str = "main";

/// Returns the conversation to name in a request.
#[must_use]
pub fn selected_conversation(app: &App) -> Option<String> {
    named_conversation(app).or_else(|| Some(SELECTED.to_owned()))
}

/// Returns the conversation that the user named with --conversation or $CHORUS_CONVERSATION.
#[must_use]
pub fn named_conversation(app: &App) -> Option<String> {
    app.global.conversation.clone().or_else(from_environment)
}

fn from_environment() -> Option<String> {
    std::env::var("CHORUS_CONVERSATION").ok().filter(|name| !name.is_empty())
}
