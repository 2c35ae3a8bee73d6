//! `chorusctl session purge`: deletes a session and every copy of it.

use chorus_proto::command_text::add_target;
use chorus_proto::methods::session::{Get, GetParams, LiveConversation, Purge, PurgeParams, PurgeResult};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Style, confirm, sanitize, terminal};

/// Permanently delete a saved conversation
///
/// Deletes its file, its history entry, its copies in the trash and its data in the databases. This cannot be undone. Other sessions with
/// the same messages stay, and so does a live conversation that was loaded from it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation, or the name or ID of one in the trash
    session: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let agent = app.agent();
    if !args.yes {
        confirm(agent.clone(), &args.session, app)?;
    }
    let (conversation, own) = (app.conversation(), app.global.agent.is_none());
    app.call_and_print::<Purge>(&PurgeParams { conversation, agent, session: args.session, own }, |app, purged| {
        let line =
            format!("permanently deleted {}", app.stdout.style(Style::Strong, &sanitize::one_line(&purged.session_id)));
        app.stdout.status_line(&line)?;
        if purged.erasing {
            warn_erasing(app);
        }
        for LiveConversation { agent, conversation } in live_in(purged) {
            let named = conversation.as_ref().map_or_else(String::new, |name| format!(" {name}"));
            app.stderr.warning(&format!("the live conversation{named} of {agent} still contains its messages"));
            let command = format!("chorusctl --agent {agent} context clear");
            app.stderr.hint(&add_target(&command, None, conversation.as_deref()));
        }
        Ok(())
    })
}

/// Says that texts of a deleted session are still in files of the daemon, and how to see that they are gone.
pub(super) fn warn_erasing(app: &App) {
    app.stderr.warning("its texts may still be in the search index or the databases; the daemon is overwriting them");
    app.stderr.hint("check that it has finished: chorusctl doctor --secrets");
}

/// Returns where its messages still are. Daemons of earlier releases name only the agents.
fn live_in(purged: PurgeResult) -> Vec<LiveConversation> {
    if !purged.live_in.is_empty() {
        return purged.live_in;
    }
    purged.live.into_iter().map(|agent| LiveConversation { agent, conversation: None }).collect()
}

fn confirm(agent: Option<String>, session: &str, app: &mut App) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(confirm::no_terminal_error("session purge"));
    }
    let conversation = app.conversation();
    let params = GetParams { agent, conversation, session: session.to_owned(), limit: Some(0), ..Default::default() };
    let what = match app.call::<Get>(&params) {
        Ok(shown) => {
            let header = shown.session.header;
            format!("{} ({})", header.session_id, pluralize(header.message_count, "message"))
        }
        // The session may be corrupt or in the trash.
        Err(_) => session.to_owned(),
    };
    confirm::ask("session purge", &format!("Permanently delete {what}?"))
}
