//! `chorusctl config check`: checks a configuration file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use serde_json::value::to_raw_value;

use super::offline;
use crate::app::App;
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Longest text on standard input.
const MAX_STDIN_BYTES: u64 = 16 << 20;

/// Check a configuration file
///
/// Reads the file as a daemon does when it starts, with the environment of this shell. An error names the line, the column and the key. `-`
/// reads standard input.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File [default: config.toml]
    #[arg(value_name = "FILE|-", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("config check")?;
    let is_named = args.file.is_some();
    if args.file.as_deref() == Some(Path::new("-")) {
        return check_stdin(app);
    }
    let file = match args.file {
        Some(file) => {
            let shown = file.display().to_string();
            std::fs::File::open(&file).map_err(|error| Error::for_file(&shown, &error))?;
            std::path::absolute(&file).map_err(|error| Error::for_file(&shown, &error))?
        }
        None => offline::find_file(app)?.path,
    };
    let checked = connect::read_config(app.global.socket.as_deref(), Some(&file))?;
    let path = sanitize::one_line(&checked.config.to_string_lossy());
    if app.stdout.format() != OutputFormat::Text {
        let found = json!({"path": checked.config, "exists": checked.exists, "providers": checked.providers});
        let json = to_raw_value(&found).map_err(chorus_proto::CallError::from)?;
        return app.stdout.json_line(&json);
    }
    if !checked.exists && !is_named {
        return app.stdout.status_line(&format!("{path} does not exist: every key has its default"));
    }
    app.stdout.status_line(&format!("{path} is valid"))
}

/// Checks the text on standard input.
fn check_stdin(app: &mut App) -> Result<(), Error> {
    const NAME: &str = "standard input";
    let failed = |error: io::Error| Error::for_file(NAME, &error);
    let mut file = tempfile::Builder::new().prefix("chorus-config-").suffix(".toml").tempfile().map_err(failed)?;
    let limit = MAX_STDIN_BYTES + 1;
    let copied = io::copy(&mut io::Read::take(io::stdin().lock(), limit), &mut file).map_err(failed)?;
    if copied == limit {
        return Err(Error::usage("standard input has more than 16 MiB").with_hint("name a file"));
    }
    file.flush().map_err(failed)?;
    let path = file.path().to_string_lossy().into_owned();
    let checked = connect::read_config(app.global.socket.as_deref(), Some(file.path())).map_err(|error| {
        let what = error.message().replace(&path, NAME);
        error.with_message(what)
    })?;
    if app.stdout.format() != OutputFormat::Text {
        let json = to_raw_value(&json!({"path": "-", "exists": true, "providers": checked.providers}));
        return app.stdout.json_line(&json.map_err(chorus_proto::CallError::from)?);
    }
    app.stdout.status_line(&format!("{NAME} is valid"))
}
