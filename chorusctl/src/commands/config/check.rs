//! `chorusctl config check`: checks a configuration file.

use std::path::PathBuf;

use serde_json::json;
use serde_json::value::to_raw_value;

use super::offline;
use crate::app::App;
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Check a configuration file
///
/// Reads the file as a daemon does when it starts, with the environment of this shell. An error names the line, the column and the key.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File [default: config.toml]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("config check")?;
    let is_named = args.file.is_some();
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
