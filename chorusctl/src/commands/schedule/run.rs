//! `chorusctl schedule run`: runs a schedule now.

use chorus_proto::methods::schedule::{Run, RunParams};

use super::agent_option;
use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Run a schedule now, besides its times
///
/// Does not wait for the reply: `chorusctl -C schedule-NAME show` shows it, and `schedule show` how the run ended.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Run>(&RunParams { agent: app.agent(), name: args.name }, |app, done| {
        let name = sanitize::one_line(&done.schedule.name);
        let line = format!("started a run of {}", app.stdout.style(Style::Id, &name));
        app.stdout.status_line(&line)?;
        if app.stdout.is_quiet() {
            return Ok(());
        }
        let conversation = done.schedule.conversation.as_deref().map(sanitize::one_line);
        let conversation = conversation.unwrap_or_else(|| format!("schedule-{name}"));
        let agent = agent_option(&done.schedule.agent, app);
        writeln!(app.stdout, "  its reply: chorusctl {agent}-C {conversation} show")?;
        writeln!(app.stdout, "  how it ended: chorusctl {agent}schedule show {name}")
    })
}
