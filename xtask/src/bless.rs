//! `cargo xtask bless`: regenerates the files that tests compare with what the programs say.

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};
use crate::suites;

const VARIABLE: &str = "CHORUS_BLESS";

pub fn run(shell: &Shell) -> Result<()> {
    let suites = suites::reading(&shell.root, &[VARIABLE])?;
    if suites.is_empty() {
        return Err(Error::new(format!("no test reads {VARIABLE}"))
            .hint("xtask/src/suites.rs looks for it in tests/ and chorusd/: tell it where those tests are now"));
    }
    for step in suites::commands(shell, &suites) {
        shell.run(&step.env(VARIABLE, "1"))?;
    }
    shell.run(&Step::new("git").args(["--no-pager", "diff", "--stat", "--", "completions", "docs"]))
}
