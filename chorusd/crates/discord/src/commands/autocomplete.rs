//! Autocomplete: values that are suggested while an option of a command is typed.

use std::time::Duration;

use chorus_engine::ops::{discord, models};
use chorus_proto::methods::models::ModelsParams;
use tokio::time::timeout;

use super::command_definition::{Completion, OptionKind, Subcommand};
use super::invocation::{Arguments, Caller};
use super::text_format::{Redact, session_title, truncate};

/// How long the sessions are queried: Discord waits three seconds.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(2);

/// Choices that are suggested at most, and the characters of each.
const MAX_CHOICES: usize = 25;
const MAX_CHOICE_CHARS: usize = 100;

/// The newest sessions, which are searched for matches.
const MAX_SESSIONS: u64 = 500;

/// Idle timeouts that are suggested.
const IDLE_TIMEOUTS: [&str; 5] = ["10m", "30m", "2h", "1d", "0"];

/// Returns names and values for what is typed into the option `name`; empty on any error.
pub(super) async fn suggest_choices(
    by: &Caller,
    action: &Subcommand,
    given: &Arguments,
    name: &str,
    typed: &str,
) -> Vec<(String, String)> {
    let offer = action.options.iter().find(|option| option.name == name).map(|option| option.kind);
    let Some(OptionKind::Autocomplete(offer)) = offer else { return Vec::new() };
    if by.check_right(action.right).is_err() {
        return Vec::new();
    }
    let found = match offer {
        Completion::Agents => agent_choices(by),
        Completion::Sessions => session_choices(by, given).await,
        Completion::Models => model_choices(by).await,
        Completion::Profiles => profile_choices(by),
        Completion::Values => match given.text("key") {
            Some("model") => model_choices(by).await,
            Some("permissions") => profile_choices(by),
            Some("idle_timeout") => as_choices(IDLE_TIMEOUTS.map(str::to_owned)),
            Some("checkpoint_workspace") => as_choices(["true", "false"].map(str::to_owned)),
            _ => Vec::new(),
        },
    };
    matching_choices(by, found, typed)
}

/// Turns values into choices whose name is the value.
fn as_choices(values: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    values.into_iter().map(|value| (value.clone(), value)).collect()
}

fn agent_choices(by: &Caller) -> Vec<(String, String)> {
    as_choices(by.visible_agents().iter().map(|entry| entry.settings.name.clone()))
}

async fn session_choices(by: &Caller, given: &Arguments) -> Vec<(String, String)> {
    let Ok(agent) = by.resolve_agent(given.text("agent")) else { return Vec::new() };
    let Ok(viewer) = by.session_viewer(&agent) else { return Vec::new() };
    let listing = discord::command_support::newest_sessions(by.ops(), viewer, MAX_SESSIONS);
    let found = timeout(SESSIONS_TIMEOUT, listing).await;
    let sessions = found.ok().and_then(Result::ok).unwrap_or_default();
    let choice = |session: &chorus_proto::Session| {
        (
            format!("{} · {}", session.short_id, session_title(by, session, MAX_CHOICE_CHARS)),
            session.header.session_id.clone(),
        )
    };
    sessions.iter().map(choice).collect()
}

async fn model_choices(by: &Caller) -> Vec<(String, String)> {
    let Ok(found) = models::list::list(&by.ops().models, &by.ops().effective_config, ModelsParams {}).await else {
        return Vec::new();
    };
    let listed = found.providers.into_iter().flat_map(|provider| provider.models).map(|model| model.name);
    as_choices(found.aliases.into_keys().chain(listed))
}

/// The profiles that the caller may grant.
fn profile_choices(by: &Caller) -> Vec<(String, String)> {
    let config = by.ops().defaults();
    let granted = |name: &&str| config.grants.check_grant(&by.member.requester, &(*name).into()).is_ok();
    as_choices(config.profiles.iter().map(|(name, _)| name).filter(granted).map(str::to_owned))
}

/// Returns the choices that contain the typed text; those that begin with it come first.
fn matching_choices(clean: &impl Redact, found: Vec<(String, String)>, typed: &str) -> Vec<(String, String)> {
    let typed = typed.trim().to_lowercase();
    // A choice is sent back as the value, so a value that redaction would change is not suggested.
    let whole = |value: &str| value.chars().count() <= MAX_CHOICE_CHARS && clean.redact(value) == value;
    let (begin, hold): (Vec<_>, Vec<_>) = found
        .into_iter()
        .map(|(name, value)| (clean.redact(&name), value))
        .filter(|(name, value)| {
            whole(value) && (name.to_lowercase().contains(&typed) || value.to_lowercase().contains(&typed))
        })
        .partition(|(name, value)| name.to_lowercase().starts_with(&typed) || value.to_lowercase().starts_with(&typed));
    begin
        .into_iter()
        .chain(hold)
        .take(MAX_CHOICES)
        .map(|(name, value)| (truncate(&name, MAX_CHOICE_CHARS), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::text_format::tests::StarRedactor;
    use super::*;

    #[test]
    fn no_secret_is_offered() {
        let found = [("x of a_secret".to_owned(), "x".to_owned()), ("y".to_owned(), "a_secret".to_owned())];
        assert_eq!(matching_choices(&StarRedactor, found.into(), ""), [("x of *".to_owned(), "x".to_owned())]);
        assert!(matching_choices(&StarRedactor, vec![("x of a_secret".to_owned(), "x".to_owned())], "a_se").is_empty());
    }

    #[test]
    fn at_most_25_are_offered_none_longer_than_discord_takes_and_beginnings_first() {
        let many = as_choices((0..40).map(|n| format!("model-{n}")));
        assert_eq!(matching_choices(&StarRedactor, many.clone(), "").len(), MAX_CHOICES);
        assert_eq!(matching_choices(&StarRedactor, many, "L-39"), as_choices(["model-39".to_owned()]));
        let long = vec![("ä".repeat(300), "short".to_owned()), ("x".to_owned(), "y".repeat(101))];
        let found = matching_choices(&StarRedactor, long, "");
        assert_eq!((found.len(), found[0].0.chars().count()), (1, MAX_CHOICE_CHARS));
        let order = matching_choices(&StarRedactor, as_choices(["a fox".to_owned(), "fox".to_owned()]), "Fox");
        assert_eq!(order, as_choices(["fox".to_owned(), "a fox".to_owned()]));
    }
}
