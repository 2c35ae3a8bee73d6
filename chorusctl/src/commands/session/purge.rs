//! `chorusctl session purge`: deletes a session and every copy of it.

use chorus_proto::methods::session::{Get, GetParams, Purge, PurgeParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, confirm, sanitize, terminal};

/// Forget a saved conversation for good
///
/// Its file, its entry in the history, its copies in the trash and what the databases still hold of it go, and cannot
/// be had back. Other sessions that hold the same messages stay, and so does a live conversation restored from it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or the session_id or UUID of one in the trash
    session: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let agent = app.agent();
    if !args.yes {
        confirm(agent.clone(), &args.session, app)?;
    }
    app.call_and_print::<Purge>(
        &PurgeParams { agent, session: args.session, own: app.global.agent.is_none() },
        |app, purged| {
            let line = format!("purged {}", app.stdout.style(Style::Strong, &sanitize::one_line(&purged.session_id)));
            app.stdout.status_line(&line)?;
            for agent in &purged.live {
                app.stderr.warning(&format!("the live context of {agent} still holds its messages"));
                app.stderr.hint(&format!("chorusctl --agent {agent} context clear"));
            }
            Ok(())
        },
    )
}

fn confirm(agent: Option<String>, session: &str, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("session purge"));
    }
    let params = GetParams { agent, session: session.to_owned(), limit: Some(0), ..Default::default() };
    let what = match app.call::<Get>(&params) {
        Ok(shown) => {
            let header = shown.session.header;
            format!("{} ({})", header.session_id, pluralize(header.message_count, "message"))
        }
        // The session may be corrupt or in the trash.
        Err(_) => session.to_owned(),
    };
    confirm::ask("session purge", &format!("Forget {what} for good?"))
}
