//! `chorusctl context resume`: continues from a session's summary in a new context.

use std::fs;
use std::path::Path;

use chorus_proto::methods::continuation::{Resume, ResumeParams, ResumeResult};
use chorus_proto::methods::import::{CommitResult, ImportFormat};
use chorus_proto::methods::session::{Get, GetParams};

use crate::app::{App, parse_result};
use crate::commands::format;
use crate::commands::session::file_import::{ImportOptions, import_file};
use crate::commands::session::import;
use crate::error::Error;
use crate::ui::units::pluralize;

/// How a file is imported whose conversation is resumed.
const AS_IT_IS: ImportOptions = ImportOptions {
    from: ImportFormat::Auto,
    redact: false,
    skip_known: false,
    as_capture: false,
    has_progress_bar: true,
};

/// Start a new conversation from a saved one's summary
///
/// The new conversation starts with the summary, decisions, open tasks and pinned facts of the saved one, and an opening message from the
/// model (or from Chorus, if there is no model). Unsaved messages of the live conversation are saved first. The session is named as for
/// `restore`; a file (its name has a `/` or an extension) is imported first.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation, or a file that contains one
    #[arg(value_name = "SESSION|FILE")]
    session: String,
    /// Start it as a new conversation with this name; the live one is unchanged
    #[arg(long, value_name = "NAME")]
    as_conversation: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = ResumeParams { as_conversation: args.as_conversation, ..build_params(args.session, app)? };
    app.call_and_print::<Resume>(&params, |app, result| {
        print_warnings(app, &result);
        format::print_saved_first(&mut app.stdout, result.saved_first.as_ref())?;
        let into = format::into_conversation(params.as_conversation.as_deref());
        let line = format!("resumed {}{into}", format::session_name(&app.stdout, &result.session));
        app.stdout.status_line(&line)?;
        format::print_paragraph(&mut app.stdout, &result.acknowledgement)?;
        format::print_destination(&mut app.stdout, params.as_conversation.as_deref())
    })
}

/// Resumes `session` at the start of a chat. Prints to standard error, because a chat's standard output is for replies.
pub fn run_for_chat(session: &str, app: &mut App) -> Result<(), Error> {
    let params = build_params(session.to_owned(), app)?;
    let result = app.call::<Resume>(&params)?;
    print_warnings(app, &result);
    if app.stdout.is_quiet() {
        return Ok(());
    }
    if let Some(before) = &result.saved_first {
        app.stderr.line(&format!("saved the previous conversation as {}", format::plain_session(before)));
    }
    app.stderr.line(&format!("resumed {}", format::plain_session_name(&result.session)));
    Ok(())
}

fn build_params(session: String, app: &mut App) -> Result<ResumeParams, Error> {
    let session = if is_file_name(&session) { session_of_file(&session, app)? } else { session };
    app.needed_session = Some(session.clone());
    Ok(ResumeParams { as_conversation: None, conversation: app.conversation(), agent: app.agent(), session })
}

fn print_warnings(app: &App, result: &ResumeResult) {
    for warning in &result.warnings {
        app.stderr.warning(warning);
    }
}

/// Returns true if `session` is a file name: it contains a slash or a dot, and a session's name never does.
fn is_file_name(session: &str) -> bool {
    session.contains(['/', '.'])
}

/// Returns the session of a file, importing it if it is not in this home yet.
fn session_of_file(file: &str, app: &mut App) -> Result<String, Error> {
    if let Err(error) = fs::metadata(file) {
        return Err(
            Error::for_file(file, &error).with_hint("to resume a session by name, list them: chorusctl history")
        );
    }
    if let Some(known) = find_own_session(file, app) {
        return Ok(known);
    }
    let imported: CommitResult = parse_result(&import_file(app, file, AS_IT_IS)?)?;
    import::print_warning(app, None, &imported);
    match &imported.sessions[..] {
        [session] => {
            let line = format!("imported {}", format::session(&app.stdout, session));
            if !app.stdout.is_quiet() {
                app.stderr.line(&line);
            }
            Ok(session.header.id.to_string())
        }
        sessions => {
            Err(Error::usage(format!("{file} contains {}: which one?", pluralize(sessions.len() as u64, "session")))
                .with_hint("they were imported; list them: chorusctl history"))
        }
    }
}

/// Returns the id if `file` is the file of a session of this home.
fn find_own_session(file: &str, app: &mut App) -> Option<String> {
    if app.is_remote() {
        return None;
    }
    let name = Path::new(file).file_name()?.to_str()?;
    let stem = name.trim_end_matches(".gz").trim_end_matches(".json").to_owned();
    let params = GetParams { agent: app.agent(), session: stem, limit: Some(0), ..GetParams::default() };
    let session = app.call::<Get>(&params).ok()?.session;
    let same = fs::canonicalize(file).ok()? == fs::canonicalize(&session.file_path).ok()?;
    same.then(|| session.header.id.to_string())
}

#[cfg(test)]
mod tests {
    use super::is_file_name;

    #[test]
    fn files_are_told_from_sessions_by_their_names() {
        for session in ["latest", "latest~2", "3", "2026-02-12_auth-refactor-2", "1f3a9c02-0000-4000-8000-000000000000"]
        {
            assert!(!is_file_name(session), "{session}");
        }
        assert!(is_file_name("talk.jsonl") && is_file_name("./talk") && is_file_name("/tmp/talk"));
    }
}
