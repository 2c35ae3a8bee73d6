//! What is offered while a command is typed.

use std::time::Duration;

use chorus_proto::methods::models::ModelsParams;
use tokio::time::timeout;

use super::call::{Asker, Given};
use super::definitions::{Action, Kind, Offer};
use super::words::{Clean, cut, title};
use crate::ops::{discord, models};

/// How long sessions are looked for: Discord waits three seconds.
const SOON: Duration = Duration::from_secs(2);

/// Most that is offered, and characters of each.
const CHOICES: usize = 25;
const LONG: usize = 100;

/// The newest sessions, of which those that fit are offered.
const SESSIONS: u64 = 500;

/// Idle timeouts that are offered.
const TIMEOUTS: [&str; 5] = ["10m", "30m", "2h", "1d", "0"];

/// Names and values for what is typed into the option `name`; nothing where anything is amiss.
pub async fn offer(by: &Asker, action: &Action, given: &Given, name: &str, typed: &str) -> Vec<(String, String)> {
    let offer = action.options.iter().find(|option| option.name == name).map(|option| option.kind);
    let Some(Kind::Offered(offer)) = offer else { return Vec::new() };
    if by.may(action.right).is_err() {
        return Vec::new();
    }
    let found = match offer {
        Offer::Agents => agents(by),
        Offer::Sessions => sessions(by, given).await,
        Offer::Models => models(by).await,
        Offer::Profiles => profiles(by),
        Offer::Values => match given.text("key") {
            Some("model") => models(by).await,
            Some("permissions") => profiles(by),
            Some("idle_timeout") => own(TIMEOUTS.map(str::to_owned)),
            Some("checkpoint_workspace") => own(["true", "false"].map(str::to_owned)),
            _ => Vec::new(),
        },
    };
    fitting(by, found, typed)
}

/// Values that are shown as they are.
fn own(values: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    values.into_iter().map(|value| (value.clone(), value)).collect()
}

fn agents(by: &Asker) -> Vec<(String, String)> {
    own(by.visible().iter().map(|entry| entry.facts.name.clone()))
}

async fn sessions(by: &Asker, given: &Given) -> Vec<(String, String)> {
    let Ok(agent) = by.agent(given.text("agent")) else { return Vec::new() };
    let found = timeout(SOON, discord::commands::newest(by.ops(), agent.facts.id, SESSIONS)).await;
    let sessions = found.ok().and_then(Result::ok).unwrap_or_default();
    let choice = |session: &chorus_proto::Session| {
        (format!("{} · {}", session.short_id, title(by, session, LONG)), session.header.session_id.clone())
    };
    sessions.iter().map(choice).collect()
}

async fn models(by: &Asker) -> Vec<(String, String)> {
    let Ok(found) = models::list::list(by.ops(), ModelsParams {}).await else { return Vec::new() };
    let listed = found.providers.into_iter().flat_map(|provider| provider.models).map(|model| model.name);
    own(found.aliases.into_keys().chain(listed))
}

/// The profiles that they may grant.
fn profiles(by: &Asker) -> Vec<(String, String)> {
    let config = &by.ops().config;
    let granted = |name: &&str| config.grants.may(&by.person.requester, &(*name).into()).is_ok();
    own(config.profiles.iter().map(|(name, _)| name).filter(granted).map(str::to_owned))
}

/// Those in which what was typed is found; those that begin with it first.
fn fitting(clean: &impl Clean, found: Vec<(String, String)>, typed: &str) -> Vec<(String, String)> {
    let typed = typed.trim().to_lowercase();
    // What is chosen must be the value: one with a secret in it is not offered.
    let whole = |value: &str| value.chars().count() <= LONG && clean.clean(value) == value;
    let (begin, hold): (Vec<_>, Vec<_>) = found
        .into_iter()
        .map(|(name, value)| (clean.clean(&name), value))
        .filter(|(name, value)| {
            whole(value) && (name.to_lowercase().contains(&typed) || value.to_lowercase().contains(&typed))
        })
        .partition(|(name, value)| name.to_lowercase().starts_with(&typed) || value.to_lowercase().starts_with(&typed));
    begin.into_iter().chain(hold).take(CHOICES).map(|(name, value)| (cut(&name, LONG), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::Star;
    use super::*;

    #[test]
    fn no_secret_is_offered() {
        let found = [("x of a_secret".to_owned(), "x".to_owned()), ("y".to_owned(), "a_secret".to_owned())];
        assert_eq!(fitting(&Star, found.into(), ""), [("x of *".to_owned(), "x".to_owned())]);
        assert!(fitting(&Star, vec![("x of a_secret".to_owned(), "x".to_owned())], "a_se").is_empty());
    }

    #[test]
    fn at_most_25_are_offered_none_longer_than_discord_takes_and_beginnings_first() {
        let many = own((0..40).map(|n| format!("model-{n}")));
        assert_eq!(fitting(&Star, many.clone(), "").len(), CHOICES);
        assert_eq!(fitting(&Star, many, "L-39"), own(["model-39".to_owned()]));
        let long = vec![("ä".repeat(300), "short".to_owned()), ("x".to_owned(), "y".repeat(101))];
        let found = fitting(&Star, long, "");
        assert_eq!((found.len(), found[0].0.chars().count()), (1, LONG));
        let order = fitting(&Star, own(["a fox".to_owned(), "fox".to_owned()]), "Fox");
        assert_eq!(order, own(["fox".to_owned(), "a fox".to_owned()]));
    }
}
