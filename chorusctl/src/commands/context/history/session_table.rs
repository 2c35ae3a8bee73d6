//! The table of `chorusctl context history`.

use chorus_proto::SessionSource;
use chorus_proto::methods::capture::{Status, StatusParams};

use super::SessionRow;
use crate::app::App;
use crate::commands::format;
use crate::ui::time::Clock;
use crate::ui::{Cell, Column, Stdout, Style, Table, sanitize};

/// The limit on the width of a project's name.
const MAX_PROJECT_COLUMNS: usize = 14;
/// A captured conversation is live if its last message is newer than so many minutes.
const LIVE_MINUTES: i64 = 10;

pub(super) const COLUMNS: [Column; 8] = [
    Column::new("#").named("number").align_right(),
    Column::new("ID").whole(),
    Column::new("WHEN").whole(),
    Column::new("AGENT"),
    Column::new("CONVERSATION").optional(),
    Column::new("PROJECT").at_most(MAX_PROJECT_COLUMNS).optional(),
    Column::new("MESSAGES").align_right().optional(),
    Column::new("TITLE").flexible(),
];

/// Adds a row for each session, the first of which has the number `first`; with its agent if there are several.
pub(super) fn add_rows(table: &mut Table, out: &mut Stdout, sessions: &[SessionRow], first: u64, agents: bool) {
    for (number, session) in (first..).zip(sessions) {
        let when = Cell::from(when(session, out.clock())).sorted_by_time(session.when());
        let project = session.project_name().map(sanitize::one_line).unwrap_or_default();
        table.add_row([
            number.to_string().into(),
            id_cell(session),
            when,
            if agents { sanitize::one_line(&session.agent_name).into() } else { Cell::default() },
            conversation(session).into(),
            project.into(),
            session.message_count.to_string().into(),
            title_cell(session),
        ]);
    }
}

/// Returns the name of the conversation that the session was saved from; empty for `main`.
fn conversation(session: &SessionRow) -> String {
    session.conversation.as_ref().map_or_else(String::new, |conversation| sanitize::one_line(&conversation.name))
}

/// Marks the conversations to which their programs have just added something, as far as capture follows these programs: others were only
/// imported, and stay as they are.
pub(super) fn mark_live(app: &mut App, sessions: &mut [SessionRow]) {
    let mut recent = Vec::new();
    for session in sessions {
        let is_recent = |source: &&SessionSource| app.stdout.clock().is_recent(source.ended_at, LIVE_MINUTES);
        if let Some(program) = session.source.as_ref().filter(is_recent).map(|source| source.program.clone()) {
            recent.push((session, program));
        }
    }
    if recent.is_empty() {
        return;
    }
    // Without an answer, none is said to be live.
    let Ok(status) = app.call::<Status>(&StatusParams::default()) else { return };
    let follows = |program: &str| status.sources.iter().any(|source| source.on && source.source == program);
    for (session, program) in recent {
        session.is_live = !status.paused && follows(&program);
    }
}

/// Returns the time of a session, or `live` for a conversation to which its program has just added something.
pub(super) fn when(session: &SessionRow, clock: &Clock) -> String {
    if session.is_live { "live".to_owned() } else { clock.local_date_time(session.when()) }
}

/// Returns the id with the part marked that is enough to name the session.
fn id_cell(session: &SessionRow) -> Cell {
    let id = sanitize::one_line(&session.short_id);
    let length = prefix_length(session, &id);
    Cell::new(Style::Id, id).with_prefix(length, Style::IdPrefix)
}

pub(super) fn prefix_length(session: &SessionRow, id: &str) -> usize {
    session.unique_prefix.as_deref().filter(|prefix| id.starts_with(prefix)).map_or(0, str::len)
}

/// Returns the title on one line: the description, else the start of the summary, else the name; then the tags.
pub(super) fn title(session: &SessionRow) -> String {
    let title = format::title(session.description.as_deref(), session.summary.as_deref(), &session.session_id);
    let tags = session.tags.iter().map(|tag| format!(" #{}", sanitize::one_line(tag)));
    title + &tags.collect::<String>()
}

fn title_cell(session: &SessionRow) -> Cell {
    if let Some(reason) = &session.corrupt {
        return Cell::new(Style::Bad, format!("unreadable file: {}", sanitize::one_line(reason)));
    }
    let title = title(session);
    if session.available { title.into() } else { Cell::new(Style::Bad, format!("(file missing) {title}")) }
}
