//! `chorusctl settings set`: sets a default of all agents.

use chorus_proto::methods::settings::{Set, SetParams};

use super::hint;
use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Set default_model, permissions or idle_timeout
///
/// `chorusctl config set` does the same in config.toml. This value is stored by the daemon instead: it overrides config.toml, and an environment
/// variable overrides it. In a cluster, all nodes share it. It applies at once to every agent that does not set the key itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl settings set default_model anthropic/claude-sonnet-4-5\n  \
                        chorusctl settings set idle_timeout 1h\n  \
                        chorusctl settings set idle_timeout ''        remove it")]
pub struct Args {
    /// Setting: default_model, permissions or idle_timeout
    key: String,
    /// Value; an empty one removes the setting
    value: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = SetParams { key: args.key, value: args.value.into(), command: None };
    hint(app, "to set it in config.toml instead: chorusctl config set KEY VALUE");
    app.call_and_print::<Set>(&params, |app, done| {
        let value = if done.setting.value.is_null() { "(not set)".to_owned() } else { value_text(&done.setting.value) };
        let key = sanitize::one_line(&done.setting.key);
        let key = app.stdout.style(Style::Strong, &key);
        let line = format!("{key}: {} ({})", sanitize::one_line(&value), done.setting.from.as_str());
        app.stdout.status_line(&line)?;
        if let Some(variable) = &done.overridden_by {
            let variable = sanitize::one_line(variable);
            app.stderr.warning(&format!("saved, but {variable} in the daemon's environment overrides it"));
        }
        Ok(())
    })
}
