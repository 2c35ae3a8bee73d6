//! What a person types while the program works, in the two forms that files have it.
//!
//! Each message is noted when it begins to wait and when it stops (`queue-operation`). When a running turn takes it up, newer
//! versions also write an `attachment` of the kind `queued_command`, with a place in the tree; no line of the user follows. One that
//! begins a turn of its own becomes an ordinary line.

use std::borrow::Cow;

use super::super::anthropic::content::{Content, content};
use super::super::fields::Fields;
use super::super::values::timestamp;
use super::line::{Kind, Speaker, Talk};
use super::person;

/// What happens to the messages that wait.
#[derive(Debug)]
pub(super) enum Operation<'a> {
    /// One begins to wait; `None` where the line does not say which.
    Enqueue(Option<Box<Talk<'a>>>),
    /// The one that waits longest begins a turn, as an ordinary line of the user.
    Dequeue,
    /// One waits no more: it was taken up by the running turn, or deleted.
    Remove {
        content: Option<Content<'a>>,
        /// The line says that the turn took it up.
        absorbed: bool,
    },
    /// All go back to where they were typed.
    TakeBack,
}

/// Reads a line of type `queue-operation`.
pub(super) fn operation<'a>(fields: &Fields<'a>) -> Kind<'a> {
    let said = || fields.get("content").and_then(|raw| content(raw).ok()).filter(|content| !content.is_blank());
    match fields.text("operation").as_deref() {
        Some("enqueue") => {
            let talk = said().map(|content| Box::new(Talk::words(fields, Speaker::User, content)));
            Kind::Queue(Operation::Enqueue(talk))
        }
        Some("dequeue") => Kind::Queue(Operation::Dequeue),
        Some("remove") => {
            let absorbed = fields.text("reason").is_some_and(|reason| reason == "absorbed_mid_turn");
            Kind::Queue(Operation::Remove { content: said(), absorbed })
        }
        Some("popAll" | "clear") => Kind::Queue(Operation::TakeBack),
        _ => Kind::Note,
    }
}

/// Reads a line of type `attachment`; most of them are notes of the program for the model.
pub(super) fn attachment<'a>(fields: &Fields<'a>) -> Kind<'a> {
    let Some(attached) = fields.get("attachment").and_then(Fields::of) else { return Kind::Note };
    if attached.text("type").is_none_or(|kind| kind != "queued_command") {
        return Kind::Note;
    }
    let Some(prompt) = attached.get("prompt") else { return Kind::Unknown("a queued message without its text".into()) };
    let content = match content(prompt) {
        Ok(content) if content.is_blank() => return Kind::Note,
        Ok(content) => content,
        Err(reason) => return Kind::Unknown(reason),
    };
    let by_person = person::wrote(&attached, &content);
    let mut talk = Talk::words(fields, Speaker::User, content);
    talk.by_person &= by_person;
    talk.timestamp = talk.timestamp.or_else(|| attached.get("timestamp").and_then(timestamp));
    Kind::Queued(Box::new(talk))
}

/// What was typed for a line that a command made, as it waited: `/name arguments`, or a command of the shell.
pub(super) fn typed_command(text: &str) -> Option<Cow<'_, str>> {
    if let Some(shell) = between(text, "bash-input") {
        return Some(shell.trim().into());
    }
    let name = between(text, "command-name")?.trim();
    match between(text, "command-args").map(str::trim) {
        Some(args) if !args.is_empty() => Some(format!("{name} {args}").into()),
        _ => Some(name.into()),
    }
}

/// What stands between the marks of that name.
fn between<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}
