//! Creates the conversation that a command names with `--conversation` if the agent has none of this name.

use chorus_proto::command_text::is_name;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::context::{Append, Restore};
use chorus_proto::methods::continuation::Resume;
use chorus_proto::methods::conversations::{List, ListParams, New, NewParams};
use chorus_proto::methods::send::Send;
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, ErrorKind, RpcError};
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;

/// The methods that write into a conversation, or put one there.
const METHODS: [&str; 4] = [Append::NAME, Send::NAME, Restore::NAME, Resume::NAME];

/// The shortest name that another one may be meant by.
const MIN_TYPO_CHARS: usize = 3;

/// Returns the name of the conversation to create if `method` writes into it, or `app` is about to, and it failed because
/// the agent has none of this name.
#[must_use]
pub(crate) fn needed(app: &App, method: &str, error: &CallError) -> Option<String> {
    let writes = app.begins_conversation || METHODS.contains(&method);
    let is_unknown = matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::ConversationNotFound);
    // An id is no name.
    app.named_conversation().filter(|name| writes && is_unknown && Uuid::try_parse(name).is_err())
}

/// Creates the conversation `name`, and says so. `unknown` is the error to return if a name that the agent has was
/// probably mistyped.
///
/// # Errors
/// A name is one typo away; the conversation cannot be created; a session that the request needs does not exist.
pub(crate) fn create(app: &mut App, name: &str, unknown: CallError) -> Result<(), Error> {
    let agent = app.agent();
    let all = ListParams { agent: agent.clone(), all: true, ..ListParams::default() };
    let known = app.client()?.call::<List>(&all)?.conversations;
    if let Some(meant) = known.iter().find(|known| is_typo(name, &known.name)) {
        let mut hint = format!("did you mean `{}`?", meant.name);
        if is_name(name) {
            let of_agent = app.global.agent.as_ref().map_or_else(String::new, |agent| format!("--agent {agent} "));
            hint.push_str(&format!(" To create {name}: chorusctl {of_agent}conversations new {name}"));
        }
        return Err(Error::from(unknown).with_hint(hint));
    }
    if let Some(session) = app.needed_session.clone() {
        // Nothing is created for a session that does not exist.
        let params = GetParams { agent: agent.clone(), session, limit: Some(0), ..GetParams::default() };
        app.client()?.call::<Get>(&params)?;
    }
    match app.client()?.call::<New>(&NewParams { agent, name: name.to_owned(), ..NewParams::default() }) {
        Ok(_) => {}
        // Another command has created it in the meantime.
        Err(CallError::Rpc(RpcError { data: Some(data), .. })) if data.kind == ErrorKind::AlreadyExists => {
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    if !app.global.quiet {
        app.stderr.line(&format!("created conversation {name}"));
    }
    Ok(())
}

/// Returns true if `typed` differs from `known` by one slip of a finger. Names that differ in their digits, such as `fix-1` and
/// `fix-2`, are meant.
fn is_typo(typed: &str, known: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    typed.len().min(known.len()) >= MIN_TYPO_CHARS
        && letters(typed) != letters(known)
        && strsim::damerau_levenshtein(typed, known) == 1
}

#[cfg(test)]
mod tests {
    use super::is_typo;

    #[test]
    fn a_slip_is_told_from_another_name() {
        for (typed, known) in [("revew", "review"), ("reveiw", "review"), ("reviews", "review"), ("mian", "main")] {
            assert!(is_typo(typed, known), "{typed}");
        }
        for (typed, known) in
            [("review", "review"), ("fix-2", "fix-1"), ("fix-12", "fix-1"), ("b", "a"), ("api", "web")]
        {
            assert!(!is_typo(typed, known), "{typed}");
        }
    }
}
