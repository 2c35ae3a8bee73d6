//! Completes names that the daemon knows. The query has a short timeout, errors are silent, and no daemon is started.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Config, ConfigParams, List, ListParams};
use chorus_proto::methods::approvals::{Approval, List as Approvals, ListParams as ApprovalsParams};
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::conversations::{List as Conversations, ListParams as ConversationsParams};
use chorus_proto::methods::memory::{List as Memory, ListParams as MemoryParams};
use chorus_proto::methods::models::{List as Models, ModelsParams};
use chorus_proto::methods::notes::{List as Notes, ListParams as NotesParams, NoteKind};
use chorus_proto::methods::permissions::{List as Profiles, ListParams as ProfilesParams};
use chorus_proto::methods::schedule::{List as Schedules, ListParams as SchedulesParams};
use chorus_proto::methods::settings::{Show as Settings, ShowParams as SettingsParams};
use chorus_proto::methods::tasks::{List as Tasks, ListParams as TasksParams, Task};
use chorus_proto::methods::trash::{List as Trash, ListParams as TrashParams};
use chorus_proto::{CallError, Client, ErrorKind, Session};
use chorus_remote::DaemonAddress;
use clap_complete::CompletionCandidate;
use serde_json::Value;

use crate::app::App;
use crate::cli::GlobalOptions;
use crate::commands::{format, trash};
use crate::conversation_select::MAIN;
use crate::older_daemon;
use crate::ui::sanitize;

/// Longest time that a completion may take.
const QUERY_TIMEOUT: Duration = Duration::from_millis(250);
/// More names than fit a screen are useless.
const MAX_NAMES: u64 = 100;
/// Characters of an action or text that are shown beside its id.
const MAX_HELP_CHARS: usize = 80;

/// The keys that `settings set` takes.
const SETTING_KEYS: [&str; 3] = ["default_model", "permissions", "idle_timeout"];
/// The sources of messages that `search` selects, and the formats of imports.
const MESSAGE_SOURCES: [&str; 10] =
    ["cli", "discord", "agent", "import", "chatgpt", "claude-code", "codex", "goose", "markdown", "openai"];
/// The built-in tools, of which `search` selects the calls. A test compares them with those of the daemon.
const TOOLS: [&str; 25] = [
    "view",
    "create_file",
    "append_file",
    "str_replace",
    "bash",
    "git_init",
    "git_commit",
    "git_branch",
    "git_checkout",
    "git_diff",
    "git_log",
    "git_push",
    "git_merge_request",
    "list_models",
    "list_agents",
    "search_sessions",
    "remember",
    "send_to_agent",
    "schedule_add",
    "schedule_list",
    "schedule_remove",
    "self_edit_system_prompt",
    "self_edit_docs",
    "self_edit_permissions",
    "self_edit_model",
];
/// Keys of agent.json that only Chorus writes.
const MANAGED_KEYS: [&str; 5] = ["id", "created_at", "guild_id", "import_source", "running_tasks"];

/// Kind of name to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Agents,
    /// Machines in config.toml.
    Hosts,
    Conversations,
    /// Those that can be closed.
    ClosableConversations,
    Sessions,
    Models,
    Profiles,
    Tasks,
    Approvals,
    Tags,
    Memory,
    Schedules,
    Notes,
    OpenTasks,
    Conflicts,
    Trash,
    /// Keys of `agent config`.
    AgentKeys,
    /// Keys of the configuration.
    ConfigKeys,
    /// Keys of `settings set`.
    SettingKeys,
    /// Sources of messages.
    Sources,
    /// Built-in tools.
    Tools,
}

impl NameKind {
    /// Fetches the names of this kind.
    #[must_use]
    pub(super) fn fetch(self) -> Vec<CompletionCandidate> {
        match self {
            Self::Agents => agents(),
            Self::Hosts => hosts(),
            Self::Conversations => run_query(|client, agent| conversations(client, agent, true)),
            Self::ClosableConversations => run_query(|client, agent| {
                let mut open = conversations(client, agent, false)?;
                open.retain(|(name, _)| name != MAIN);
                Some(open)
            }),
            Self::Sessions => sessions(OsStr::new("")),
            Self::Models => models(),
            Self::Profiles => profiles(),
            Self::Tasks => tasks(),
            Self::Approvals => approvals(),
            Self::Tags => tags(),
            Self::Memory => memory(),
            Self::Schedules => schedules(),
            Self::Notes => notes(None),
            Self::OpenTasks => notes(Some(NoteKind::Task)),
            Self::Conflicts => notes(Some(NoteKind::Conflict)),
            Self::Trash => trashed(),
            Self::AgentKeys => agent_keys(),
            Self::ConfigKeys => config_keys(),
            Self::SettingKeys => SETTING_KEYS.iter().map(|key| CompletionCandidate::new(*key)).collect(),
            Self::Sources => MESSAGE_SOURCES.iter().map(|source| CompletionCandidate::new(*source)).collect(),
            Self::Tools => TOOLS.iter().map(|tool| CompletionCandidate::new(*tool)).collect(),
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

/// Returns the conversations of the selected agent with their titles, with `all` the closed ones, too.
fn conversations(client: &mut Client, agent: Option<String>, all: bool) -> Option<NamesWithHelp> {
    let params = ConversationsParams { agent, all, limit: Some(MAX_NAMES), ..Default::default() };
    let conversations = client.call::<Conversations>(&params).ok()?.conversations;
    Some(conversations.into_iter().map(|one| (one.name, one.title.unwrap_or_default())).collect())
}

/// Returns `@NAME` for the conversations of the selected agent that have a live context.
fn live_conversations(client: &mut Client, agent: Option<String>) -> Option<NamesWithHelp> {
    let params = ConversationsParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
    let conversations = client.call::<Conversations>(&params).ok()?.conversations;
    let live = conversations.into_iter().filter(|one| one.context.is_some());
    Some(live.map(|one| (format!("@{}", one.name), one.title.unwrap_or_default())).collect())
}

/// Returns the sessions that `begun` may mean: the start of a name, of a slug, of an ID, or of a word of the title. Each is
/// offered by the one of them that starts with `begun`, or by its slug.
pub(super) fn sessions(begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy().to_lowercase();
    if begun.starts_with('@') {
        let mut found = run_query(live_conversations);
        found.retain(|one| one.get_value().to_string_lossy().starts_with(&begun));
        return found;
    }
    run_query(move |client, agent| match &*begun {
        "" => newest_sessions(client, agent),
        begun => matching_sessions(client, agent, begun),
    })
}

/// Lists sessions without changing what the numbers of the last history mean. Daemons of earlier releases reject that and
/// `words`; they are asked without.
fn list_sessions(client: &mut Client, params: HistoryParams) -> Option<Vec<Session>> {
    let plain = HistoryParams { words: None, ..params.clone() };
    match client.call::<History>(&HistoryParams { keep_numbers: true, ..params }) {
        Ok(found) => Some(found.sessions),
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::InvalidParams => {
            Some(client.call::<History>(&plain).ok()?.sessions)
        }
        Err(_) => None,
    }
}

fn matching_sessions(client: &mut Client, agent: Option<String>, begun: &str) -> Option<NamesWithHelp> {
    let params =
        |words| HistoryParams { agent: agent.clone(), own: true, words, limit: Some(MAX_NAMES), ..Default::default() };
    let mut found = list_sessions(client, params(Some(begun.to_owned())))?;
    if found.is_empty() {
        found = list_sessions(client, params(None))?;
    }
    let named = found.iter().filter_map(|session| {
        let header = &session.header;
        let about = format::subject(header.description.as_deref(), header.summary.as_deref());
        Some((offered_name(session, begun)?, about))
    });
    let latest = ("latest".to_owned(), "the newest session".to_owned());
    let mut named: NamesWithHelp = named.filter(|(name, _)| needs_no_quotes(name)).collect();
    named.extend("latest".starts_with(begun).then_some(latest));
    Some(named)
}

/// Returns the name under which a session is offered if `begun`, in lower case, may mean it.
fn offered_name(session: &Session, begun: &str) -> Option<String> {
    let name = &session.header.session_id;
    // After the date, `2026-11-25_`.
    let slug = name.split_once('_').map_or(&**name, |(_, slug)| slug);
    let title = session.header.description.as_deref().or(session.header.summary.as_deref()).unwrap_or_default();
    let has_word =
        |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.to_lowercase().starts_with(begun));
    let begins = |text: &str| text.to_lowercase().starts_with(begun);
    match () {
        () if begins(name) => Some(name.clone()),
        () if begins(slug) => Some(slug.to_owned()),
        () if begins(&session.short_id) => Some(session.short_id.clone()),
        () if has_word(title) => Some(slug.to_owned()),
        () => None,
    }
}

/// Returns the newest sessions of `agent` with their subjects; empty if `daemon` does not answer in time.
#[must_use]
pub fn session_names(daemon: &DaemonAddress, agent: &str) -> NamesWithHelp {
    query_daemon(daemon.clone(), Some(agent.to_owned()), Instant::now(), newest_sessions)
}

fn newest_sessions(client: &mut Client, agent: Option<String>) -> Option<NamesWithHelp> {
    let params = HistoryParams { agent, own: true, limit: Some(MAX_NAMES), ..Default::default() };
    let sessions = list_sessions(client, params)?;
    let named = sessions.into_iter().filter(|session| needs_no_quotes(&session.header.session_id)).map(|session| {
        let header = session.header;
        let about = format::subject(header.description.as_deref(), header.summary.as_deref());
        (header.session_id, about)
    });
    Some(named.chain([("latest".to_owned(), "the newest session".to_owned())]).collect())
}

/// Returns aliases, then all discovered models.
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

/// Returns the tasks of the selected agent, or of all agents if none is selected.
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

/// Returns open approvals, filtered by `--agent` only, as in `approvals`.
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

/// Returns the tags of the selected agent's newest sessions.
fn tags() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = HistoryParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
        let sessions = list_sessions(client, params)?;
        let mut tags: Vec<String> = sessions.into_iter().flat_map(|session| session.header.tags).collect();
        tags.sort_unstable();
        tags.dedup();
        Some(tags.into_iter().filter(|tag| needs_no_quotes(tag)).map(|tag| (tag, String::new())).collect())
    })
}

/// Returns the memory entries of the selected agent.
fn memory() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = MemoryParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
        let entries = client.call::<Memory>(&params).ok()?.entries;
        let about = |text: &str| text.chars().take(MAX_HELP_CHARS).collect::<String>();
        Some(entries.into_iter().map(|entry| (entry.short_id, about(&entry.text))).collect())
    })
}

/// Returns the schedules of the selected agent.
fn schedules() -> Vec<CompletionCandidate> {
    run_query(|client, agent| {
        let params = SchedulesParams { agent, limit: Some(MAX_NAMES), ..Default::default() };
        let schedules = client.call::<Schedules>(&params).ok()?.schedules;
        let about = |text: &str| text.chars().take(MAX_HELP_CHARS).collect::<String>();
        Some(schedules.into_iter().map(|one| (one.name, about(&one.message))).collect())
    })
}

/// Returns the notes of the selected conversation, or those of one kind.
fn notes(kind: Option<NoteKind>) -> Vec<CompletionCandidate> {
    let conversation = App::new(parse_typed_options(std::env::args_os())).conversation();
    run_query(move |client, agent| {
        let params = NotesParams { agent, conversation, kind, limit: Some(MAX_NAMES), ..Default::default() };
        let notes = match client.call::<Notes>(&params) {
            Err(error) if older_daemon::refuses_conversations(&error) => {
                client.call::<Notes>(&NotesParams { conversation: None, ..params }).ok()?.notes
            }
            listed => listed.ok()?.notes,
        };
        let about = |text: &str| text.chars().take(MAX_HELP_CHARS).collect::<String>();
        Some(notes.into_iter().map(|note| (note.note, about(&note.text))).collect())
    })
}

/// Returns the trashed items, newest first.
fn trashed() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let entries = client.call::<Trash>(&TrashParams {}).ok()?.entries;
        Some(entries.into_iter().map(|entry| (trash::short_id(&entry), entry.name)).collect())
    })
}

/// Returns the keys that an agent has, and `name`, which renames it.
fn agent_keys() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let name = client.call::<List>(&ListParams::default()).ok()?.agents.into_iter().next()?.name;
        let config = client.call::<Config>(&ConfigParams { name, key: None, value: None }).ok()?.config;
        let keys = config.into_iter().filter(|(key, _)| !MANAGED_KEYS.contains(&key.as_str()));
        Some(keys.map(|(key, value)| (key, value.to_string().chars().take(MAX_HELP_CHARS).collect())).collect())
    })
}

/// Returns the keys of the configuration with their values.
fn config_keys() -> Vec<CompletionCandidate> {
    run_query(|client, _| {
        let settings = client.call::<Settings>(&SettingsParams {}).ok()?.settings.into_iter();
        let names = settings.filter(|setting| needs_no_quotes(&setting.key));
        Some(names.map(|setting| (setting.key, short_text(&setting.value))).collect())
    })
}

/// Returns a value as it is shown beside its key.
fn short_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).chars().take(MAX_HELP_CHARS).collect()
}

/// Returns true if no shell needs quotes around the name.
fn needs_no_quotes(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

/// Returns the machines that config.toml names.
fn hosts() -> Vec<CompletionCandidate> {
    let app = App::new(GlobalOptions::default());
    let Ok(places) = app.paths() else { return Vec::new() };
    chorus_remote::host_names(&places.config).into_iter().map(CompletionCandidate::new).collect()
}

/// A question to the daemon about the selected agent.
trait Query: FnOnce(&mut Client, Option<String>) -> Option<NamesWithHelp> + Send + 'static {}

impl<F: FnOnce(&mut Client, Option<String>) -> Option<NamesWithHelp> + Send + 'static> Query for F {}

/// Names, each with a help text.
pub(super) type NamesWithHelp = Vec<(String, String)>;

/// Runs a query for the agent and socket in the words typed so far.
fn run_query(question: impl Query) -> Vec<CompletionCandidate> {
    let asked = Instant::now();
    let app = App::new(parse_typed_options(std::env::args_os()));
    let Ok(daemon) = app.address() else { return Vec::new() };
    let names = query_daemon(daemon, app.agent(), asked, question);
    let candidate = |(index, (name, about)): (usize, (String, String))| {
        let about = Some(about).filter(|about| !about.is_empty()).map(|about| sanitize::one_line(&about).into());
        // Keep the order (newest first) instead of sorting alphabetically.
        CompletionCandidate::new(name).help(about).display_order(Some(index))
    };
    names.into_iter().enumerate().map(candidate).collect()
}

/// Runs the query in a separate thread, because connecting to a daemon that hangs may never return.
fn query_daemon(daemon: DaemonAddress, agent: Option<String>, asked: Instant, question: impl Query) -> NamesWithHelp {
    let (answer, answered) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let names = daemon.connect().ok().and_then(|mut client| question(&mut client, agent));
        let _ = answer.send(names.unwrap_or_default());
    });
    answered.recv_timeout(QUERY_TIMEOUT.saturating_sub(asked.elapsed())).unwrap_or_default()
}

/// Parses `--agent`, `--conversation`, `--host` and `--socket` from the words typed so far.
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
            "--conversation" | "-C" => global.conversation = value().and_then(|value| value.into_string().ok()),
            "--host" => global.host = value().and_then(|value| value.into_string().ok()),
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
