//! `chorusctl context resume`.

use std::fs;
use std::path::Path;

use chorus_proto::methods::chain::{Resume, ResumeParams, ResumeResult};
use chorus_proto::methods::import::{CommitResult, ImportFormat};
use chorus_proto::methods::session::{Get, GetParams};

use crate::app::{App, read};
use crate::commands::describe;
use crate::commands::session::import;
use crate::error::Failure;
use crate::ui::words::count;

/// Go on from a saved conversation's summary, in a fresh one
///
/// The new conversation knows the old one by its summary, its decisions, open tasks and pinned facts, and opens with an
/// acknowledgement: the model's, or without a model Chorus's own. Unsaved messages of the live conversation are saved first. A
/// session is named as for `restore`; a file (a name with a `/` or an ending) is imported first.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or a file with one
    #[arg(value_name = "SESSION|FILE")]
    session: String,
}

/// Resumes it.
///
/// # Errors
/// Why it was not resumed.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = params(args.session, app)?;
    app.answer::<Resume>(&params, |app, result| {
        warn(app, &result);
        describe::saved_first(&mut app.out, result.saved_first.as_ref())?;
        let line = format!("resumed {}", describe::name(&app.out, &result.session));
        app.out.done(&line)?;
        describe::paragraph(&mut app.out, &result.acknowledgement)
    })
}

/// Resumes `session` before a conversation, whose output is for replies: what is to be said goes to standard error.
///
/// # Errors
/// As [`run`].
pub fn beside(session: &str, app: &mut App) -> Result<(), Failure> {
    let params = params(session.to_owned(), app)?;
    let result = app.call::<Resume>(&params)?;
    warn(app, &result);
    if app.out.quiet() {
        return Ok(());
    }
    if let Some(before) = &result.saved_first {
        app.notes.line(&format!("the live conversation is kept: {}", describe::plain(before)));
    }
    app.notes.line(&format!("resumed {}", describe::plain_name(&result.session)));
    Ok(())
}

fn params(session: String, app: &mut App) -> Result<ResumeParams, Failure> {
    let session = if is_file(&session) { from_file(&session, app)? } else { session };
    Ok(ResumeParams { agent: app.agent(), session })
}

fn warn(app: &App, result: &ResumeResult) {
    for warning in &result.warnings {
        app.notes.warning(warning);
    }
}

/// No name of a session has a slash or a dot.
fn is_file(session: &str) -> bool {
    session.contains(['/', '.'])
}

/// The session that a file is, or becomes.
fn from_file(file: &str, app: &mut App) -> Result<String, Failure> {
    if let Err(error) = fs::metadata(file) {
        return Err(
            Failure::file(file, &error).hint("a session has no slash or dot in its name: `chorusctl context history`")
        );
    }
    if let Some(known) = known(file, app) {
        return Ok(known);
    }
    let imported: CommitResult = read(&import::import(app, file, ImportFormat::Auto, false)?)?;
    import::warn(app, None, &imported);
    match &imported.sessions[..] {
        [session] => {
            let line = format!("imported {}", describe::session(&app.out, session));
            if !app.out.quiet() {
                app.notes.line(&line);
            }
            Ok(session.header.id.to_string())
        }
        sessions => {
            Err(Failure::usage(format!("{file} holds {}; which one?", count(sessions.len() as u64, "session")))
                .hint("they are saved now: `chorusctl context history` shows them, resume one of them"))
        }
    }
}

/// The id of the session that this very file is, here.
fn known(file: &str, app: &mut App) -> Option<String> {
    let stem = Path::new(file).file_stem()?.to_str()?.to_owned();
    let params = GetParams { agent: app.agent(), session: stem, limit: Some(0), ..GetParams::default() };
    let session = app.call::<Get>(&params).ok()?.session;
    let same = fs::canonicalize(file).ok()? == fs::canonicalize(&session.file_path).ok()?;
    same.then(|| session.header.id.to_string())
}

#[cfg(test)]
mod tests {
    use super::is_file;

    #[test]
    fn files_are_told_from_sessions_by_their_names() {
        for session in ["latest", "latest~2", "3", "2026-02-12_auth-refactor-2", "1f3a9c02-0000-4000-8000-000000000000"]
        {
            assert!(!is_file(session), "{session}");
        }
        assert!(is_file("talk.jsonl") && is_file("./talk") && is_file("/tmp/talk"));
    }
}
