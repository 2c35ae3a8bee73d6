//! `chorusctl config get`: prints the value of a key.

use std::path::Path;

use chorus_proto::error::exit;
use chorus_proto::methods::settings::{Setting, Show, ShowParams, ShowResult};
use serde_json::value::to_raw_value;

use super::reload::restart_hint;
use super::{STORED_KEYS, offline};
use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Letters in which a key may differ from one that is meant.
const MAX_TYPING_ERRORS: usize = 3;

/// Print the value of a key
///
/// The value is the one that the daemon uses now; a hint says if the file has another one, which waits for a restart. A key without a value ends with exit status 3. The name of a table prints all its keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl config get default_model\n  chorusctl config get providers.local")]
pub struct Args {
    /// Key with its table, or a table
    key: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let ShowResult { settings, file, restart, problem } = app.call::<Show>(&ShowParams {})?;
    if let Some(file) = file {
        offline::warn_about_other_file(app, Path::new(&file.path))?;
    }
    if let Some(problem) = &problem {
        offline::warn_about_broken_file(app, problem);
    }
    let shown = sanitize::one_line(&args.key);
    let stored = STORED_KEYS.iter().find(|(_, short)| *short == args.key).map(|(key, _)| *key);
    let key = stored.unwrap_or(&args.key);
    let waits = |name: &String| name == key || is_below(name, key) || is_below(key, name);
    let pending: Vec<String> = restart.into_iter().filter(waits).collect();
    let hint = |app: &mut App| {
        app.stdout.flush()?;
        if !pending.is_empty() {
            app.stderr.hint(&format!("the file has another value; {}", restart_hint(&pending)));
        }
        Ok(())
    };
    if let Some(setting) = settings.iter().find(|setting| setting.key == key) {
        if app.stdout.format() != OutputFormat::Text {
            print_json(app, setting)?;
            return hint(app);
        }
        if setting.value.is_null() {
            hint(app)?;
            return Err(Error::new(exit::NOT_FOUND, format!("{shown} is not set"))
                .with_hint(format!("set it: chorusctl config set {shown} VALUE")));
        }
        writeln!(app.stdout, "{}", sanitize::multi_line(&value_text(&setting.value)))?;
        return hint(app);
    }
    let inside = format!("{}.", args.key);
    let table: Vec<_> = settings.iter().filter(|setting| setting.key.starts_with(&inside)).collect();
    if table.is_empty() {
        let error = Error::usage(format!("unknown key {shown}"));
        return Err(match closest(&args.key, &settings) {
            Some(key) => error.with_hint(format!("did you mean {}?", sanitize::one_line(key))),
            None => error.with_hint("list the keys: chorusctl config"),
        });
    }
    for setting in table {
        match app.stdout.format() {
            OutputFormat::Text if setting.value.is_null() => {}
            OutputFormat::Text => {
                let key = sanitize::one_line(&setting.key);
                writeln!(app.stdout, "{key} = {}", sanitize::one_line(&value_text(&setting.value)))?;
            }
            OutputFormat::Json | OutputFormat::Jsonl => print_json(app, setting)?,
        }
    }
    hint(app)
}

/// Returns true if `key` is in the table `above`.
fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

fn print_json(app: &mut App, setting: &Setting) -> Result<(), Error> {
    let json = to_raw_value(setting).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&json)
}

/// Returns the key that is meant: one of the same name in another table, or the most similar one.
fn closest<'a>(typed: &str, settings: &'a [Setting]) -> Option<&'a str> {
    let keys = || settings.iter().map(|setting| setting.key.as_str());
    let same_name = keys().find(|key| key.rsplit('.').next() == Some(typed));
    same_name.or_else(|| {
        let near = keys().map(|key| (strsim::osa_distance(typed, key), key)).min_by_key(|(distance, _)| *distance);
        near.filter(|(distance, _)| *distance <= MAX_TYPING_ERRORS).map(|(_, key)| key)
    })
}
