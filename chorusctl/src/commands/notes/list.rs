//! `chorusctl notes list`: lists what is known.

use chorus_proto::methods::notes::{List, ListParams, ListResult, NoteKind, NoteScope};

use super::print::{COLUMNS, Kind, Scope, add_rows, write_notes, write_summary};
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{RowArgs, Table};

/// List facts, decisions, open tasks, files and conflicts
///
/// With --columns, --sort or --filter, they are a table.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only notes of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only facts of this scope
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    #[command(flatten)]
    rows: RowArgs,
}

pub fn run(Args { kind, scope, rows }: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::arranged(COLUMNS, &rows, app.stdout.format())?;
    app.page_if_long();
    let conversation = app.conversation();
    let (agent, kind, scope) = (app.agent(), kind.map(NoteKind::from), scope.map(NoteScope::from));
    let params = |offset| ListParams {
        conversation: conversation.clone(),
        agent: agent.clone(),
        kind,
        scope,
        offset: Some(offset),
        limit: None,
    };
    if app.stdout.format() != OutputFormat::Text {
        return print_pages::print_all_pages::<List, _>(app, "notes", &params(0), params);
    }
    let first = app.call::<List>(&params(0))?;
    let ListResult { agent_name, background, summary, mut notes, mut next, .. } = first;
    while let Some(offset) = next {
        let page = app.call::<List>(&params(offset))?;
        next = page.next.filter(|next| *next > offset);
        notes.extend(page.notes);
    }
    if rows.is_given() && !notes.is_empty() {
        add_rows(&mut table, &notes);
        return table.write(&mut app.stdout);
    }
    if kind.is_none() && scope.is_none() {
        write_summary(app, background.as_deref(), summary.as_deref())?;
    }
    write_notes(app, &notes, usize::MAX)?;
    if notes.is_empty() {
        app.stdout.flush()?;
        app.stderr.line(&format!("no notes of {agent_name}; add one: chorusctl notes add TEXT"));
    } else if notes.iter().any(|note| note.kind == NoteKind::Conflict) {
        app.stdout.flush()?;
        app.stderr.hint("resolve a conflict: chorusctl notes resolve N --keep A|B");
    }
    Ok(())
}
