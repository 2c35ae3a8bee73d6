//! `cargo xtask fuzz`: what `.ci/run` does with a fuzzer, for as long as wanted.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};
use crate::workspace::{names, select};

/// Fuzz all targets, or some of them
///
/// Needs a nightly compiler and cargo-fuzz. The first build takes five minutes. New inputs are kept in fuzz/corpus/, what
/// fails in fuzz/artifacts/.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Targets, the names of fuzz/seeds/ [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long to fuzz each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let known = names(&shell.root.join("fuzz/seeds"), |path| {
        path.is_dir().then(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    })?;
    let targets = select("fuzz target", &args.targets, known)?;
    if !shell.dry_run && !shell.succeeds(&Step::new("cargo").args(["+nightly", "fuzz", "--version"])) {
        return Err(Error::new("`cargo +nightly fuzz` cannot be used")
            .hint("rustup toolchain install nightly && cargo install cargo-fuzz"));
    }
    for target in targets {
        let corpus = format!("fuzz/corpus/{target}");
        if !shell.dry_run {
            let directory = shell.root.join(Path::new(&corpus));
            fs::create_dir_all(&directory).map_err(|error| Error::file("create", &directory, &error))?;
        }
        shell.run(&step(&target, args.seconds))?;
    }
    Ok(())
}

fn step(target: &str, seconds: u32) -> Step {
    Step::new("cargo")
        .env("ASAN_OPTIONS", "detect_odr_violation=0")
        .args(["+nightly", "fuzz", "run", "--dev", target])
        .args([format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}")])
        .args(["--".to_owned(), format!("-max_total_time={seconds}"), "-timeout=25".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{read, root};

    #[test]
    fn it_is_what_ci_runs() {
        let script = read(&root().unwrap().join(".ci/run")).unwrap().replace("\\\n", "").replace('"', "");
        let script = script.split_whitespace().collect::<Vec<_>>().join(" ");
        let due = step("$target", 15).to_string().replace("=0 cargo", "=0 step cargo");
        assert!(script.contains(&due), "{due} is not in .ci/run");
    }
}
