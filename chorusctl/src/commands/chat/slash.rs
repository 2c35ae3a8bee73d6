//! Slash commands of a chat. They are the subcommands of the command line, run for the chat's agent.

use std::ffi::OsString;

use super::{command_names, start, words};
use crate::app::App;
use crate::error::Error;
use crate::{cli, commands};

/// A parsed slash command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Lists the commands, or shows the help of one, or of a subcommand of it.
    Help(Option<(&'static SlashCommand, Vec<String>)>),
    New,
    Exit,
    /// Runs `chorusctl` with these arguments.
    Run {
        arguments: Vec<String>,
        switches_context: bool,
    },
}

impl Command {
    /// Returns true if later messages belong to another context.
    #[must_use]
    pub(super) fn switches_context(&self) -> bool {
        matches!(self, Self::New | Self::Run { switches_context: true, .. })
    }
}

/// A slash command in the list of all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlashCommand {
    /// With the slash.
    pub name: &'static str,
    /// What follows it, in the notation of the help.
    pub argument: &'static str,
    pub about: &'static str,
    pub action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Help,
    New,
    Exit,
    /// Runs this subcommand. `{agent}` stands for the chat's agent.
    Run(&'static str, Rest),
    /// The same; later messages belong to another context.
    Switch(&'static str, Rest),
    /// Shows messages of the live conversation: the last ones, or one by its number.
    Show,
}

/// How the rest of the line becomes arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    None,
    /// Words, quoted as in a shell.
    Words,
    /// One text.
    Text,
    /// Words, of which there must be one.
    Required,
    /// A text that must not be empty.
    RequiredText,
}

const fn command(name: &'static str, argument: &'static str, about: &'static str, action: Action) -> SlashCommand {
    SlashCommand { name, argument, about, action }
}

/// All commands, in the groups of the help.
pub(super) const GROUPS: [(&str, &[SlashCommand]); 4] = [
    (
        "This conversation",
        &[
            command(
                "/save",
                "[DESCRIPTION]",
                "save a checkpoint (the conversation continues)",
                Action::Run("save", Rest::Text),
            ),
            command("/show", "[N]", "show the last messages, or message N in full", Action::Show),
            command(
                "/undo",
                "[N|--redo]",
                "undo the last turn or the last N, or restore them",
                Action::Switch("undo", Rest::Words),
            ),
            command(
                "/compact",
                "[--undo]",
                "save, then continue from a summary",
                Action::Switch("context compact", Rest::Words),
            ),
            command(
                "/pin",
                "FACT",
                "pin a fact, which the model always sees",
                Action::Run("context pin", Rest::RequiredText),
            ),
            command("/unpin", "N", "remove a pinned fact", Action::Run("context unpin", Rest::Required)),
            command(
                "/clear",
                "",
                "discard the conversation (asks first)",
                Action::Switch("context clear", Rest::Words),
            ),
            command("/new", "", "save, then start a new conversation", Action::New),
        ],
    ),
    (
        "Saved conversations",
        &[
            command("/history", "[OPTIONS]", "list saved conversations", Action::Run("history", Rest::Words)),
            command("/search", "QUERY", "find messages in conversations", Action::Run("search", Rest::Required)),
            command(
                "/conversations",
                "[COMMAND]",
                "list the agent's live conversations, or create and close them",
                Action::Run("conversations", Rest::Words),
            ),
            command("/restore", "SESSION", "load a saved conversation", Action::Switch("restore", Rest::Required)),
            command(
                "/resume",
                "SESSION",
                "start a new conversation from a saved one's summary",
                Action::Switch("resume", Rest::Required),
            ),
            command(
                "/branch",
                "SESSION [--at N]",
                "continue a saved conversation from an earlier message",
                Action::Switch("session branch", Rest::Required),
            ),
            command(
                "/export",
                "SESSION [OPTIONS]",
                "export a conversation (@ is this one): --as md|html, --output FILE",
                Action::Run("export", Rest::Required),
            ),
        ],
    ),
    (
        "The agent",
        &[
            command(
                "/model",
                "[NAME]",
                "show or change the agent's model",
                Action::Run("agent config {agent} model", Rest::Words),
            ),
            command("/models", "", "list models", Action::Run("models", Rest::Words)),
            command(
                "/memory",
                "[add TEXT]",
                "list what the agent always remembers, or add to it",
                Action::Run("memory", Rest::Words),
            ),
            command(
                "/notes",
                "[COMMAND]",
                "list facts, decisions and open tasks, or change them",
                Action::Run("notes", Rest::Words),
            ),
            command(
                "/usage",
                "[OPTIONS]",
                "show the agent's token usage and cost",
                Action::Run("usage {agent}", Rest::Words),
            ),
            command("/status", "", "show the daemon and this agent", Action::Run("status {agent}", Rest::None)),
            command(
                "/permissions",
                "[COMMAND]",
                "list permission profiles; `rules` lists what you allowed",
                Action::Run("permissions", Rest::Words),
            ),
            command(
                "/schedule",
                "[COMMAND]",
                "list the agent's schedules, or change them",
                Action::Run("schedule", Rest::Words),
            ),
            command("/tasks", "[COMMAND]", "list the agent's background commands", Action::Run("tasks", Rest::Words)),
            command(
                "/approvals",
                "[COMMAND]",
                "list and answer pending approvals",
                Action::Run("approvals", Rest::Words),
            ),
        ],
    ),
    (
        "The chat",
        &[
            command("/help", "[COMMAND]", "list these commands, or show the help of one", Action::Help),
            command("/exit", "", "exit (also: exit, quit, Ctrl-D)", Action::Exit),
        ],
    ),
];

/// What the help says below the commands.
const NOTES: &str = "\
A word @FILE attaches that file (@\"my file\" if its name has spaces); \\@ writes a literal @.
A line that ends in \\ continues in the next one. Start a line with a space to send it as a message.
Ctrl-C cancels the running turn.";

/// Returns all commands in the order of the help.
pub(super) fn all() -> impl Iterator<Item = &'static SlashCommand> {
    GROUPS.iter().flat_map(|(_, commands)| *commands)
}

/// Parses a line; `None` if it is a message.
#[must_use]
pub(super) fn parse(line: &str) -> Option<Result<Command, Error>> {
    let rest = line.strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some(match find(name) {
        Some(found) => parse_argument(found, argument.trim()),
        None => Err(unknown_command(name)),
    })
}

fn find(name: &str) -> Option<&'static SlashCommand> {
    let name = match name {
        "quit" | "q" => "exit",
        "list" | "ls" => "history",
        "?" | "h" => "help",
        name => name,
    };
    all().find(|command| command.name.strip_prefix('/') == Some(name))
}

fn unknown_command(name: &str) -> Error {
    let near = all()
        .map(|command| (strsim::damerau_levenshtein(command.name.trim_start_matches('/'), name), command.name))
        .min()
        .filter(|(distance, _)| *distance <= 2 && !name.is_empty());
    let meant = near.map(|(_, name)| format!("did you mean {name}? ")).unwrap_or_default();
    Error::usage(format!("unknown command /{name}"))
        .with_hint(format!("{meant}list commands with /help, or start with a space to send it as a message"))
}

fn parse_argument(of: &'static SlashCommand, argument: &str) -> Result<Command, Error> {
    let (path, rest, switches_context) = match of.action {
        Action::Help if argument.is_empty() => return Ok(Command::Help(None)),
        Action::Help => {
            let mut words = argument.trim_start_matches('/').split_whitespace();
            let name = words.next().unwrap_or_default();
            let below: Vec<String> = words.map(str::to_owned).collect();
            let found = find(name).ok_or_else(|| unknown_command(name))?;
            let path = [command_path(found).unwrap_or_default().split(' ').map(str::to_owned).collect(), below.clone()];
            if !below.is_empty() && subcommand_path(&path.concat()).len() < path.concat().len() {
                return Err(Error::usage(format!("no help for {} {}", found.name, below.join(" ")))
                    .with_hint(format!("see: /help {name}")));
            }
            return Ok(Command::Help(Some((found, below))));
        }
        Action::New | Action::Exit if !argument.is_empty() => return Err(unexpected_argument(of)),
        Action::New => return Ok(Command::New),
        Action::Exit => return Ok(Command::Exit),
        Action::Show if argument.is_empty() => ("show --last 10", Rest::None, false),
        Action::Show if argument.bytes().all(|byte| byte.is_ascii_digit()) => ("show --at", Rest::Words, false),
        Action::Show => ("show", Rest::Words, false),
        Action::Run("memory", _) if argument.is_empty() => ("memory list", Rest::None, false),
        Action::Run(path, rest) => (path, rest, false),
        Action::Switch(path, rest) => (path, rest, true),
    };
    let mut arguments: Vec<String> = path.split(' ').map(str::to_owned).collect();
    match rest {
        Rest::None if argument.is_empty() => {}
        Rest::None => return Err(unexpected_argument(of)),
        Rest::Required | Rest::RequiredText if argument.is_empty() => return Err(missing_argument(of)),
        Rest::Text | Rest::RequiredText => {
            // A text that begins with a hyphen is no option.
            arguments
                .extend((!argument.is_empty()).then(|| ["--".to_owned(), argument.to_owned()]).into_iter().flatten());
        }
        Rest::Words | Rest::Required => arguments.extend(split_words(of, argument)?),
    }
    Ok(Command::Run { arguments, switches_context })
}

/// Splits the rest of a line. What follows `/memory add` is one text unless it is quoted or has options.
fn split_words(of: &SlashCommand, argument: &str) -> Result<Vec<String>, Error> {
    if of.name == "/memory"
        && let Some(text) = argument.strip_prefix("add ").map(str::trim)
        && !text.starts_with(['"', '\'', '-'])
        && !text.contains(" --")
    {
        return Ok(vec!["add".to_owned(), text.to_owned()]);
    }
    words::split(argument).ok_or_else(|| {
        Error::usage("a quotation mark is not closed").with_hint("close it, or put a backslash before it")
    })
}

fn missing_argument(of: &SlashCommand) -> Error {
    let failure = Error::usage(format!("{} needs {}", of.name, of.argument));
    match of.argument.starts_with("SESSION") {
        true => failure.with_hint(format!("list sessions with /history, then use {0} latest or {0} NUMBER", of.name)),
        false => failure.with_hint(format!("see: /help {}", of.name.trim_start_matches('/'))),
    }
}

fn unexpected_argument(of: &SlashCommand) -> Error {
    Error::usage(format!("{} takes no argument", of.name)).with_hint("start with a space to send it as a message")
}

/// Runs a slash command.
pub(super) fn run(app: &mut App, command: Command) -> Result<(), Error> {
    match command {
        Command::Run { arguments, .. } => run_subcommand(app, arguments),
        Command::New => {
            start::start_new(app)?;
            app.stderr.line("new conversation");
            Ok(())
        }
        Command::Help(None) => print_help(app),
        Command::Help(Some((of, below))) => print_command_help(app, of, &below),
        Command::Exit => Ok(()),
    }
}

/// Parses and runs the arguments as `chorusctl` would, for the chat's agent.
fn run_subcommand(app: &mut App, arguments: Vec<String>) -> Result<(), Error> {
    let agent = app.agent().unwrap_or_default();
    let named = command_names::rename(&format!("chorusctl {}", subcommand_path(&arguments).join(" ")));
    let arguments = arguments.into_iter().map(|word| if word == "{agent}" { agent.clone() } else { word });
    let program = std::iter::once("chorusctl".to_owned());
    match cli::parse(program.chain(arguments).map(OsString::from)) {
        Ok(parsed) => {
            // What an earlier command needed does not hold for this one.
            app.needed_session = None;
            commands::run(parsed.command, app)
        }
        Err(error) if !error.use_stderr() => app.stdout.text(&error.to_string()),
        Err(error) => {
            if let Some(plain) = cli::number_error(&error) {
                return Err(plain);
            }
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(Error::usage(first).with_hint(format!("see: /help {}", named.trim_start_matches('/'))))
        }
    }
}

fn print_help(app: &mut App) -> Result<(), Error> {
    for (title, commands) in GROUPS {
        writeln!(app.stdout, "{title}:")?;
        for SlashCommand { name, argument, about, .. } in commands {
            let command = format!("{name} {argument}");
            app.stdout.text(&format!("  {command:<26}  "))?;
            app.stdout.sentence(30, about)?;
        }
        app.stdout.text("\n")?;
    }
    app.stdout.sentence(0, NOTES)
}

/// Returns the subcommand that a slash command runs; `None` if it runs none, or with the agent in between.
fn command_path(of: &SlashCommand) -> Option<&'static str> {
    match of.action {
        Action::Run(path, _) | Action::Switch(path, _) if !path.contains("{agent}") => Some(path),
        _ => None,
    }
}

/// Returns those of the first words that name a command of `chorusctl`.
fn subcommand_path(words: &[String]) -> Vec<String> {
    let tree = cli::command_tree();
    let mut command = &tree;
    let mut path = Vec::new();
    for word in words {
        let Some(found) = command.find_subcommand(word) else { break };
        path.push(word.clone());
        command = found;
    }
    path
}

fn print_command_help(app: &mut App, of: &SlashCommand, below: &[String]) -> Result<(), Error> {
    if below.is_empty() {
        writeln!(app.stdout, "{}: {}", format!("{} {}", of.name, of.argument).trim_end(), of.about)?;
    }
    let Some(path) = command_path(of) else { return Ok(()) };
    let path = std::iter::once(path).chain(below.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let help = command_help(&path, app.stdout.width());
    app.stdout.text(&format!("\n{}", command_names::rename(&help)))
}

/// Returns the help of a subcommand without what every command has.
fn command_help(path: &str, width: Option<usize>) -> String {
    let mut command = cli::command_tree();
    for word in path.split(' ') {
        let Some(found) = command.find_subcommand(word).cloned() else { break };
        command = found;
    }
    let everywhere = |argument: &clap::Arg| argument.is_global_set() || argument.get_id() == "help";
    command = command.mut_args(|argument| if everywhere(&argument) { argument.hide(true) } else { argument });
    if let Some(width) = width {
        command = command.term_width(width);
    }
    command.render_long_help().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Option<Vec<String>> {
        match parse(line)?.ok()? {
            Command::Run { arguments, .. } => Some(arguments),
            _ => None,
        }
    }

    #[test]
    fn lines_with_a_slash_are_commands() {
        let words = |line: &str| arguments(line).unwrap_or_default().join("|");
        assert_eq!(words("/search redis -cache"), "search|redis|-cache");
        assert_eq!(words("/save before  lunch "), "save|--|before  lunch");
        assert_eq!(words("/save"), "save");
        assert_eq!(words("/restore\t2"), "restore|2");
        assert_eq!(words("/show 16"), "show|--at|16");
        assert_eq!(words("/show"), "show|--last|10");
        assert_eq!(words("/memory add the port is 8080"), "memory|add|the port is 8080");
        assert_eq!(words("/export latest --as md --output 'a b.md'"), "export|latest|--as|md|--output|a b.md");
        assert_eq!(words("/model local/large"), "agent|config|{agent}|model|local/large");
        for exit in ["/exit", "/quit", "/q"] {
            assert_eq!(parse(exit).and_then(Result::ok), Some(Command::Exit));
        }
        assert!(parse("/restore 2").and_then(Result::ok).is_some_and(|command| command.switches_context()));
        assert!(parse("/pin a fact").and_then(Result::ok).is_some_and(|command| !command.switches_context()));
    }

    #[test]
    fn every_command_that_is_listed_is_known_to_the_command_line() {
        for SlashCommand { name, argument, .. } in all() {
            let example = if argument.starts_with('[') { "" } else { argument.split(' ').next().unwrap_or_default() };
            let example = if example == "N" { "1" } else { example };
            let line = format!("{name} {example}");
            let parsed = parse(line.trim()).and_then(Result::ok);
            assert!(parsed.is_some(), "{line}");
            if let Some(Command::Run { arguments, .. }) = parsed {
                let program = std::iter::once("chorusctl".to_owned());
                let words = program.chain(arguments.iter().map(|word| word.replace("{agent}", "a")));
                assert!(cli::parse(words.map(OsString::from)).is_ok(), "{arguments:?}");
            }
        }
    }

    #[test]
    fn the_help_of_a_subcommand_is_found() {
        let help = |line: &str| parse(line).and_then(Result::ok);
        for (line, below) in
            [("/help export", &[][..]), ("/help notes add", &["add"]), ("/help /memory list", &["list"])]
        {
            let found =
                help(line).is_some_and(|command| matches!(command, Command::Help(Some((_, words))) if words == below));
            assert!(found, "{line}");
        }
        assert!(help("/help notes nothing").is_none() && help("/help export notes").is_none());
        let words = ["notes", "add", "task", "x"].map(str::to_owned);
        assert_eq!(subcommand_path(&words), ["notes", "add"]);
    }

    #[test]
    fn a_slip_is_no_message_and_a_path_can_be_one() {
        for slip in ["/", "/etc/hosts is wrong", "/sav", "/restore", "/new one", "/Exit", "/restore 'x", "/help x"] {
            assert!(parse(slip).is_some_and(|read| read.is_err()), "{slip}");
        }
        assert!(parse(" /etc/hosts is wrong").is_none() && parse("and/or").is_none());
    }
}
