//! `cargo xtask`: the chores of the workspace that are more than one plain command. CONTRIBUTING.md says when to use which.

mod bench;
mod bless;
mod chart;
mod dist;
mod error;
mod fuzz;
mod long;
mod new_verb;
mod profile;
mod retrieval;
mod shell;
mod suites;
mod switches;
mod words;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Result;
use shell::Shell;

/// Chores of the Chorus workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    /// Print the commands (of new-verb: the changes) without running them
    #[arg(short = 'n', long, global = true)]
    dry_run: bool,
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Regenerate the files that tests compare: completions, docs/CLI.md, docs/CONFIGURATION.md, docs/screens, docs/tour.svg, the schema
    Bless,
    /// Build the packages: a Debian package, a tarball and their checksums
    Dist(dist::Args),
    /// Fuzz all targets, or some of them
    Fuzz(fuzz::Args),
    /// Run all benches, or some of them
    Bench(bench::Args),
    /// Show where the time of an operation goes
    Profile(profile::Args),
    /// Run the tests that take more rounds on request, with many rounds
    Long(long::Args),
    /// Write the skeleton of a new verb: wire type, op, command, golden files, test
    NewVerb(new_verb::Args),
    /// Measure how well the search finds what answers a question
    Retrieval(retrieval::Args),
    /// Print the texts for users that have a phrase of xtask/words.txt
    Words,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody left to tell if standard error is closed.
            let _ = write!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let shell = Shell::new(workspace::root()?, cli.dry_run);
    match &cli.chore {
        Chore::Bless => bless::run(&shell),
        Chore::Dist(args) => dist::run(args, &shell),
        Chore::Fuzz(args) => fuzz::run(args, &shell),
        Chore::Bench(args) => bench::run(args, &shell),
        Chore::Profile(args) => profile::run(args, &shell),
        Chore::Long(args) => long::run(args, &shell),
        Chore::NewVerb(args) => new_verb::run(args, &shell),
        Chore::Retrieval(args) => retrieval::run(args, &shell),
        Chore::Words => words::run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
