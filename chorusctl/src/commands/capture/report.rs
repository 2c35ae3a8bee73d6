//! Prints what is captured, from where, and what could not be read.

use chorus_proto::methods::capture::{CaptureFailure, SourceStatus, StatusResult, UnreadLine};
use chorus_proto::shell_word::shell_word;

use crate::app::App;
use crate::error::Error;
use crate::ui::units::{group_digits, pluralize};
use crate::ui::{Cell, Column, Table, sanitize};

pub(super) const COLUMNS: [Column; 6] = [
    Column::new("SOURCE"),
    Column::new("CAPTURE"),
    Column::new("CONVERSATIONS").align_right(),
    Column::new("MESSAGES").align_right(),
    Column::new("LAST WRITTEN").whole(),
    Column::new("PLACE").flexible().optional(),
];

/// Prints a table of the sources, then what needs attention.
pub(super) fn print(mut table: Table, app: &mut App, status: &StatusResult) -> Result<(), Error> {
    let is_shown = |source: &&SourceStatus| source.found || source.conversations > 0 || status.sources.len() == 1;
    for source in status.sources.iter().filter(is_shown) {
        let state = match (source.on, status.paused) {
            (true, false) => "on",
            (true, true) => "paused",
            (false, _) => "off",
        };
        let written = source
            .last_written_at
            .map(|at| Cell::from(app.stdout.clock().ago(at)).sorted_by_time(at))
            .unwrap_or_default();
        table.add_row([
            sanitize::one_line(&source.source).into(),
            state.into(),
            group_digits(if is_imported(source) { 0 } else { source.conversations }).into(),
            group_digits(if is_imported(source) { 0 } else { source.messages }).into(),
            written,
            place(source).into(),
        ]);
    }
    if status.sources.iter().any(|source| is_shown(&source)) {
        table.write(&mut app.stdout)?;
    }
    let absent = |on: bool| {
        let absent = status.sources.iter().filter(|source| !is_shown(source) && source.on == on);
        absent.map(|source| sanitize::one_line(&source.source)).collect::<Vec<_>>().join(", ")
    };
    for (names, then) in [(absent(true), "; they are captured when they appear"), (absent(false), "")] {
        if !names.is_empty() {
            app.stdout.status_line(&format!("not found here: {names}{then}"))?;
        }
    }
    let imported = status.sources.iter().filter(|source| is_imported(source));
    let imported: Vec<String> = imported
        .map(|source| format!("{} ({})", sanitize::one_line(&source.source), group_digits(source.conversations)))
        .collect();
    if !imported.is_empty() {
        app.stdout.status_line(&format!("imported without capture: {}", imported.join(", ")))?;
    }
    if status.pending > 0 {
        app.stdout.status_line(&format!("{} still to read", pluralize(status.pending, "transcript")))?;
    }
    for source in &status.sources {
        print_deletion(app, source)?;
        print_problems(app, source);
    }
    if !status.redact {
        app.stdout.status_line("secrets are kept (--no-redact)")?;
    }
    for path in &status.excluded {
        app.stdout.status_line(&format!("excluded: {}", sanitize::one_line(path)))?;
    }
    Ok(())
}

/// Returns true if all of its conversations were imported: capture has never read a transcript of it.
fn is_imported(source: &SourceStatus) -> bool {
    source.conversations > 0 && source.files == 0 && source.last_written_at.is_none()
}

/// Returns the first place, below `~` if it is in the user's home.
fn place(source: &SourceStatus) -> String {
    let place = source.places.first().map(String::as_str).unwrap_or_default();
    let home = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
    let below = home.and_then(|home| place.strip_prefix(&home).filter(|rest| rest.starts_with('/')));
    sanitize::one_line(&below.map_or_else(|| place.to_owned(), |rest| format!("~{rest}")))
}

fn print_deletion(app: &mut App, source: &SourceStatus) -> Result<(), Error> {
    let Some(deletion) = source.deletion.as_ref().filter(|_| source.on) else { return Ok(()) };
    let kept = match deletion.not_captured {
        0 => "all are captured".to_owned(),
        count => format!("{} not captured", group_digits(count)),
    };
    app.stdout.status_line(&format!(
        "{} will delete {} within {} days: {kept}",
        sanitize::one_line(&source.source),
        pluralize(deletion.transcripts, "transcript"),
        deletion.within_days,
    ))
}

fn print_problems(app: &mut App, source: &SourceStatus) {
    let name = sanitize::one_line(&source.source);
    if let Some(used) = source.used_since {
        let written = source.last_written_at.map(|at| app.stdout.clock().ago(at)).unwrap_or_default();
        let used = app.stdout.clock().ago(used);
        app.stderr.warning(&format!("{name}: used {used}, but its last transcript was written {written}"));
        app.stderr.hint("it may keep its conversations elsewhere now; see docs/CAPTURE.md");
    }
    for CaptureFailure { path, reason } in &source.unreadable {
        let (path, reason) = (sanitize::one_line(path), sanitize::one_line(reason));
        app.stderr.warning(&format!("{name}: cannot list {path}: {reason}"));
        app.stderr
            .hint(&format!("allow it, then run: chorusctl capture on (for example: chmod u+rx {})", shell_word(&path)));
    }
    if source.skipped_lines > 0 {
        let lines = pluralize(source.skipped_lines, "line");
        let example = source.skipped.as_ref().map(|UnreadLine { path, line, reason }| {
            format!(", for example {} line {line}: {}", sanitize::one_line(path), sanitize::one_line(reason))
        });
        app.stderr.warning(&format!("{name}: {lines} could not be read{}", example.unwrap_or_default()));
    }
    print_failures(app, source, &name);
}

fn print_failures(app: &mut App, source: &SourceStatus, name: &str) {
    let unsaved = source.unsaved.unwrap_or(0);
    let unread = source.failed.saturating_sub(unsaved);
    let example = source.failure.as_ref().map(|failure| {
        format!(", for example {}: {}", sanitize::one_line(&failure.path), sanitize::one_line(&failure.reason))
    });
    let mut example = example.unwrap_or_default();
    if unread > 0 {
        let files = pluralize(unread, "transcript");
        app.stderr.warning(&format!("{name}: {files} could not be read{}", std::mem::take(&mut example)));
    }
    if unsaved > 0 {
        let files = pluralize(unsaved, "transcript");
        app.stderr.warning(&format!("{name}: {files} could not be saved{example}"));
        app.stderr
            .hint("free disk space, then save them at once: chorusctl capture on (Chorus tries every 10 minutes)");
    }
}
