//! Shell completion. The shell's script runs `chorusctl` with [`COMPLETE_VARIABLE`] set and the words typed so far
//! after `--`. Errors are silent, because they would appear in the middle of a prompt.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, ValueHint};
use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use chorus_proto::error::exit;

use crate::cli;

mod names;

use names::NameKind;
pub use names::session_names;

/// Environment variable with the name of the shell, set by the scripts of `chorusctl completions`.
pub const COMPLETE_VARIABLE: &str = "CHORUSCTL_COMPLETE";

/// An option that changes no completion.
const FILLER: &str = "--no-pager";

/// Prints completions if a shell asks for them, and returns the exit status; otherwise `None`.
#[must_use]
pub fn complete_if_requested() -> Option<u8> {
    let shell = std::env::var_os(COMPLETE_VARIABLE).filter(|shell| !shell.is_empty())?;
    let current = std::env::current_dir().ok();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if shell == "bash" {
        join_at_signs(&mut words, std::env::var("_CLAP_COMPLETE_INDEX").ok());
    }
    let completed = CompleteEnv::with_factory(command_with_completers)
        .var(COMPLETE_VARIABLE)
        .try_complete(words, current.as_deref());
    Some(if completed.is_ok() { exit::SUCCESS } else { exit::FAILED })
}

/// Returns the command line with completers for names that the daemon knows.
fn command_with_completers() -> Command {
    let mut tree = add_completers(cli::command_tree(), "");
    if current_word(std::env::args_os(), std::env::var("_CLAP_COMPLETE_INDEX").ok()).is_empty() {
        hide_options(&mut tree);
    }
    tree
}

/// Joins what bash has split: it passes `show @review` as the words `show`, `@` and `review`, and the word that is completed
/// as `@` and `@re`. The number of words stays the same, because the index of that word is counted from the first.
fn join_at_signs(words: &mut Vec<OsString>, index: Option<String>) {
    let Some(first) = words.iter().position(|word| word == "--").map(|at| at + 1) else { return };
    let Some(current) = index.and_then(|index| index.parse::<usize>().ok()).map(|index| first + index) else { return };
    let mut at = first + 1;
    while at + 1 < words.len() {
        let (next, is_last) = (words[at + 1].to_string_lossy().into_owned(), at + 1 == current);
        let joined = match words[at] == "@" {
            true if is_last => next.starts_with('@').then_some(next),
            true => (!next.starts_with(['-', '@'])).then(|| format!("@{next}")),
            false => None,
        };
        if let Some(joined) = joined {
            words[at + 1] = joined.into();
            words.remove(at);
            words.insert(first + 1, FILLER.into());
        }
        at += 1;
    }
}

/// Returns the word that is completed: the one at `index` of the words behind `--`, for a shell that passes none the last.
fn current_word(arguments: impl Iterator<Item = OsString>, index: Option<String>) -> OsString {
    let words: Vec<OsString> = arguments.skip_while(|word| word != "--").skip(1).collect();
    let index = index.and_then(|index| index.parse().ok()).unwrap_or(words.len().saturating_sub(1));
    words.get(index).cloned().unwrap_or_default()
}

/// Hides the options, so that they are offered only where there is nothing else: while nothing is typed, the shell would
/// otherwise insert the hyphens that they have in common.
fn hide_options(command: &mut Command) {
    let options = |arg: Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    *command = std::mem::take(command).mut_args(options);
    command.get_subcommands_mut().for_each(hide_options);
}

fn add_completers(command: Command, above: &str) -> Command {
    let name = command.get_name().to_owned();
    let below: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| match names_for_arg(&arg, &name, above) {
        Some(NameKind::Sessions) => arg.add(ArgValueCompleter::new(names::sessions)),
        Some(names) => arg.add(ArgValueCompleter::new(move |begun: &OsStr| filter_prefix(names.fetch(), begun))),
        None if takes_file(&arg) => arg.value_hint(ValueHint::AnyPath),
        None => arg,
    });
    below
        .into_iter()
        .fold(command, |command, below| command.mut_subcommand(below, |below| add_completers(below, &name)))
}

/// Returns what kind of name an argument of `command` takes. Derived from ids and value names, so new subcommands need
/// no extra code.
fn names_for_arg(arg: &Arg, command: &str, above: &str) -> Option<NameKind> {
    let value = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    match (arg.get_id().as_str(), value) {
        ("host" | "machine", _) => Some(NameKind::Hosts),
        ("agent", _) | (_, "AGENT" | "AGENT|WORD") => Some(NameKind::Agents),
        ("name", _) if above == "agent" && command != "init" => Some(NameKind::Agents),
        ("conversation" | "conversation_name" | "old_name", _) => Some(NameKind::Conversations),
        ("name", _) if above == "conversations" && command == "close" => Some(NameKind::ClosableConversations),
        ("name", _) if above == "conversations" && command != "new" => Some(NameKind::Conversations),
        ("model", _) => Some(NameKind::Models),
        ("permissions", _) => Some(NameKind::Profiles),
        ("name", _) if above == "permissions" => Some(NameKind::Profiles),
        ("source", _) => Some(NameKind::Sources),
        ("tool", _) if command == "search" => Some(NameKind::Tools),
        (_, "ID") if above == "tasks" => Some(NameKind::Tasks),
        (_, "ID") if above == "approvals" => Some(NameKind::Approvals),
        ("tag" | "tags", _) => Some(NameKind::Tags),
        (_, "SCHEDULE") if above == "schedule" => Some(NameKind::Schedules),
        (_, "ID") if above == "memory" => Some(NameKind::Memory),
        (_, "NOTE") if above == "notes" => Some(NameKind::Notes),
        (_, "TASK") if above == "notes" => Some(NameKind::OpenTasks),
        (_, "CONFLICT") if above == "notes" => Some(NameKind::Conflicts),
        (_, "ID") if above == "trash" => Some(NameKind::Trash),
        ("key", _) if above == "agent" => Some(NameKind::AgentKeys),
        ("key", _) if above == "config" => Some(NameKind::ConfigKeys),
        ("key", _) if above == "settings" => Some(NameKind::SettingKeys),
        (_, value) if value.starts_with("SESSION") => Some(NameKind::Sessions),
        _ => None,
    }
}

/// Returns true if the argument is a file or directory of this machine.
fn takes_file(arg: &Arg) -> bool {
    let value = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    value.starts_with("FILE") || value.starts_with("DIR")
}

fn filter_prefix(candidates: Vec<CompletionCandidate>, begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    candidates.into_iter().filter(|one| one.get_value().to_string_lossy().starts_with(&*begun)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_splits_at_an_at_sign() {
        let joined = |line: &str, index: usize| {
            let mut words: Vec<OsString> =
                format!("chorusctl -- chorusctl {line}").split(' ').map(Into::into).collect();
            join_at_signs(&mut words, Some(index.to_string()));
            let words: Vec<_> = words.iter().skip(3).map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        assert_eq!(joined("show @ @re", 3), "--no-pager show @re");
        assert_eq!(joined("show @", 2), "show @");
        assert_eq!(joined("session diff @ @re", 4), "--no-pager session diff @re");
        assert_eq!(joined("session diff @ @ @re", 5), "--no-pager session diff @ @re");
        assert_eq!(joined("session diff @ review @ @re", 6), "--no-pager --no-pager session diff @review @re");
        assert_eq!(joined("session diff @ la", 4), "session diff @ la");
        assert_eq!(joined("export @ review --as", 4), "--no-pager export @review --as");
    }

    #[test]
    fn names_are_offered_where_names_belong() {
        let tree = cli::command_tree();
        let of = |path: &[&str], id: &str| {
            let (above, command) = path.iter().fold(("", Some(&tree)), |(_, command), name| {
                let command = command.expect("a command");
                (command.get_name(), command.find_subcommand(name))
            });
            let command = command.expect("a command");
            let arg = command.get_arguments().find(|arg| arg.get_id() == id).expect("an argument");
            names_for_arg(arg, command.get_name(), above)
        };
        let (agents, sessions) = (Some(NameKind::Agents), Some(NameKind::Sessions));
        assert_eq!(of(&["context", "show"], "agent"), agents);
        assert_eq!(of(&["agent", "show"], "name"), agents);
        assert_eq!(of(&["context", "history"], "whose"), agents);
        assert_eq!(of(&["agent", "init"], "name"), None);
        let conversations = Some(NameKind::Conversations);
        assert_eq!([of(&["show"], "conversation"), of(&["chat"], "conversation_name")], [conversations; 2]);
        assert_eq!(
            [of(&["conversations", "close"], "name"), of(&["conversations", "use"], "name")],
            [Some(NameKind::ClosableConversations), conversations]
        );
        assert_eq!(of(&["conversations", "rename"], "old_name"), conversations);
        assert_eq!([of(&["conversations", "new"], "name"), of(&["conversations", "rename"], "new_name")], [None; 2]);
        assert_eq!(of(&["agent", "init"], "model"), Some(NameKind::Models));
        assert_eq!(of(&["agent", "init"], "permissions"), Some(NameKind::Profiles));
        assert_eq!(of(&["permissions", "show"], "name"), Some(NameKind::Profiles));
        assert_eq!(of(&["permissions", "check"], "whose"), agents);
        assert_eq!(of(&["tasks", "stop"], "id"), Some(NameKind::Tasks));
        assert_eq!(of(&["approvals", "approve"], "id"), Some(NameKind::Approvals));
        assert_eq!(of(&["approvals", "deny"], "id"), Some(NameKind::Approvals));
        assert_eq!(of(&["memory", "remove"], "id"), Some(NameKind::Memory));
        assert_eq!(of(&["notes", "edit"], "note"), Some(NameKind::Notes));
        assert_eq!(of(&["notes", "done"], "task"), Some(NameKind::OpenTasks));
        assert_eq!(of(&["notes", "resolve"], "conflict"), Some(NameKind::Conflicts));
        assert_eq!(of(&["trash", "restore"], "id"), Some(NameKind::Trash));
        assert_eq!(of(&["agent", "config"], "key"), Some(NameKind::AgentKeys));
        assert_eq!(of(&["settings", "set"], "key"), Some(NameKind::SettingKeys));
        assert_eq!(of(&["context", "restore"], "session"), sessions);
        assert_eq!(of(&["session", "show"], "session"), sessions);
        assert_eq!([of(&["session", "diff"], "a"), of(&["session", "merge"], "b")], [sessions; 2]);
        assert_eq!(of(&["session", "branch"], "as"), agents);
        assert_eq!([of(&["search"], "source"), of(&["search"], "words")], [Some(NameKind::Sources), None]);
        assert_eq!(of(&["search"], "tool"), Some(NameKind::Tools));
        assert_eq!([of(&["search"], "model"), of(&["search"], "agent")], [Some(NameKind::Models), agents]);
        let tags = Some(NameKind::Tags);
        assert_eq!([of(&["session", "untag"], "tags"), of(&["context", "history"], "tag")], [tags; 2]);
    }
}
