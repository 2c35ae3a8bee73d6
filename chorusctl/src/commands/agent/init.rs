//! `chorusctl agent init`: creates an agent, or revives one whose files were kept.

use std::io::Read as _;

use chorus_proto::methods::agent::{Init, InitParams, Show, ShowParams};
use chorus_proto::{CallError, ErrorKind};

use crate::app::App;
use crate::commands::status;
use crate::error::{Error, os_error_text};
use crate::ui::{Style, sanitize};

/// Create an agent, or restore one from kept files
///
/// Creates a directory with notes, sessions and a git workspace. If `agent destroy --keep-files` kept a directory of this name, the
/// agent continues with everything in it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name: lower-case letters, digits, `-` and `_`, at most 64 characters
    name: String,
    /// System prompt; @FILE reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    system_prompt: Option<String>,
    /// Model, as provider/model
    #[arg(long)]
    model: Option<String>,
    /// Permission profile: open, standard, locked, or one from config.toml
    #[arg(long)]
    permissions: Option<String>,
    /// Save and clear after this much inactivity, e.g. 30m; 0 = never
    #[arg(long, value_name = "DURATION")]
    idle_timeout: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = InitParams {
        name: args.name,
        system_prompt: args.system_prompt.map(text_or_file).transpose()?,
        model: args.model,
        permissions: args.permissions,
        idle_timeout: args.idle_timeout,
    };
    app.call_and_print::<Init>(&params, |app, made| {
        let verb = if made.revived { "restored" } else { "created" };
        let line = format!("{verb} {}", app.stdout.style(Style::Strong, &sanitize::one_line(&made.agent.name)));
        app.stdout.status_line(&line)?;
        for warning in &made.warnings {
            app.stderr.warning(warning);
        }
        if !app.stdout.is_quiet() {
            writeln!(app.stdout, "  {}", sanitize::one_line(&made.agent.path))?;
        }
        hint_at_default(app)
    })
}

/// Says so if commands have to name the agent from now on, because there are two and none is the default.
fn hint_at_default(app: &mut App) -> Result<(), Error> {
    // Not essential: the agent is created.
    let is_ambiguous = match app.client()?.call::<Show>(&ShowParams::default()) {
        Err(CallError::Rpc(error)) => error.kind() == ErrorKind::NoAgent,
        _ => false,
    };
    if !is_ambiguous || app.stdout.is_quiet() {
        return Ok(());
    }
    let totals = status::fetch_status(app, 1)?.totals;
    if totals.is_some_and(|totals| totals.active + totals.idle == 2) {
        app.stdout.flush()?;
        app.stderr.hint("commands need --agent NAME now; or set a default: chorusctl agent use NAME");
    }
    Ok(())
}

/// Returns `text`, or the content of FILE if `text` is `@FILE`. `@-` reads standard input; a leading `@@` stands for a
/// literal `@`.
pub fn text_or_file(text: String) -> Result<String, Error> {
    match text.strip_prefix('@') {
        None => Ok(text),
        Some(literal) if literal.starts_with('@') => Ok(literal.to_owned()),
        Some("-") => {
            let mut read = String::new();
            match std::io::stdin().read_to_string(&mut read) {
                Ok(_) => Ok(read),
                Err(error) => Err(Error::failed(format!("failed to read standard input: {}", os_error_text(&error)))),
            }
        }
        Some(file) => std::fs::read_to_string(file).map_err(|error| Error::for_file(file, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_names_a_file() -> Result<(), Error> {
        assert_eq!(text_or_file("be kind".to_owned())?, "be kind");
        assert_eq!(text_or_file("@@home".to_owned())?, "@home");
        assert_eq!(text_or_file("@/nowhere/at/all".to_owned()).map_err(|failure| failure.exit_status()), Err(3));
        Ok(())
    }
}
