//! `cargo xtask new-verb`: the skeleton of a verb in every place that a verb touches.

mod edit;
mod names;
mod plan;
mod snippets;

use std::fs;

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};

use names::Names;
use plan::Plan;

/// Write the skeleton of a new verb: wire type, op, command, golden files, test
///
/// What it writes compiles and does nothing. A place that it does not recognize is printed with the code that belongs there.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Group of the verb, a new one or one that there is: `trash` in `chorusctl trash empty`
    noun: String,
    /// What it does: `empty` in `chorusctl trash empty`
    verb: String,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let names = Names::new(&args.noun, &args.verb)?;
    let plan = Plan::new(&shell.root, &names)?;
    for (path, text) in &plan.files {
        let file = shell.root.join(path);
        shell.say(&format!("{} {path}", if file.exists() { "change" } else { "create" }));
        if !shell.dry_run {
            let directory = file.parent().unwrap_or(&shell.root);
            fs::create_dir_all(directory).map_err(|error| Error::file("create", directory, &error))?;
            fs::write(&file, text).map_err(|error| Error::file("write", &file, &error))?;
        }
    }
    let rust = plan.files.keys().filter(|path| path.ends_with(".rs"));
    shell.run(&Step::new("rustfmt").args(["--edition", "2024", "--config", "skip_children=true"]).args(rust))?;
    for (place, code) in &plan.by_hand {
        shell.say(&format!("\nby hand, in {place}:\n\n{code}"));
    }
    shell.say(&format!("\n{}", snippets::next_steps(&names)));
    Ok(())
}
