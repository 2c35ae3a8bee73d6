//! Names that the daemon knows: asked briefly, silent where it does not answer, and no daemon is started for it.

use std::ffi::OsString;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::agent::{List, ListParams};
use chorus_proto::methods::approvals::{Approval, List as Approvals, ListParams as ApprovalsParams};
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::memory::{List as Memory, ListParams as MemoryParams};
use chorus_proto::methods::models::{List as Models, ModelsParams};
use chorus_proto::methods::permissions::{List as Profiles, ListParams as ProfilesParams};
use chorus_proto::methods::tasks::{List as Tasks, ListParams as TasksParams, Task};
use chorus_proto::paths::InstancePaths;
use clap_complete::CompletionCandidate;

use crate::app::App;
use crate::cli::GlobalOptions;
use crate::commands::format;
use crate::ui::sanitize;

/// Longer than this nobody waits for a name.
const QUERY_TIMEOUT: Duration = Duration::from_millis(45);
/// More sessions than fit a screen help nobody.
const MAX_NAMES: u64 = 100;
/// Characters of an action that is shown beside its id.
const MAX_HELP_CHARS: usize = 80;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    Agents,
    Sessions,
    Models,
    Profiles,
    Tasks,
    Approvals,
    Tags,
    Memory,
}

impl NameKind {
    /// Those that there are, now.
    #[must_use]
    pub fn fetch(self) -> Vec<CompletionCandidate> {
        match self {
            Self::Agents => agents(),
            Self::Sessions => sessions(),
            Self::Models => models(),
            Self::Profiles => profiles(),
            Self::Tasks => tasks(),
            Self::Approvals => approvals(),
            Self::Tags => tags(),
            Self::Memory => memory(),
        }
    }
}

fn agents() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let agents = client.call::<List>(&ListParams::default()).ok()?.agents;
        Some(
            agents
                .into_iter()
                .filter(|agent| needs_no_quotes(&agent.name))
                .map(|agent| (agent.name, String::new()))
                .collect(),
        )
    })
}

/// The newest sessions of the agent that is meant.
fn sessions() -> Vec<CompletionCandidate> {
    run_query(newest_sessions)
}

/// The newest sessions of `agent`, and what they are about; none where the daemon of `places` does not answer soon.
#[must_use]
pub fn session_names(places: &InstancePaths, agent: &str) -> NamesWithHelp {
    query_daemon(places.clone(), Some(agent.to_owned()), Instant::now(), newest_sessions)
}

fn newest_sessions(client: &mut Client, agent: Option<String>) -> Option<NamesWithHelp> {
    let params = HistoryParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
    let sessions = client.call::<History>(&params).ok()?.sessions;
    let named = sessions.into_iter().filter(|session| needs_no_quotes(&session.header.session_id)).map(|session| {
        let header = session.header;
        let about = format::subject(header.description.as_deref(), header.summary.as_deref());
        (header.session_id, about)
    });
    Some(named.chain([("latest".to_owned(), "the newest one".to_owned())]).collect())
}

/// Aliases, then every model that was found.
fn models() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let found = client.call::<Models>(&ModelsParams {}).ok()?;
        let models = found.providers.into_iter().flat_map(|provider| provider.models);
        let models = models.map(|model| (model.name, model.display_name.unwrap_or_default()));
        Some(found.aliases.into_iter().chain(models).filter(|(name, _)| needs_no_quotes(name)).collect())
    })
}

fn profiles() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let profiles = client.call::<Profiles>(&ProfilesParams {}).ok()?.profiles;
        Some(profiles.into_iter().map(|profile| (profile.name, String::new())).collect())
    })
}

/// Those of the agent that is meant; where none is, of all.
fn tasks() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = TasksParams { all_agents: agent.is_none(), agent, limit: Some(MAX_NAMES), ..Default::default() };
        let tasks = client.call::<Tasks>(&params).ok()?.tasks;
        let about = |task: &Task| format!("{}: {}", task.status.as_str(), task.command);
        Some(
            tasks
                .into_iter()
                .filter(|task| needs_no_quotes(&task.id))
                .map(|task| (task.id.clone(), about(&task)))
                .collect(),
        )
    })
}

/// Those that are open, of the agent that is named; as in `approvals`, the agent of the directory narrows nothing down.
fn approvals() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let open = client.call::<Approvals>(&ApprovalsParams { agent, ..ApprovalsParams::default() }).ok()?.approvals;
        let about = |asked: &Approval| {
            format!("{}: {}", asked.agent, asked.action.chars().take(MAX_HELP_CHARS).collect::<String>())
        };
        Some(
            open.into_iter()
                .filter(|asked| needs_no_quotes(&asked.id))
                .map(|asked| (asked.id.clone(), about(&asked)))
                .collect(),
        )
    })
}

/// Those that the newest sessions of the agent that is meant carry.
fn tags() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = HistoryParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
        let sessions = client.call::<History>(&params).ok()?.sessions;
        let mut tags: Vec<String> = sessions.into_iter().flat_map(|session| session.header.tags).collect();
        tags.sort_unstable();
        tags.dedup();
        Some(tags.into_iter().filter(|tag| needs_no_quotes(tag)).map(|tag| (tag, String::new())).collect())
    })
}

/// What the agent that is meant remembers.
fn memory() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = MemoryParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
        let entries = client.call::<Memory>(&params).ok()?.entries;
        let about = |text: &str| text.chars().take(MAX_HELP_CHARS).collect::<String>();
        Some(entries.into_iter().map(|entry| (entry.short_id, about(&entry.text))).collect())
    })
}

/// Only what needs no quoting in any shell.
fn needs_no_quotes(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

/// A name, and what it is.
pub type NamesWithHelp = Vec<(String, String)>;
type Query = fn(&mut Client, Option<String>) -> Option<NamesWithHelp>;

/// Asks for what completes the words typed so far.
fn run_query(question: Query) -> Vec<CompletionCandidate> {
    let asked = Instant::now();
    let app = App::new(parse_typed_options(std::env::args_os()));
    let Ok(places) = app.paths() else { return Vec::new() };
    let names = query_daemon(places.clone(), app.agent(), asked, question);
    let candidate = |(index, (name, about)): (usize, (String, String))| {
        let about = Some(about).filter(|about| !about.is_empty()).map(|about| sanitize::one_line(&about).into());
        // The newest first: not in alphabetical order.
        CompletionCandidate::new(name).help(about).display_order(Some(index))
    };
    names.into_iter().enumerate().map(candidate).collect()
}

/// Asks in a thread of its own: connecting to a daemon that hangs may take for ever.
fn query_daemon(places: InstancePaths, agent: Option<String>, asked: Instant, question: Query) -> NamesWithHelp {
    let (answer, answered) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let names = Client::connect_to(&places).ok().and_then(|mut client| question(&mut client, agent));
        let _ = answer.send(names.unwrap_or_default());
    });
    answered.recv_timeout(QUERY_TIMEOUT.saturating_sub(asked.elapsed())).unwrap_or_default()
}

/// The options among the words typed so far that say where to ask.
fn parse_typed_options(words: impl Iterator<Item = OsString>) -> GlobalOptions {
    let mut global = GlobalOptions::default();
    let mut words = words.skip_while(|word| word != "--").skip(1).peekable();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (word, None),
        };
        let mut value = || value.clone().or_else(|| words.next());
        match name {
            "--agent" => global.agent = value().and_then(|value| value.into_string().ok()),
            "--socket" => global.socket = value().map(Into::into),
            _ => {}
        }
    }
    global
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_ask_is_read_from_what_was_typed() {
        let typed = |line: &str| {
            let global = parse_typed_options(line.split(' ').map(OsString::from));
            (global.agent.unwrap_or_default(), global.socket.unwrap_or_default().display().to_string())
        };
        assert_eq!(typed("chorusctl -- chorusctl --agent a context --socket=/s restore"), ("a".into(), "/s".into()));
        assert_eq!(typed("chorusctl --agent no -- chorusctl context restore --agent"), (String::new(), String::new()));
    }
}
