//! Completion of the command line: the script of the shell runs `chorusctl` with [`VARIABLE`] set, and the words typed
//! so far after `--`. What fails is silent: nobody wants an error in the middle of a prompt.

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use crate::cli;

mod names;

use names::Names;
pub use names::sessions_of;

/// Set by the scripts that `chorusctl completions` prints, to the name of the shell.
pub const VARIABLE: &str = "CHORUSCTL_COMPLETE";

/// Completes where a shell asks for it; how the process is to end then.
#[must_use]
pub fn asked() -> Option<ExitCode> {
    std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty())?;
    let current = std::env::current_dir().ok();
    let completed = CompleteEnv::with_factory(tree).var(VARIABLE).try_complete(std::env::args_os(), current.as_deref());
    Some(if completed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The command line, with the names that the daemon knows.
fn tree() -> Command {
    with_names(cli::tree(), "")
}

fn with_names(command: Command, above: &str) -> Command {
    let name = command.get_name().to_owned();
    let below: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| match meant(&arg, &name, above) {
        Some(names) => arg.add(ArgValueCompleter::new(move |begun: &OsStr| beginning(names.ask(), begun))),
        None => arg,
    });
    below.into_iter().fold(command, |command, below| command.mut_subcommand(below, |below| with_names(below, &name)))
}

/// What an argument of `command` takes: told by its name and place, so that a new verb has it without asking.
fn meant(arg: &Arg, command: &str, above: &str) -> Option<Names> {
    let value = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    match (arg.get_id().as_str(), value) {
        ("agent", _) | (_, "AGENT") => Some(Names::Agents),
        ("name", _) if above == "agent" && command != "init" => Some(Names::Agents),
        ("model", _) => Some(Names::Models),
        ("permissions", _) => Some(Names::Profiles),
        ("name", _) if above == "permissions" => Some(Names::Profiles),
        (_, "ID") if above == "tasks" => Some(Names::Tasks),
        (_, "ID") if above == "approvals" => Some(Names::Approvals),
        ("tag" | "tags", _) => Some(Names::Tags),
        (_, "ID") if above == "memory" => Some(Names::Memory),
        (_, value) if value.starts_with("SESSION") => Some(Names::Sessions),
        _ => None,
    }
}

fn beginning(candidates: Vec<CompletionCandidate>, begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    candidates.into_iter().filter(|one| one.get_value().to_string_lossy().starts_with(&*begun)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_offered_where_names_belong() {
        let tree = cli::tree();
        let of = |path: &[&str], id: &str| {
            let (above, command) = path.iter().fold(("", Some(&tree)), |(_, command), name| {
                let command = command.expect("a command");
                (command.get_name(), command.find_subcommand(name))
            });
            let command = command.expect("a command");
            let arg = command.get_arguments().find(|arg| arg.get_id() == id).expect("an argument");
            meant(arg, command.get_name(), above)
        };
        let (agents, sessions) = (Some(Names::Agents), Some(Names::Sessions));
        assert_eq!(of(&["context", "show"], "agent"), agents);
        assert_eq!(of(&["agent", "show"], "name"), agents);
        assert_eq!(of(&["context", "history"], "whose"), agents);
        assert_eq!(of(&["agent", "init"], "name"), None);
        assert_eq!(of(&["agent", "init"], "model"), Some(Names::Models));
        assert_eq!(of(&["agent", "init"], "permissions"), Some(Names::Profiles));
        assert_eq!(of(&["permissions", "show"], "name"), Some(Names::Profiles));
        assert_eq!(of(&["permissions", "check"], "whose"), agents);
        assert_eq!(of(&["tasks", "stop"], "id"), Some(Names::Tasks));
        assert_eq!(of(&["approvals", "approve"], "id"), Some(Names::Approvals));
        assert_eq!(of(&["approvals", "deny"], "id"), Some(Names::Approvals));
        assert_eq!(of(&["memory", "remove"], "id"), Some(Names::Memory));
        assert_eq!(of(&["trash", "restore"], "id"), None);
        assert_eq!(of(&["context", "restore"], "session"), sessions);
        assert_eq!(of(&["session", "show"], "session"), sessions);
        assert_eq!([of(&["session", "diff"], "a"), of(&["session", "merge"], "b")], [sessions; 2]);
        assert_eq!(of(&["session", "branch"], "as"), agents);
        let tags = Some(Names::Tags);
        assert_eq!([of(&["session", "untag"], "tags"), of(&["context", "history"], "tag")], [tags; 2]);
    }
}
