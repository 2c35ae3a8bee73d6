//! `chorusctl config check`: checks a configuration file.

use std::io::{self, Read as _, Seek as _, Write as _};
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
/// reads standard input as if it were config.toml: relative paths start at the directory of that file.
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

/// Checks the text on standard input, as if it were config.toml.
fn check_stdin(app: &mut App) -> Result<(), Error> {
    const NAME: &str = "standard input";
    let failed = |error: io::Error| Error::for_file(NAME, &error);
    let mut text = Vec::new();
    io::Read::take(io::stdin().lock(), MAX_STDIN_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_STDIN_BYTES {
        return Err(Error::usage("standard input has more than 16 MiB").with_hint("name a file"));
    }
    if let Err(error) = std::str::from_utf8(&text) {
        let line = text[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        return Err(Error::usage(format!("{NAME}, line {line}: not text in UTF-8"))
            .with_hint("convert it, for example: iconv -f latin1 -t utf-8"));
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    file.write_all(&text).and_then(|()| file.rewind()).map_err(failed)?;
    let place = offline::find_file(app)?.path;
    let checked = connect::check_config_text(app.global.socket.as_deref(), &place, file).map_err(|error| {
        let what = error.message().replace(&*place.to_string_lossy(), NAME);
        error.with_message(what)
    })?;
    if app.stdout.format() != OutputFormat::Text {
        let json = to_raw_value(&json!({"path": "-", "exists": true, "providers": checked.providers}));
        return app.stdout.json_line(&json.map_err(chorus_proto::CallError::from)?);
    }
    app.stdout.status_line(&format!("{NAME} is valid"))
}
