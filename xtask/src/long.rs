//! `cargo xtask long`: the tests that strike at a sample, at every place there is.

use crate::error::{Error, Result};
use crate::shell::Shell;
use crate::suites::{self, Suite};
use crate::switches::LONG;

/// Run the tests that take more rounds on request, with many rounds
///
/// All of them take hours. A variable that is set already keeps its value, for example CHORUS_CRASH_ROUNDS=1000. With -n the
/// commands name every module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only modules that contain one of these, for example `crash` or `system_calls` [default: all]
    #[arg(value_name = "MODULE")]
    modules: Vec<String>,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let variables: Vec<&str> = LONG.iter().map(|switch| switch.name).collect();
    let all = suites::reading(&shell.root, &variables)?;
    let suites = chosen(&all, &args.modules)?;
    for mut step in suites::commands(shell, &suites) {
        for switch in &LONG {
            if std::env::var_os(switch.name).is_none() {
                step = step.env(switch.name, switch.long);
            }
        }
        shell.run(&step)?;
    }
    Ok(())
}

fn chosen(all: &[Suite], wanted: &[String]) -> Result<Vec<Suite>> {
    let fits = |suite: &&Suite| wanted.is_empty() || wanted.iter().any(|word| suite.module.contains(word.as_str()));
    let suites: Vec<Suite> = all.iter().filter(fits).cloned().collect();
    if suites.is_empty() {
        let known: Vec<&str> = all.iter().map(|suite| &*suite.module).collect();
        return Err(Error::new(format!("no long test in a module like {}", wanted.join(", ")))
            .hint(format!("use a part of one of: {}", known.join(", "))));
    }
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn the_suites_of_every_crate_are_found() {
        let all = suites::reading(&root().unwrap(), &["CHORUS_FAULTS"]).unwrap();
        assert!(all.iter().any(|suite| suite.end_to_end), "{all:?}");
        assert!(all.iter().any(|suite| !suite.end_to_end && suite.package == "chorus-redact"), "{all:?}");
        let error = chosen(&all, &["nothing_of_that_name".into()]).unwrap_err().to_string();
        assert!(error.contains("hint: use a part of one of: "), "{error}");
    }

    #[test]
    fn what_bless_runs_is_found() {
        let all = suites::reading(&root().unwrap(), &["CHORUS_BLESS"]).unwrap();
        assert!(!all.is_empty() && all.iter().all(|suite| suite.end_to_end), "{all:?}");
    }
}
