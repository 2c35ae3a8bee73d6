//! `chorusctl config set`: sets a key in config.toml.

use chorus_proto::methods::config::SetParams;
use chorus_proto::methods::models::{List, ModelsParams};
use chorus_proto::shell_word::shell_word;

use super::apply;
use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Set a key in config.toml
///
/// Comments in the file stay. A running daemon applies the value at once, or says that it needs a restart. A value that cannot be used changes
/// nothing. A value of `settings set` that would override the file is removed.
///
/// KEY is written with its table: defaults.idle_timeout. A list has commas between its entries, or is written in TOML: '["a", "b"]'.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl config set default_model anthropic/claude-sonnet-4-5\n  \
                        chorusctl config set defaults.idle_timeout 1h\n  \
                        chorusctl config set aliases.fast router/small\n  \
                        chorusctl config set 'prices.\"router/small\".input' 0.12")]
pub struct Args {
    /// Key with its table; `chorusctl config` lists them
    key: String,
    /// Value
    #[arg(allow_hyphen_values = true)]
    value: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = SetParams { key: args.key, value: Some(args.value) };
    let change = apply::change(app, "config set", &params)?;
    if apply::print_json(app, &change)? {
        return Ok(());
    }
    let result = &change.result;
    let key = sanitize::one_line(&result.key);
    let key = app.stdout.style(Style::Strong, &key);
    let file = sanitize::one_line(&result.file);
    let created = if result.created { ", a new file" } else { "" };
    let line = match &result.setting {
        Some(setting) if !result.restart => {
            let value = sanitize::one_line(&value_text(&setting.value));
            let place = setting.place.as_deref().map(sanitize::one_line);
            format!("{key}: {value} ({}{created})", place.as_deref().unwrap_or(setting.from.as_str()))
        }
        _ => format!("{key}: {} ({file}{created})", sanitize::one_line(params.value.as_deref().unwrap_or_default())),
    };
    app.stdout.status_line(&line)?;
    apply::print_consequences(app, &change)?;
    if change.is_live && change.result.key == "default_model" {
        warn_about_missing_provider(app, params.value.as_deref().unwrap_or_default());
    }
    Ok(())
}

/// Warns that no provider has the model, as long as none is configured: with others, its name is refused.
fn warn_about_missing_provider(app: &mut App, model: &str) {
    // The value is saved already.
    let Ok(found) = app.call::<List>(&ModelsParams {}) else { return };
    let meant = found.aliases.get(model).map_or(model, String::as_str);
    let Some((provider, _)) = meant.split_once('/') else { return };
    if found.providers.iter().all(|known| known.name != provider) {
        let provider = sanitize::one_line(provider);
        app.stderr.warning(&format!("no provider is called {provider}: this model cannot be used yet"));
        app.stderr
            .hint(&format!("add it: chorusctl models add {} (with a URL if it is your own)", shell_word(&provider)));
    }
}
