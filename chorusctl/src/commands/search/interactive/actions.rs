//! The actions on a hit: it is shown in a pager, or the conversation is restored or branched there.

use std::io::{self, Write as _};

use chorus_proto::methods::search::SearchHit;

use super::super::hit::session_name;
use super::Step;
use crate::app::App;
use crate::commands::message_range::MessageRange;
use crate::commands::{context, session};
use crate::error::Error;
use crate::ui::full_screen::PagingFlag;

/// Shows the hit with the messages around it, and returns when the user has seen it. `agent` is the one to name.
pub(super) fn show(hit: &SearchHit, agent: Option<String>, app: &mut App, paging: PagingFlag) -> Result<(), Error> {
    let named = std::mem::replace(&mut app.global.agent, agent);
    app.stdout.refresh_width();
    if !app.global.no_pager {
        app.stdout.page_always(paging.clone());
    }
    let range = MessageRange { around: hit.message, ..MessageRange::default() };
    let shown = session::show::show_selected(app, &selector(hit), range);
    let paged = app.stdout.finish_paging();
    paging.clear();
    app.global.agent = named;
    match shown.and(paged) {
        Ok(true) => Ok(()),
        Ok(false) => wait_for_enter(),
        // The pager was left before the end.
        Err(error) if error.is_stdout_closed() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Restores the conversation up to the hit, or branches there, as the commands do. `agent` is the one to name.
pub(super) fn continue_from(step: Step, hit: &SearchHit, agent: Option<String>, app: &mut App) -> Result<(), Error> {
    if agent != app.global.agent {
        app.global.agent = agent;
        app.name_commands(app.global.conversation.clone(), None);
    }
    match step {
        Step::Restore => context::restore::run(context::restore::Args::up_to(selector(hit), hit.message), app),
        Step::Branch => session::branch::run(session::branch::Args::from_message(selector(hit), hit.message), app),
    }
}

/// Returns what names the session: its ID, or `@NAME` for a live conversation.
fn selector(hit: &SearchHit) -> String {
    hit.session.as_ref().map_or_else(|| session_name(hit), |session| session.id.to_string())
}

/// Waits until the text was read, if no pager has done that.
fn wait_for_enter() -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "\npress Enter to return to the results ")
        .and_then(|()| stdout.flush())
        .map_err(Error::for_stdout)?;
    // Read without a buffer, which could keep keys that are for the results.
    let mut byte = [0];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(1) if byte[0] != b'\n' => {}
            Err(rustix::io::Errno::INTR) => {}
            _ => return Ok(()),
        }
    }
}
