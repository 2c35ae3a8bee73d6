//! `chorusctl completions`: prints a shell's completion script.

use clap::ValueEnum;
use clap_complete::env::Shells;

use crate::app::App;
use crate::complete::COMPLETE_VARIABLE;
use crate::error::Error;

const AFTER_HELP: &str = "\
To install it:
  bash  chorusctl completions bash > ~/.local/share/bash-completion/completions/chorusctl
  zsh   chorusctl completions zsh > ~/.zfunc/_chorusctl       (with ~/.zfunc in fpath, before compinit)
  fish  chorusctl completions fish > ~/.config/fish/completions/chorusctl.fish

The script calls chorusctl, so it never goes stale.";

/// Generate shell completions
///
/// The script asks a running daemon for names of agents and sessions; it does not start one.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    shell: Shell,
}

/// Shells there are completions for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.stdout.text(&completion_script(args.shell))
}

/// Returns the completion script for `shell`.
#[must_use]
pub fn completion_script(shell: Shell) -> String {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(name) {
        // Writing into memory does not fail.
        let _ = shell.write_registration(COMPLETE_VARIABLE, "chorusctl", "chorusctl", "chorusctl", &mut script);
    }
    format!("{}\n", String::from_utf8_lossy(&script).trim())
}
