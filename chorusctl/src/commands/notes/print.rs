//! Prints notes.

use std::borrow::Cow;

use chorus_proto::methods::notes::{Note, NoteKind, NoteScope, NoteView};
use chorus_proto::{ItemSource, WorkingSet};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::{Cell, Column, Style, Table, sanitize, text};

/// Kinds of notes on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    Fact,
    Decision,
    Task,
    File,
    Conflict,
}

/// Scopes of facts on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// This conversation, and those that continue from it
    Here,
    /// Every conversation of the agent
    Agent,
    /// Every conversation of all agents of its project
    Project,
}

impl From<Kind> for NoteKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Fact => Self::Fact,
            Kind::Decision => Self::Decision,
            Kind::Task => Self::Task,
            Kind::File => Self::File,
            Kind::Conflict => Self::Conflict,
        }
    }
}

impl From<Scope> for NoteScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Here => Self::Here,
            Scope::Agent => Self::Agent,
            Scope::Project => Self::Project,
        }
    }
}

/// The kinds in the order in which they are shown, each with its heading.
const SECTIONS: [(NoteKind, &str); 5] = [
    (NoteKind::Fact, "Facts"),
    (NoteKind::Decision, "Decisions"),
    (NoteKind::Task, "Open tasks"),
    (NoteKind::File, "Files"),
    (NoteKind::Conflict, "Conflicts"),
];

/// Width of the column with the numbers.
const NUMBER_WIDTH: usize = 8;

/// The columns of notes as a table.
pub const COLUMNS: [Column; 6] = [
    Column::new("ID").whole(),
    Column::new("KIND"),
    Column::new("SCOPE").optional(),
    Column::new("PROJECT").optional(),
    Column::new("PATH").flexible().optional(),
    Column::new("TEXT").flexible(),
];

/// Adds a row for each note.
pub fn add_rows(table: &mut Table, notes: &[Note]) {
    for note in notes {
        let scope = match note.scope {
            NoteScope::Here => "here",
            NoteScope::Agent => "agent",
            NoteScope::Project => "project",
        };
        let kind = match note.kind {
            NoteKind::Fact => "fact",
            NoteKind::Decision => "decision",
            NoteKind::Task => "task",
            NoteKind::File => "file",
            NoteKind::Conflict => "conflict",
        };
        table.add_row([
            Cell::new(Style::Id, sanitize::one_line(&note.note)),
            kind.into(),
            scope.into(),
            sanitize::one_line(note.project.as_deref().unwrap_or_default()).into(),
            sanitize::one_line(note.path.as_deref().unwrap_or_default()).into(),
            sanitize::one_line(&note.text).into(),
        ]);
    }
}

/// Prints notes by kind, at most the newest `most` of each.
pub fn write_notes(app: &mut App, notes: &[Note], most: usize) -> Result<(), Error> {
    for (kind, heading) in SECTIONS {
        let of_kind: Vec<&Note> = notes.iter().filter(|note| note.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        writeln!(app.stdout, "{}", app.stdout.style(Style::Strong, heading))?;
        let hidden = of_kind.len().saturating_sub(most);
        if hidden > 0 {
            writeln!(app.stdout, "  … {hidden} more: chorusctl notes list")?;
        }
        for note in &of_kind[hidden..] {
            write_note(app, note)?;
        }
    }
    Ok(())
}

/// Prints the background and the summary of the messages that left the window.
pub fn write_summary(app: &mut App, background: Option<&str>, summary: Option<&str>) -> Result<(), Error> {
    for (heading, text) in [("Background", background), ("Summary", summary)] {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { continue };
        writeln!(app.stdout, "{}", app.stdout.style(Style::Strong, heading))?;
        format::print_paragraph(&mut app.stdout, text)?;
    }
    Ok(())
}

/// Prints what a working set knows, at most the newest `most` notes of each kind. Of the background, it prints the
/// summary, unless the conversation has one of its own.
pub fn write_working_set(app: &mut App, set: &WorkingSet, most: usize) -> Result<(), Error> {
    let before = || set.background.as_deref()?.lines().find_map(|line| line.strip_prefix("Summary: "));
    write_summary(app, None, set.summary.as_deref().or_else(before))?;
    let facts = set.pinned_facts.iter().chain(&set.facts);
    let lists: [(NoteKind, char, Vec<_>); 5] = [
        (NoteKind::Fact, 'f', facts.collect()),
        (NoteKind::Decision, 'd', set.decisions.iter().collect()),
        (NoteKind::Task, 't', set.open_tasks.iter().collect()),
        (NoteKind::File, 'p', set.files_touched.iter().collect()),
        (NoteKind::Conflict, 'c', set.conflicts.iter().collect()),
    ];
    let to_note = |kind, letter, index: usize, item: &chorus_proto::Item| Note {
        note: format!("{letter}{}", index + 1),
        kind,
        scope: NoteScope::Here,
        id: item.id.clone(),
        text: item.text.clone(),
        source: item.source,
        message_id: None,
        shown: NoteView::Full,
        path: None,
        project: None,
    };
    let notes: Vec<Note> = lists
        .into_iter()
        .flat_map(|(kind, letter, items)| {
            items.into_iter().enumerate().map(move |(index, item)| to_note(kind, letter, index, item))
        })
        .collect();
    write_notes(app, &notes, most)
}

/// Prints a note, wrapped to the terminal.
pub fn write_note(app: &mut App, note: &Note) -> Result<(), Error> {
    let mut label = String::from("  ");
    text::pad(&mut label, &sanitize::one_line(&note.note), NUMBER_WIDTH, false);
    let said = format!("{}{}", sanitize::one_line(&note.text), remarks(note));
    let lines = match app.stdout.width() {
        Some(width) => text::wrap(&said, width.saturating_sub(NUMBER_WIDTH + 4).max(20)),
        None => vec![Cow::from(&*said)],
    };
    for (at, line) in lines.iter().enumerate() {
        let label = if at == 0 { app.stdout.style(Style::Id, &label).to_string() } else { " ".repeat(label.len()) };
        writeln!(app.stdout, "{label}  {line}")?;
    }
    Ok(())
}

/// Formats what a note is besides its text: ` (agent; by hand; not in the window)`.
fn remarks(note: &Note) -> String {
    let scope = match (note.scope, &note.project) {
        (NoteScope::Here, _) => None,
        (NoteScope::Agent, _) | (NoteScope::Project, None) => Some("agent".to_owned()),
        (NoteScope::Project, Some(project)) => Some(format!("project {}", sanitize::one_line(project))),
    };
    let path = note.path.as_deref().map(sanitize::one_line);
    let by = (note.source == ItemSource::Hand && note.scope == NoteScope::Here).then(|| "by hand".to_owned());
    let shown = match note.shown {
        NoteView::Full => None,
        NoteView::Shortened => Some("shortened in the window".to_owned()),
        NoteView::LeftOut => Some("not in the window".to_owned()),
    };
    let all: Vec<String> = [scope, path, by, shown].into_iter().flatten().collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join("; ")) }
}
