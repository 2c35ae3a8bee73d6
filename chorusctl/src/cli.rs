//! The command line: global options and parsing. The subcommands are defined in [`crate::commands`]; clap shows their
//! doc comments as help.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand as _};

use crate::commands::context::history;
use crate::commands::{Command, help_groups, search, status};
use crate::conversation_select;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::terminal::ColorWhen;

const AFTER_HELP: &str = "\
Examples:
  chorusctl tour                        run a ten-second demo
  chorusctl capture on                  keep what coding agents say
  chorusctl history                     list saved conversations
  chorusctl search redis cache          find messages
  chorusctl restore latest              continue where you left off
  chorusctl send 'what is left to do?'  ask the agent's model

chorusctl starts the daemon if none is running.
Everything is in ~/.chorus-agents, or in $CHORUS_HOME.";

/// Save, search and resume AI agents' conversations
#[derive(Debug, Parser)]
#[command(name = "chorusctl", bin_name = "chorusctl", version, after_help = AFTER_HELP, propagate_version = false)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

/// The program without its subcommands.
#[derive(Debug, Parser)]
#[command(name = "chorusctl", disable_help_subcommand = true)]
struct RootOptions {
    #[command(flatten)]
    global: GlobalOptions,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Agent to use [env: CHORUS_AGENT]
    #[arg(long, global = true, value_name = "NAME")]
    pub agent: Option<String>,
    /// Conversation [env: CHORUS_CONVERSATION]
    #[arg(short = 'C', long, global = true, value_name = "NAME")]
    pub conversation: Option<String>,
    /// Output format
    #[arg(long, global = true, value_enum, value_name = "text|json|jsonl")]
    #[arg(default_value_t, hide_default_value = true, hide_possible_values = true)]
    pub format: OutputFormat,
    /// The same as --format json
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon's socket [env: CHORUS_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Machine to use, over ssh [env: CHORUS_HOST]
    #[arg(long, global = true, value_name = "[USER@]HOST")]
    pub host: Option<String>,
    /// Do not start the daemon automatically
    #[arg(long, global = true)]
    pub no_autostart: bool,
    /// How long to wait for the daemon, e.g. 10s
    #[arg(long, global = true, value_name = "DURATION", value_parser = timeout)]
    pub timeout: Option<Duration>,
    /// When to use color
    #[arg(long, global = true, value_enum, value_name = "auto|always|never")]
    #[arg(default_value_t, hide_default_value = true, hide_possible_values = true)]
    pub color: ColorWhen,
    /// Print only results and errors
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Do not show long output in a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
}

impl GlobalOptions {
    /// Returns the output format; `--json` stands for `--format json`.
    #[must_use]
    pub fn output_format(&self) -> OutputFormat {
        if self.json && self.format == OutputFormat::Text { OutputFormat::Json } else { self.format }
    }
}

/// Returns true if a command line that cannot be parsed asks for JSON.
#[must_use]
pub fn asks_for_json(arguments: &[String]) -> bool {
    let options: Vec<&str> = arguments.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let named = options.windows(2).any(|pair| matches!(pair, ["--format", "json" | "jsonl"]));
    named || options.iter().any(|word| matches!(*word, "--json" | "--format=json" | "--format=jsonl"))
}

/// Says in plain words why the value of a number is wrong; `None` for other errors.
#[must_use]
pub fn number_error(error: &clap::Error) -> Option<Error> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| error.get(kind).map(ToString::to_string);
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let name = argument.split(' ').next()?.trim_matches(['[', ']', '<', '>', '.']).to_owned();
    let cause = std::error::Error::source(error)?.to_string();
    if let Some((_, range)) = cause.split_once(" is not in ") {
        let (least, most) = range.split_once("..=").or_else(|| range.split_once(".."))?;
        let most = most.parse::<u64>().ok().filter(|most| *most < u64::from(u32::MAX));
        let due = match most {
            Some(most) => format!("{name} must be {least} to {most}"),
            None => format!("{name} must be at least {least}"),
        };
        return Some(Error::usage(due).with_hint(format!("for example {least}")));
    }
    let is_number = cause.contains("invalid digit") || cause.contains("integer");
    is_number
        .then(|| Error::usage(format!("not a number: {value}")).with_hint(format!("{name} is a number, for example 3")))
}

/// Returns the clap command. The arguments of its subcommands are built when they are parsed.
#[must_use]
pub fn command() -> clap::Command {
    help_groups::group_subcommands(Cli::command())
}

/// Returns the complete clap command with all subcommands built.
#[must_use]
pub fn command_tree() -> clap::Command {
    let mut tree = command();
    tree.build();
    tree
}

/// Parses the arguments of the program, of which the first is its name.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = arguments.collect();
    let cli = parse_any_command(arguments.clone())?;
    match &cli.command {
        Command::Search(search)
            if search.words.is_empty() && search.action.is_none() && !search::can_be_interactive(&cli.global) =>
        {
            Err(missing_query_error(arguments))
        }
        _ => Ok(cli),
    }
}

/// Returns the error for a search without a query that cannot be interactive.
fn missing_query_error(arguments: Vec<OsString>) -> clap::Error {
    let search = search::Args::augment_args(clap::Command::new("search"));
    let search = search.mut_arg("words", |words| words.required(true));
    let mut command = RootOptions::command().subcommand(search);
    let missing = || clap::Error::new(ErrorKind::MissingRequiredArgument);
    command.try_get_matches_from_mut(arguments).map_or_else(|error| error, |_| missing())
}

fn parse_any_command(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    if let Some(cli) = parse_named_command(&arguments) {
        return Ok(cli);
    }
    parse_with_all_commands(arguments.clone()).or_else(|error| {
        let separated = search::separate_excluded_words(&error, &command_tree(), &arguments);
        let separated = separated.or_else(|| search::separate_model_word(&error, &command_tree(), &arguments));
        separated.and_then(|arguments| parse_named_command(&arguments)).ok_or(error)
    })
}

fn parse_with_all_commands(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    // Only the help shows the groups.
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    let mut command = if arguments.len() <= 1 || arguments.iter().any(is_help) { command() } else { Cli::command() };
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    conversation_select::check_option(&matches)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Parses with a clap command that has only the subcommand that the arguments name, because clap copies the global
/// options into every subcommand that there is. Returns `None` if that fails: the caller then uses the complete command,
/// whose errors and help know all subcommands.
fn parse_named_command(arguments: &[OsString]) -> Option<Cli> {
    let all = Command::augment_subcommands(clap::Command::new("chorusctl"));
    let named = arguments.iter().skip(1).find_map(|word| all.find_subcommand(word))?;
    let mut matches = RootOptions::command().subcommand(named.clone()).try_get_matches_from(arguments).ok()?;
    conversation_select::check_option(&matches).ok()?;
    Cli::from_arg_matches_mut(&mut matches).ok()
}

/// Parses the common forms of `status`, `history` and `search` by hand. Shell prompts and scripts run them often, and building the
/// complete clap command takes longer than the request. Returns `None` for everything else, including errors; the caller
/// then uses clap.
#[must_use]
pub fn parse_fast_path(mut arguments: impl Iterator<Item = OsString>) -> Option<Cli> {
    let mut global = GlobalOptions::default();
    let mut history = history::Args::default();
    let mut words = Vec::with_capacity(2);
    let mut search = search::Args::default();
    let is_history = |words: &[&str]| words == ["history"] || words == ["context", "history"];
    while let Some(argument) = arguments.next() {
        match argument.to_str()? {
            "--json" if !global.json => global.json = true,
            "--no-autostart" if !global.no_autostart => global.no_autostart = true,
            "--socket" if global.socket.is_none() => {
                global.socket = Some(arguments.next().filter(|path| !path.to_string_lossy().starts_with('-'))?.into());
            }
            "--all-agents" if is_history(&words) && !history.all_agents => history.all_agents = true,
            "--page" if is_history(&words) && history.page.is_none() => {
                history.page = Some(parse_page_number(&arguments.next()?)?)
            }
            "search" if words.is_empty() => words.push("search"),
            // A subcommand.
            "model" if words == ["search"] && search.words.is_empty() => return None,
            word if words == ["search"] && !word.starts_with('-') => search.words.push(word.to_owned()),
            "status" => words.push("status"),
            "context" => words.push("context"),
            "history" => words.push("history"),
            _ => return None,
        }
    }
    let command = match words.as_slice() {
        ["status"] => Command::Status(status::Args::default()),
        ["history"] => Command::History(history),
        ["search"] if !search.words.is_empty() => Command::Search(search),
        ["context", "history"] => Command::Context(history.into()),
        _ => return None,
    };
    Some(Cli { global, command })
}

/// Parses a positive number that consists of ASCII digits only.
fn parse_page_number(text: &OsStr) -> Option<u64> {
    let text = text.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok().filter(|number| *number > 0)
}

fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be greater than zero".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; for example 10s or 1m30s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        command_tree().debug_assert();
    }

    #[test]
    fn global_options_may_come_last() {
        let cli = Cli::try_parse_from(["chorusctl", "context", "save", "before lunch", "--agent", "atlas", "--json"]);
        let global = cli.map(|cli| cli.global).unwrap_or_default();
        assert_eq!((global.agent.as_deref(), global.output_format()), (Some("atlas"), OutputFormat::Json));
    }

    #[test]
    fn reading_by_hand_is_reading_the_same() {
        let by_hand = |line: &str| parse_fast_path(line.split(' ').map(OsString::from));
        for line in ["status", "status --json", "--json status", "--socket /s --no-autostart status --json"]
            .into_iter()
            .chain([
                "history",
                "history --page 3",
                "context history",
                "context history --all-agents --page 2",
                "--json context --page 01 history",
                "search drop redis",
                "--json search status --socket /s search history",
            ])
        {
            let full = Cli::try_parse_from(std::iter::once("chorusctl").chain(line.split(' ')));
            assert_eq!(format!("{:?}", by_hand(line)), format!("{:?}", full.ok()), "{line}");
        }
        for line in [
            "",
            "status atlas",
            "status status",
            "--json",
            "status --help",
            "status --socket",
            "status --socket -x",
            "status --page 2",
            "--all-agents context history",
            "context --page 2 history",
            "context",
            "history history",
            "history context",
            "list",
            "context status history",
            "context history --page",
            "context history --page 0",
            "context history --page +1",
            "context history --page 18446744073709551616",
            "context history atlas",
            "search",
            "search redis -cache",
            "search redis --limit 5",
            "search redis -- x",
            "status search",
            "context search x",
        ] {
            assert!(by_hand(line).is_none(), "{line}");
        }
    }

    #[test]
    fn parsing_with_one_subcommand_is_parsing_with_all() {
        for line in [
            "show 1 --json",
            "--agent status history --long",
            "context show --last 3",
            "list",
            "ls --all-agents",
            "rm 3",
        ] {
            let words = || std::iter::once("chorusctl").chain(line.split(' ')).map(OsString::from);
            let full = Cli::try_parse_from(words());
            assert_eq!(format!("{:?}", parse(words()).ok()), format!("{:?}", full.ok()), "{line}");
        }
        let named = |line: &str| parse_named_command(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(named("chorusctl context show").is_some() && named("chorusctl show --help").is_none());
        assert!(named("chorusctl nothing").is_none() && named("chorusctl send").is_some());
    }

    #[test]
    fn a_search_excludes_words_without_quotes() {
        let searched = |line: &str| {
            let words = std::iter::once("chorusctl").chain(line.split(' ')).map(OsString::from);
            parse(words).map(|cli| format!("{:?} {:?}", cli.global, cli.command)).map_err(|error| error.kind())
        };
        for (typed, separated) in [
            ("search redis -cache", "search redis -- -cache"),
            ("search -cache redis --limit 5 -pool", "search redis --limit 5 -- -cache -pool"),
            ("search redis -nginx -hash -n 5", "search redis -n 5 -- -nginx -hash"),
            ("-C review --json search redis -cache -- -x", "-C review --json search redis -- -cache -x"),
            ("search redis -über", "search redis -- -über"),
        ] {
            assert!(searched(separated).is_ok(), "{separated}");
            assert_eq!(searched(typed), searched(separated), "{typed}");
        }
        for (typed, error) in [
            ("search redis --cache", ErrorKind::UnknownArgument),
            ("search redis -x", ErrorKind::UnknownArgument),
            ("search redis -n0", ErrorKind::ValueValidation),
            ("search redis --tag -cache x", ErrorKind::UnknownArgument),
            ("search redis -cache --help", ErrorKind::UnknownArgument),
            ("search -h", ErrorKind::DisplayHelp),
            ("history redis -cache", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(searched(typed), Err(error), "{typed}");
        }
    }

    #[test]
    fn a_timeout_of_nothing_is_refused() {
        assert!(timeout("0s").is_err() && timeout("soon").is_err());
        assert_eq!(timeout("1m 30s"), Ok(Duration::from_secs(90)));
    }
}
