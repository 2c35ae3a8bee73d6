//! Slash commands of a chat. They run the same code as the command line's subcommands, for the chat's agent.

use super::start;
use crate::app::App;
use crate::commands::{context, status};
use crate::error::Error;

/// A parsed slash command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Save(Option<String>),
    Restore(String),
    Compact,
    History,
    Status,
    New,
    Help,
    Exit,
}

impl Command {
    /// Returns true if later messages belong to another context.
    #[must_use]
    pub(super) fn switches_context(&self) -> bool {
        matches!(self, Self::Restore(_) | Self::Compact | Self::New)
    }
}

/// Name, argument and description of each command.
pub(super) const COMMANDS: [(&str, &str, &str); 8] = [
    ("/save", "[DESCRIPTION]", "save a checkpoint (the conversation continues)"),
    ("/restore", "SESSION", "load a saved conversation"),
    ("/compact", "", "save, then continue from a summary"),
    ("/history", "", "list saved conversations"),
    ("/status", "", "show the daemon and this agent"),
    ("/new", "", "save, then start a new conversation"),
    ("/help", "", "list these commands"),
    ("/exit", "", "exit (also: Ctrl-D)"),
];

/// Parses a line; `None` if it is a message.
#[must_use]
pub(super) fn parse(line: &str) -> Option<Result<Command, Error>> {
    let rest = line.strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let alone = |command: Command| if argument.is_empty() { Ok(command) } else { Err(unexpected_argument(name)) };
    Some(match name {
        "save" => Ok(Command::Save(Some(argument.to_owned()).filter(|argument| !argument.is_empty()))),
        "restore" if argument.is_empty() => Err(Error::usage("/restore needs a session")
            .with_hint("list sessions with /history, then use /restore latest or /restore NUMBER")),
        "restore" => Ok(Command::Restore(argument.to_owned())),
        "compact" => alone(Command::Compact),
        "history" => alone(Command::History),
        "status" => alone(Command::Status),
        "new" => alone(Command::New),
        "help" => alone(Command::Help),
        "exit" => alone(Command::Exit),
        _ => Err(Error::usage(format!("unknown command /{name}"))
            .with_hint("list commands with /help, or start with a space to send it as a message")),
    })
}

fn unexpected_argument(name: &str) -> Error {
    Error::usage(format!("/{name} takes no argument")).with_hint("start with a space to send it as a message")
}

/// Runs a slash command.
pub(super) fn run(app: &mut App, command: Command) -> Result<(), Error> {
    match command {
        Command::Save(description) => context::save::run(context::save::Args::with_description(description), app),
        Command::Restore(session) => context::restore::run(context::restore::Args::for_session(session), app),
        Command::Compact => context::compact::run(context::compact::Args::default(), app),
        Command::History => context::history::run(context::history::Args::default(), app),
        Command::Status => status::run(status::Args::for_agent(app.agent()), app),
        Command::New => {
            start::start_new(app)?;
            app.stderr.line("new conversation");
            Ok(())
        }
        Command::Help => COMMANDS.iter().try_for_each(|(name, argument, what)| {
            let command = format!("{name} {argument}");
            writeln!(app.stdout, "{command:<22}  {what}")
        }),
        Command::Exit => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Option<Command> {
        parse(line)?.ok()
    }

    #[test]
    fn lines_with_a_slash_are_commands() {
        assert_eq!(command("/save before  lunch "), Some(Command::Save(Some("before  lunch".into()))));
        assert_eq!(command("/save"), Some(Command::Save(None)));
        assert_eq!(command("/restore\t2"), Some(Command::Restore("2".into())));
        assert_eq!(command("/exit"), Some(Command::Exit));
    }

    #[test]
    fn every_command_that_is_listed_is_known() {
        for (name, argument, _) in COMMANDS {
            assert!(command(format!("{name} {argument}").trim()).is_some(), "{name}");
        }
    }

    #[test]
    fn a_slip_is_no_message_and_a_path_can_be_one() {
        for slip in ["/", "/etc/hosts is wrong", "/sav", "/restore", "/new one", "/Exit"] {
            assert!(parse(slip).is_some_and(|read| read.is_err()), "{slip}");
        }
        assert!(parse(" /etc/hosts is wrong").is_none() && parse("and/or").is_none());
    }
}
