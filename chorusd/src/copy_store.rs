//! `chorusd copy-store`, which `chorusctl store copy` runs: copies the store of a home to PostgreSQL or back, while no daemon
//! runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::Result;
use clap::Parser;

use crate::cli::{print_error, resolve_paths};

/// Copier of the store, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd copy-store")]
struct Args {
    /// `postgres` or `sqlite`
    #[arg(long, value_name = "KIND")]
    to: String,
    /// File with the URL of PostgreSQL
    #[arg(long, value_name = "FILE", conflicts_with = "url_env")]
    url_file: Option<PathBuf>,
    /// Environment variable with the URL of PostgreSQL
    #[arg(long, value_name = "NAME")]
    url_env: Option<String>,
    /// The socket of the daemon
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Copies the store if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "copy-store").then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd copy-store".into()).chain(arguments));
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

#[cfg(not(feature = "cluster"))]
fn run(args: &Args) -> Result<()> {
    resolve_paths(args.socket.as_deref())?;
    let what = "this build of chorusd has no PostgreSQL";
    Err(chorus_base::error::Error::new(chorus_proto::ErrorKind::Unsupported, what)
        .hint("build it with the feature `cluster`: cargo build --release -p chorusd --features cluster"))
}

#[cfg(feature = "cluster")]
fn run(args: &Args) -> Result<()> {
    use std::io::Write as _;
    use std::time::{Duration, Instant};

    use chorus_base::error::Error;
    use chorus_config::StoreKind;

    use crate::daemon::{StoreUrl, copy_store};

    let to = match &*args.to {
        "postgres" => StoreKind::Postgres,
        "sqlite" => StoreKind::Sqlite,
        other => return Err(Error::invalid(format!("unknown store `{other}`")).hint("`postgres` or `sqlite`")),
    };
    let url = match (&args.url_file, &args.url_env) {
        (Some(file), _) => {
            let file =
                std::path::absolute(file).map_err(|e| Error::io("cannot determine the working directory", &e))?;
            Some(StoreUrl::File(file))
        }
        (None, Some(variable)) => Some(StoreUrl::Env(variable.clone())),
        (None, None) => None,
    };
    let (mut last, mut reported_at) = (None, Instant::now());
    let mut report = |progress: chorus_store_copy::Progress| {
        let (phase, done, total) = (progress.phase, progress.done, progress.total);
        // A fiftieth of a phase, or a tenth of a second.
        let is_new = last.is_none_or(|(of, until)| of != phase || done >= until);
        if is_new || reported_at.elapsed() >= Duration::from_millis(100) {
            (last, reported_at) = (Some((phase, done + total / 50 + 1)), Instant::now());
            let unit = if phase == chorus_store_copy::Phase::Sessions { "sessions" } else { "rows" };
            let phase = phase as usize;
            let line = format!(r#"{{"phase":{phase},"done":{done},"total":{total},"unit":"{unit}"}}"#);
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    };
    let copied = copy_store(&resolve_paths(args.socket.as_deref())?, to, url, &mut report)?;
    let copied = serde_json::to_string(&copied).map_err(|e| Error::internal(e.to_string()))?;
    writeln!(std::io::stdout(), "{copied}").map_err(|e| Error::io("cannot print the result", &e))
}
