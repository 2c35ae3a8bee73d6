//! docs/CLI.md is what the commands say of themselves.

use std::collections::HashMap;
use std::fmt::Write as _;

use chorusctl::cli;
use clap::Command;

use super::compare;

const WIDTH: usize = 100;
const HEAD: &str = "\
# The command line

Every command of `chorusctl` as its own `--help` tells it. Generated: `cargo xtask bless`.
";

#[test]
fn the_reference_is_up_to_date() {
    let mut page = HEAD.to_owned();
    describe(&mut page, cli::command_tree(), &mut Vec::new(), &mut HashMap::new());
    compare("docs/CLI.md", &page);
}

/// Writes the section of one command and those of all below it. A command with the same help as an earlier one only refers
/// to that; `described` has the paths by help.
fn describe(page: &mut String, command: Command, path: &mut Vec<String>, described: &mut HashMap<String, String>) {
    path.push(command.get_name().to_owned());
    let mut shown = command.clone().term_width(WIDTH);
    if path.len() > 1 {
        // Told once, at the top.
        shown = shown.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    }
    let help = shown.render_long_help().to_string();
    let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
    let depth = "#".repeat(path.len().min(3) + 1);
    let name = path.join(" ");
    let without_usage =
        lines.iter().filter(|line| !line.starts_with("Usage: ")).copied().collect::<Vec<_>>().join("\n");
    // Writing into memory does not fail.
    _ = match described.get(&without_usage) {
        Some(same) => write!(page, "\n{depth} {name}\n\nThe same as `{same}`.\n"),
        None => write!(page, "\n{depth} {name}\n\n```text\n{}\n```\n", lines.join("\n")),
    };
    described.entry(without_usage).or_insert(name);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(page, below.clone(), path, described);
    }
    path.pop();
}
