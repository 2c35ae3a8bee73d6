//! The command line: global options and parsing. The subcommands are defined in [`crate::commands`]; clap shows their
//! doc comments as help.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser};

use crate::commands::context::history;
use crate::commands::{Command, status};
use crate::ui::stdout::OutputFormat;
use crate::ui::terminal::ColorWhen;

const AFTER_HELP: &str = "\
Examples:
  chorusctl tour                                  see the whole story in ten seconds
  chorusctl agent init atlas                      make an agent
  chorusctl send 'what is left to do?'            ask its model
  chorusctl session import transcript.jsonl       bring a conversation along
  chorusctl context history                       list what was saved
  chorusctl context restore latest                go on where it stopped

If no daemon runs, chorusctl starts one.";

/// Talk to chorusd, which keeps the conversations of AI agents.
#[derive(Debug, Parser)]
#[command(name = "chorusctl", version, after_help = AFTER_HELP, propagate_version = false)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every verb.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// The agent that is meant [also: $CHORUS_AGENT]
    #[arg(long, global = true, value_name = "NAME")]
    pub agent: Option<String>,
    /// Shape of the output
    #[arg(long, global = true, value_enum, value_name = "text|json|jsonl")]
    #[arg(default_value_t, hide_default_value = true, hide_possible_values = true)]
    pub format: OutputFormat,
    /// The same as --format json
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon's socket [also: $CHORUS_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Do not start a daemon where none runs
    #[arg(long, global = true)]
    pub no_autostart: bool,
    /// Longest wait for the daemon, for example 10s
    #[arg(long, global = true, value_name = "DURATION", value_parser = timeout)]
    pub timeout: Option<Duration>,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "auto|always|never")]
    #[arg(default_value_t, hide_default_value = true, hide_possible_values = true)]
    pub color: ColorWhen,
    /// Say nothing but errors and what was asked for
    #[arg(long, global = true)]
    pub quiet: bool,
}

impl GlobalOptions {
    /// Returns the output format; `--json` stands for `--format json`.
    #[must_use]
    pub fn output_format(&self) -> OutputFormat {
        if self.json && self.format == OutputFormat::Text { OutputFormat::Json } else { self.format }
    }
}

/// Returns the complete clap command with all subcommands built.
#[must_use]
pub fn command_tree() -> clap::Command {
    let mut tree = Cli::command();
    tree.build();
    tree
}

/// Parses the common forms of `status` and `context history` by hand. Shell prompts and scripts run them often, and
/// building the complete clap command takes longer than the request. Returns `None` for everything else, including
/// errors; the caller then uses clap.
#[must_use]
pub fn parse_fast_path(mut arguments: impl Iterator<Item = OsString>) -> Option<Cli> {
    const HISTORY: &[&str] = &["context", "history"];
    let mut global = GlobalOptions::default();
    let mut history = history::Args::default();
    let mut words = Vec::with_capacity(2);
    while let Some(argument) = arguments.next() {
        match argument.to_str()? {
            "--json" if !global.json => global.json = true,
            "--no-autostart" if !global.no_autostart => global.no_autostart = true,
            "--socket" if global.socket.is_none() => {
                global.socket = Some(arguments.next().filter(|path| !path.to_string_lossy().starts_with('-'))?.into());
            }
            "--all-agents" if words == HISTORY && !history.all_agents => history.all_agents = true,
            "--page" if words == HISTORY && history.page.is_none() => {
                history.page = Some(parse_page_number(&arguments.next()?)?)
            }
            "status" => words.push("status"),
            "context" => words.push("context"),
            "history" => words.push("history"),
            _ => return None,
        }
    }
    let command = match words.as_slice() {
        ["status"] => Command::Status(status::Args::default()),
        HISTORY => Command::Context(history.into()),
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
        Ok(Duration::ZERO) => Err("a timeout is longer than nothing".to_owned()),
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
            .chain(["context history", "context history --all-agents --page 2", "--json context --page 01 history"])
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
            "history",
            "history context",
            "context status history",
            "context history --page",
            "context history --page 0",
            "context history --page +1",
            "context history --page 18446744073709551616",
            "context history atlas",
        ] {
            assert!(by_hand(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_timeout_of_nothing_is_refused() {
        assert!(timeout("0s").is_err() && timeout("soon").is_err());
        assert_eq!(timeout("1m 30s"), Ok(Duration::from_secs(90)));
    }
}
