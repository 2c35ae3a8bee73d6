//! The error for a command that does not exist, with the commands that may be meant.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// The limit on suggested commands.
const MAX_SUGGESTIONS: usize = 3;

/// Words for a subcommand of another name, if the group has one of it.
const SYNONYMS: [(&[&str], &str); 8] = [
    (&["create", "add", "open"], "new"),
    (&["create", "add", "new"], "init"),
    (&["create", "new"], "add"),
    (&["select", "switch"], "use"),
    (&["rm", "del", "delete"], "remove"),
    (&["rm", "del", "remove"], "delete"),
    (&["rm", "del", "delete", "remove"], "destroy"),
    (&["ls"], "list"),
];

/// The place on the command line where a command was expected and another word was found.
#[derive(Debug)]
pub(crate) struct UnknownCommand {
    /// The names of the commands before it.
    pub path: Vec<String>,
    pub word: String,
    /// The arguments after it.
    pub rest: Vec<String>,
}

/// Returns the place that `error` is about if it says that a command does not exist, otherwise `None`. `arguments` are
/// those of the program, without its name.
#[must_use]
pub(crate) fn find(error: &clap::Error, tree: &Command, arguments: &[String]) -> Option<UnknownCommand> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (path, count) = command_path(tree, arguments);
    let rest = arguments.get(count + 1..).unwrap_or_default().to_vec();
    Some(UnknownCommand { path, word: word.clone(), rest })
}

/// Returns the error for `word`, which is not a command below the command `path`.
#[must_use]
pub(crate) fn error(tree: &Command, path: &[String], word: &str) -> Error {
    let typed = path.iter().map(String::as_str).chain([word]).collect::<Vec<_>>().join(" ");
    let error = Error::usage(format!("unknown command `{typed}`"));
    if path.is_empty() && matches!(word, "find" | "grep") {
        return error.with_hint("find messages: chorusctl search WORD");
    }
    let suggestions = suggestions(tree, path, word);
    if suggestions.is_empty() {
        return error.with_hint(format!("list the commands: chorusctl {}--help", join_path(path)));
    }
    let suggestions: Vec<_> = suggestions.iter().map(|path| format!("`chorusctl {path}`")).collect();
    error.with_hint(format!("did you mean {}?", suggestions.join(" or ")))
}

fn join_path(path: &[String]) -> String {
    path.iter().map(|name| format!("{name} ")).collect()
}

/// Returns the names of the commands that the first words of the command line lead to, and the number of these words
/// with the options between them.
pub(crate) fn command_path(tree: &Command, arguments: &[String]) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut command = tree;
    let mut is_value = false;
    for (index, word) in arguments.iter().enumerate() {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.starts_with('-') {
            is_value = takes_value(command, tree, word);
        } else {
            let Some(below) = command.find_subcommand(word) else { return (path, index) };
            path.push(below.get_name().to_owned());
            command = below;
        }
    }
    (path, arguments.len())
}

/// Returns true if `word` is an option of `command`, or of every command, whose value is the next word.
#[must_use]
pub(crate) fn takes_value(command: &Command, tree: &Command, word: &str) -> bool {
    let is_named = |arg: &clap::Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => {
            arg.get_short().is_some_and(|short| word.strip_prefix('-').is_some_and(|word| word == short.to_string()))
        }
    };
    command.get_arguments().chain(tree.get_arguments()).any(|arg| is_named(arg) && arg.get_action().takes_values())
}

/// A command with a similar name.
struct Candidate {
    /// Its full name below `chorusctl`.
    path: String,
    /// Its own name and its aliases.
    names: Vec<String>,
    /// Its distance from the unknown word: 0 for the same name.
    distance: usize,
    /// True if it is a sibling of the unknown word.
    is_sibling: bool,
    depth: usize,
}

/// Returns the full names of the commands that are most likely meant: those of this name anywhere in the tree, else
/// those with a similar name. Of several ways to type one command it returns the shortest.
fn suggestions(tree: &Command, path: &[String], word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    // What a group has is shown by its list.
    let group = path.iter().try_fold(tree, |command, name| command.find_subcommand(name));
    if word == "show" && group.is_some_and(|group| !path.is_empty() && group.find_subcommand("list").is_some()) {
        return vec![path.join(" ")];
    }
    let has = |name: &str| !path.is_empty() && group.is_some_and(|group| group.find_subcommand(name).is_some());
    if let Some((_, name)) = SYNONYMS.iter().find(|(words, name)| words.contains(&&*word) && has(name)) {
        return vec![format!("{} {name}", path.join(" "))];
    }
    let mut candidates = Vec::new();
    collect(tree, &mut Vec::new(), path, &word, &mut candidates);
    candidates.sort_by_key(|candidate| (candidate.distance, !candidate.is_sibling, candidate.depth));
    let best = candidates.first().map(|candidate| candidate.distance);
    candidates.retain(|candidate| Some(candidate.distance) == best);
    let mut distinct: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if !distinct.iter().any(|other| other.names.iter().any(|name| candidate.names.contains(name))) {
            distinct.push(candidate);
        }
    }
    distinct.truncate(MAX_SUGGESTIONS);
    distinct.into_iter().map(|candidate| candidate.path).collect()
}

fn collect(command: &Command, above: &mut Vec<String>, path: &[String], word: &str, candidates: &mut Vec<Candidate>) {
    let is_sibling = above.as_slice() == path;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let names: Vec<_> =
            std::iter::once(below.get_name()).chain(below.get_all_aliases()).map(str::to_owned).collect();
        above.push(below.get_name().to_owned());
        if let Some(distance) = names.iter().filter_map(|name| distance(word, name)).min() {
            candidates.push(Candidate { path: above.join(" "), names, distance, is_sibling, depth: above.len() });
        }
        collect(below, above, path, word, candidates);
        above.pop();
    }
}

/// Returns how far a name is from the typed word, or `None` if it is not similar.
fn distance(word: &str, name: &str) -> Option<usize> {
    let distance = strsim::osa_distance(word, name);
    let is_similar = distance * 3 <= word.chars().count() || (word.len() >= 3 && name.starts_with(word));
    is_similar.then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn suggested(line: &str) -> Vec<String> {
        let tree = cli::command_tree();
        let mut path: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let word = path.pop().unwrap_or_default();
        suggestions(&tree, &path, &word)
    }

    #[test]
    fn a_command_that_exists_elsewhere_is_suggested() {
        assert_eq!(suggested("append"), ["context append"]);
        assert_eq!(suggested("agent history"), ["history"]);
        assert_eq!(suggested("trash save"), ["save"]);
        assert_eq!(suggested("pin"), ["context pin"]);
        assert_eq!(suggested("delete"), ["session delete"]);
        assert_eq!(suggested("approvals show"), ["approvals"]);
        assert_eq!(suggested("conversations create"), ["conversations new"]);
        assert_eq!(suggested("agent new"), ["agent init"]);
        assert_eq!(suggested("schedule rm"), ["schedule remove"]);
        assert_eq!(suggested("schedule delete"), ["schedule remove"]);
        assert_eq!(suggested("schedule ls"), ["schedule list"]);
        assert_eq!(suggested("memory rm"), ["memory remove"]);
        assert_eq!(suggested("session rm"), ["session delete"]);
        assert_eq!(suggested("agent rm"), ["agent destroy"]);
    }

    #[test]
    fn a_misspelt_command_is_suggested() {
        assert_eq!(suggested("hisotry"), ["history"]);
        assert_eq!(suggested("session exprot"), ["session export"]);
        assert_eq!(suggested("session lst"), ["session list"]);
        assert_eq!(suggested("sessions"), ["session"]);
        assert_eq!(suggested("Status"), ["status"]);
        assert_eq!(suggested("frobnicate"), Vec::<String>::new());
    }

    #[test]
    fn the_path_of_a_command_line_skips_options_and_their_values() {
        let tree = cli::command_tree();
        let path = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (path, count) = command_path(&tree, &arguments);
            (path.join(" "), count)
        };
        assert_eq!(path("--agent session context lsit x"), ("context".into(), 3));
        assert_eq!(path("--json session --format jsonl lst"), ("session".into(), 4));
        assert_eq!(path("-C review search x"), ("search".into(), 3));
        assert_eq!(path("hist"), (String::new(), 0));
    }
}
