//! Prints a hit: on the first line its place, below it the text that was found.

use chorus_proto::Role;
use chorus_proto::methods::search::{ScorePart, SearchHit};

use crate::commands::format;
use crate::conversation_select::MAIN;
use crate::error::Error;
use crate::ui::marked_text::MarkedText;
use crate::ui::time::Clock;
use crate::ui::{Cell, Column, Stdout, Style, Table, sanitize, text};

const INDENT: usize = 4;
/// Lines of the text that was found, on a terminal.
const MAX_SNIPPET_LINES: usize = 2;
/// Longer lines are hard to read on a wide terminal.
const MAX_WIDTH: usize = 100;
/// Columns that a title gets, however long the rest of its line is.
const MIN_TITLE_WIDTH: usize = 12;

/// The columns of hits as a table.
pub(super) const COLUMNS: [Column; 9] = [
    Column::new("SESSION").whole(),
    Column::new("MESSAGE").align_right(),
    Column::new("AGENT"),
    Column::new("CONVERSATION").optional(),
    Column::new("ROLE").optional(),
    Column::new("WHEN").whole(),
    Column::new("SCORE").align_right().optional(),
    Column::new("TITLE").flexible().optional(),
    Column::new("TEXT").flexible(),
];

/// Writes hits as a table.
pub(super) fn write_table(mut table: Table, out: &mut Stdout, hits: &[SearchHit]) -> Result<(), Error> {
    for hit in hits {
        let conversation = hit.conversation.as_ref().map(|conversation| sanitize::one_line(&conversation.name));
        table.add_row([
            Cell::new(Style::Id, sanitize::one_line(&session_name(hit))),
            hit.message.map(|number| number_cell(number, hit.nearby)).unwrap_or_default(),
            sanitize::one_line(&hit.agent_name).into(),
            conversation.unwrap_or_default().into(),
            hit.role.map(|role| speaker(hit, role)).unwrap_or_default().into(),
            Cell::from(out.clock().local_date_time(hit.at)).sorted_by_time(hit.at),
            format!("{:.2}", hit.score).into(),
            title(hit).into(),
            sanitize::one_line(&hit.snippet).into(),
        ]);
    }
    if hits.is_empty() { Ok(()) } else { table.write(out) }
}

/// Formats `16`, or `16 (+2)` if others next to it match, too.
fn number_cell(number: u64, nearby: Option<u64>) -> Cell {
    let text = nearby.map_or_else(|| number.to_string(), |nearby| format!("{number} (+{nearby})"));
    Cell::from(text).sorted_by(number as f64)
}

/// Prints the hit. `searched` is the agent that was searched, if it was only one.
pub(super) fn print(out: &mut Stdout, hit: &SearchHit, searched: Option<&str>) -> Result<(), Error> {
    print_place(out, hit, searched)?;
    let snippet = MarkedText::new(&hit.snippet, &hit.marks);
    let width = out.width().map(|width| width.min(MAX_WIDTH).saturating_sub(INDENT));
    for line in snippet.lines(width, MAX_SNIPPET_LINES, out.styler()) {
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    if hit.parts.is_empty() {
        return Ok(());
    }
    let score = describe_score(hit.score, &hit.parts);
    writeln!(out, "{:INDENT$}{}", "", out.style(Style::Faint, &score))
}

/// Prints what `show` needs to find the hit, the title, and by whom and when it was said.
fn print_place(out: &mut Stdout, hit: &SearchHit, searched: Option<&str>) -> Result<(), Error> {
    let name = sanitize::one_line(&session_name(hit));
    let room = out.width().map(|width| width.saturating_sub(text::width(&name) + 2));
    let (title, rest) = title_and_facts(out.clock(), hit, searched, room);
    let line = format!(
        "{}  {}{}",
        out.style(Style::Id, &name),
        out.style(Style::Strong, &title),
        out.style(Style::Faint, &rest)
    );
    writeln!(out, "{line}")
}

/// Returns the title, and what stands behind it, in `room` columns together; `None` cuts nothing.
pub(super) fn title_and_facts(
    clock: &Clock,
    hit: &SearchHit,
    searched: Option<&str>,
    room: Option<usize>,
) -> (String, String) {
    let (title, rest) = (title(hit), format!(" · {}", facts(clock, hit, searched).join(" · ")));
    let Some(room) = room else { return (title, rest) };
    let title_room = room.saturating_sub(text::width(&rest)).max(MIN_TITLE_WIDTH).min(room);
    let title = text::truncate(&title, title_room).into_owned();
    let rest = text::truncate(&rest, room.saturating_sub(text::width(&title))).into_owned();
    (title, rest)
}

/// Returns what names the session in a command: its short ID, or `@NAME` for a live conversation.
pub(super) fn session_name(hit: &SearchHit) -> String {
    match &hit.session {
        Some(session) => session.short_id.clone(),
        None => format!("@{}", live_name(hit)),
    }
}

/// Returns the name of the conversation.
pub(super) fn live_name(hit: &SearchHit) -> &str {
    hit.conversation.as_ref().map_or(MAIN, |conversation| &conversation.name)
}

fn title(hit: &SearchHit) -> String {
    let name = hit.session.as_ref().map_or("live conversation", |session| &session.session_id);
    format::title(hit.title.as_deref(), None, name)
}

fn facts(clock: &Clock, hit: &SearchHit, searched: Option<&str>) -> Vec<String> {
    let conversation = hit.conversation.as_ref().map(|conversation| &*conversation.name);
    let place = match searched {
        Some(searched) if searched == hit.agent_name => {
            conversation.filter(|_| hit.session.is_some()).map(sanitize::one_line)
        }
        _ => Some(format::who(&hit.agent_name, conversation)),
    };
    let number = hit.message.map(|number| match hit.nearby {
        None => format!("message {number}"),
        Some(nearby) => format!("message {number} (and {nearby} near it)"),
    });
    let when = clock.local_date_time(hit.at);
    number.into_iter().chain(place).chain(hit.role.map(|role| speaker(hit, role))).chain([when]).collect()
}

fn speaker(hit: &SearchHit, role: Role) -> String {
    match role {
        Role::User => hit.speaker.as_deref().map(sanitize::one_line).unwrap_or_else(|| "user".to_owned()),
        Role::Assistant => "assistant".to_owned(),
        Role::System => "system".to_owned(),
        Role::ToolResult => "tool result".to_owned(),
    }
}

/// Formats `score 12.50 = words 10.25 + neighbours 2.25`.
pub(super) fn describe_score(score: f64, parts: &[ScorePart]) -> String {
    let parts: Vec<_> =
        parts.iter().map(|part| format!("{} {:.2}", sanitize::one_line(&part.name), part.value)).collect();
    format!("score {score:.2} = {}", parts.join(" + "))
}

#[cfg(test)]
mod tests {
    use chorus_proto::ConversationRef;
    use chorus_proto::methods::search::FoundSession;

    use super::*;

    fn hit() -> SearchHit {
        let session =
            FoundSession { id: Default::default(), short_id: "9f1c27d4".into(), session_id: "2026-03-02_rows".into() };
        SearchHit {
            agent_name: "api".into(),
            imported: false,
            session: Some(session),
            conversation: None,
            title: Some("Why the import drops rows".into()),
            message: Some(16),
            role: Some(Role::User),
            speaker: Some("mara".into()),
            at: "2026-11-20T09:05:00Z".parse().expect("a time"),
            snippet: "we drop Redis".into(),
            marks: vec![(3, 7), (8, 13)],
            nearby: None,
            score: 12.5,
            parts: Vec::new(),
        }
    }

    fn review() -> Option<ConversationRef> {
        Some(ConversationRef { id: Default::default(), name: "review".into() })
    }

    fn printed(width: Option<usize>, hit: &SearchHit, searched: Option<&str>) -> Result<Vec<String>, Error> {
        let mut out = Stdout::captured(width);
        print(&mut out, hit, searched)?;
        Ok(out.captured_text().lines().map(str::to_owned).collect())
    }

    #[test]
    fn the_title_is_cut_before_the_rest() -> Result<(), Error> {
        let lines = printed(Some(80), &hit(), Some("api"))?;
        assert_eq!(
            lines,
            ["9f1c27d4  Why the import drops rows · message 16 · mara · 2026-11-20 09:05", "    we drop Redis"]
        );
        let long = SearchHit { title: Some("long title ".repeat(20)), conversation: review(), ..hit() };
        let lines = printed(Some(80), &long, None)?;
        assert_eq!(lines[0], "9f1c27d4  long title long… · message 16 · api (review) · mara · 2026-11-20 09:05");
        assert!(
            printed(None, &long, None)?[0]
                .ends_with("long title · message 16 · api (review) · mara · 2026-11-20 09:05")
        );
        Ok(())
    }

    #[test]
    fn live_conversations_are_named_as_show_takes_them() -> Result<(), Error> {
        let live = SearchHit { session: None, title: None, role: Some(Role::Assistant), ..hit() };
        let first = |hit: &SearchHit, searched| printed(None, hit, searched).map(|lines| lines[0].clone());
        assert_eq!(first(&live, Some("api"))?, "@main  live conversation · message 16 · assistant · 2026-11-20 09:05");
        let live = SearchHit { conversation: review(), ..live };
        assert_eq!(
            first(&live, Some("api"))?,
            "@review  live conversation · message 16 · assistant · 2026-11-20 09:05"
        );
        assert!(first(&live, Some("web"))?.contains(" · api (review) · "));
        Ok(())
    }

    #[test]
    fn others_next_to_it_are_counted() -> Result<(), Error> {
        let found = SearchHit { nearby: Some(2), ..hit() };
        let line = &printed(None, &found, Some("api"))?[0];
        assert!(line.contains(" · message 16 (and 2 near it) · mara · "), "{line}");
        Ok(())
    }

    #[test]
    fn a_title_that_was_found_has_no_message() -> Result<(), Error> {
        let found = SearchHit { message: None, role: None, speaker: None, title: None, ..hit() };
        assert_eq!(printed(None, &found, Some("api"))?[0], "9f1c27d4  2026-03-02_rows · 2026-11-20 09:05");
        Ok(())
    }

    #[test]
    fn the_parts_of_a_score_are_explained() -> Result<(), Error> {
        let part = |name: &str, value| ScorePart { name: name.into(), value };
        let found = SearchHit { parts: vec![part("words", 10.25), part("time", 2.25)], ..hit() };
        assert_eq!(printed(None, &found, Some("api"))?[2], "    score 12.50 = words 10.25 + time 2.25");
        Ok(())
    }
}
