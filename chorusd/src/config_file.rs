//! `chorusd config-file`, with which `chorusctl config` edits config.toml if no daemon runs, and which knows its keys.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chorus_base::error::{Error, Result};
use chorus_config::{config_template, edit};
use chorus_llm::check_configured;
use clap::{Parser, Subcommand};
use serde_json::json;

use crate::cli::{print_error, print_json, resolve_paths};

const UTF8_HINT: &str = "write it as text in UTF-8";

/// Editor of config.toml, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd config-file")]
struct Args {
    #[command(subcommand)]
    action: Action,
    /// The socket of the daemon
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the path, and whether the file exists
    Path,
    /// Print a file with every key and its default as a comment
    Template,
    /// Check the text on standard input as if it were the file, and print the names of its providers
    Check,
    /// Set a key
    Set {
        key: String,
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a key
    Unset { key: String },
    /// Replace the file by a draft, if it still has the text from which the draft was made
    Replace {
        draft: PathBuf,
        /// That text; without it, the file must not exist
        #[arg(long, value_name = "FILE")]
        old: Option<PathBuf>,
    },
}

/// Edits the file if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "config-file").then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd config-file".into()).chain(arguments));
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

fn run(args: &Args) -> Result<()> {
    let file = resolve_paths(args.socket.as_deref())?.config;
    let env = |name: &str| std::env::var_os(name);
    let edited = match &args.action {
        Action::Path => return print_json(&json!({"path": file, "exists": file.exists()})),
        Action::Template => {
            let written = std::io::stdout().write_all(config_template().as_bytes());
            return written.map_err(|e| Error::io("cannot print the file", &e));
        }
        Action::Check => {
            let text = std::io::read_to_string(std::io::stdin())
                .map_err(|e| Error::invalid(format!("cannot read standard input: {e}")).hint(UTF8_HINT))?;
            let config = chorus_config::load_text(Some(&text), &file, env)?;
            let providers: Vec<String> = config.providers.into_keys().collect();
            return print_json(&json!({"config": file, "exists": true, "providers": providers}));
        }
        Action::Set { key, value } => {
            check_model(&file, key, value, &env)?;
            edit::set_key(&file, key, value, &env)?
        }
        Action::Unset { key } => edit::unset_key(&file, key, &env)?,
        Action::Replace { draft, old } => {
            let old = old.as_deref().map(read).transpose()?;
            edit::replace_text(&file, old.as_deref(), &read(draft)?, &env)?
        }
    };
    let edit::Edited { file, key, created, changed, old } = edited;
    print_json(&json!({"file": file, "key": key, "created": created, "changed": changed, "old": old}))
}

/// Checks a default model as a running daemon does. A file that cannot be loaded is the concern of the edit.
fn check_model(file: &Path, key: &str, value: &str, env: edit::Environment<'_>) -> Result<()> {
    match chorus_config::load(file, env) {
        Ok(config) if key == "default_model" && !value.is_empty() => check_configured(&config, value),
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|e| Error::invalid(format!("cannot read {}: {e}", file.display())).hint(UTF8_HINT))
}
