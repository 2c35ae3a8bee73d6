//! `chorusctl notes list`: lists what is known.

use chorus_proto::methods::notes::{List, ListParams, ListResult, NoteKind, NoteScope};

use super::print::{Kind, Scope, write_notes, write_summary};
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;

/// List facts, decisions, open tasks, files and conflicts
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only notes of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only facts of this scope
    #[arg(long, value_enum)]
    scope: Option<Scope>,
}

pub fn run(Args { kind, scope }: Args, app: &mut App) -> Result<(), Error> {
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
