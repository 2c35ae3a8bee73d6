//! `chorusctl settings set`: sets a default of all agents.

use chorus_proto::methods::settings::{Set, SetParams};

use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Set default_model, permissions or idle_timeout, at once and for good
///
/// It holds for every agent that says nothing itself, and goes before config.toml; a variable of the environment goes before it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl settings set default_model anthropic/claude-sonnet-4-5\n  \
                        chorusctl settings set idle_timeout 1h\n  \
                        chorusctl settings set idle_timeout ''        take it back")]
pub struct Args {
    /// What to set: default_model, permissions or idle_timeout
    key: String,
    /// Its value; an empty one takes the setting back
    value: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = SetParams { key: args.key, value: args.value.into() };
    app.call_and_print::<Set>(&params, |app, done| {
        let value = if done.setting.value.is_null() { "nothing".to_owned() } else { value_text(&done.setting.value) };
        let key = sanitize::one_line(&done.setting.key);
        let key = app.stdout.style(Style::Strong, &key);
        let line = format!("{key}: {} ({})", sanitize::one_line(&value), done.setting.from.as_str());
        app.stdout.status_line(&line)?;
        if let Some(variable) = &done.overridden_by {
            let variable = sanitize::one_line(variable);
            app.stderr
                .warning(&format!("it is kept, but {variable} is set where chorusd was started, and goes before it"));
        }
        Ok(())
    })
}
