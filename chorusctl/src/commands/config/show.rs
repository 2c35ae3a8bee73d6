//! `chorusctl config show`: prints the effective configuration.

use std::path::Path;

use chorus_proto::methods::settings::{From, Setting, Show, ShowParams};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::offline;
use super::reload::restart_hint;
use crate::app::{App, parse_result};
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};
use crate::{connect, print_pages};

/// Show every key with its value and its source (default)
///
/// The values are those that the daemon uses now. Secrets are hidden; for API keys the source is shown. FROM is default, file (config.toml),
/// settings (`settings set`) or an environment variable of the daemon.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Show the line in the file that a value comes from
    #[arg(long)]
    origin: bool,
    /// Show only keys that do not have their default
    #[arg(long)]
    changed: bool,
    /// Print a file with every key and its default as a comment
    #[arg(long, conflicts_with_all = ["origin", "changed"])]
    default: bool,
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 3] = [Column::new("KEY"), Column::new("VALUE").flexible(), Column::new("FROM").flexible()];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.default {
        let text = connect::run_to_text(&["config-file", "template"], None, None)?;
        if app.stdout.format() == OutputFormat::Text {
            return app.stdout.text(&text);
        }
        let json = to_raw_value(&json!({"text": text})).map_err(chorus_proto::CallError::from)?;
        return app.stdout.json_line(&json);
    }
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    let raw = app.call_raw::<Show>(&ShowParams {})?;
    if app.stdout.format() != OutputFormat::Text {
        let raw = if args.changed { only_changed(&raw)? } else { raw };
        return match app.stdout.format() {
            OutputFormat::Jsonl => print_pages::print_entries(&mut app.stdout, &raw, "settings"),
            _ => app.stdout.json_line(&raw),
        };
    }
    let found: <Show as chorus_proto::Method>::Result = parse_result(&raw)?;
    for setting in found.settings.iter().filter(|setting| !args.changed || setting.from != From::Default) {
        let value = if setting.value.is_null() { "-".to_owned() } else { value_text(&setting.value) };
        table.add_row([
            Cell::new(Style::Strong, sanitize::one_line(&setting.key)),
            sanitize::one_line(&value).into(),
            sanitize::one_line(&source(setting, args.origin)).into(),
        ]);
    }
    table.write(&mut app.stdout)?;
    if let Some(file) = &found.file {
        offline::warn_about_other_file(app, Path::new(&file.path))?;
        let missing = if file.exists { "" } else { " (no such file)" };
        writeln!(app.stdout, "\nconfiguration file: {}{missing}", sanitize::one_line(&file.path))?;
    }
    app.stdout.flush()?;
    offline::warn_about_variables(app, &found.settings)?;
    if let Some(problem) = &found.problem {
        offline::warn_about_broken_file(app, problem);
    }
    if !found.restart.is_empty() {
        app.stderr.hint(&restart_hint(&found.restart));
    }
    Ok(())
}

/// Says where a value comes from.
fn source(setting: &Setting, exact: bool) -> String {
    match (setting.from, &setting.place, setting.line) {
        (From::Environment, Some(variable), _) => format!("${variable}"),
        (From::File, Some(file), Some(line)) if exact => format!("{file}:{line}"),
        _ => setting.from.as_str().to_owned(),
    }
}

/// Leaves out the keys that have their default.
fn only_changed(raw: &RawValue) -> Result<Box<RawValue>, Error> {
    let mut whole: Value = parse_result(raw)?;
    if let Some(settings) = whole.get_mut("settings").and_then(Value::as_array_mut) {
        settings.retain(|setting| setting["from"] != From::Default.as_str());
    }
    Ok(to_raw_value(&whole).map_err(chorus_proto::CallError::from)?)
}
