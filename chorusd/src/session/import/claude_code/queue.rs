//! What a person types while the program works, in the two forms that files have it.
//!
//! Each message is noted when it begins to wait and when it stops (`queue-operation`). When a running turn takes it up, newer
//! versions also write an `attachment` of the kind `queued_command`, with a place in the tree; no line of the user follows. One that
//! begins a turn of its own becomes an ordinary line.

use std::borrow::Cow;

use super::super::anthropic::content::{Content, parse_content};
use super::super::json_values::parse_timestamp;
use super::super::raw_object::RawObject;
use super::authorship;
use super::line::{LineKind, Speaker, TranscriptMessage};

/// What happens to the messages that wait.
#[derive(Debug)]
pub(super) enum QueueOperation<'a> {
    /// One begins to wait; `None` where the line does not say which.
    Enqueue(Option<Box<TranscriptMessage<'a>>>),
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
pub(super) fn parse_operation<'a>(fields: &RawObject<'a>) -> LineKind<'a> {
    let said = || fields.get("content").and_then(|raw| parse_content(raw).ok()).filter(|content| !content.is_blank());
    match fields.get_text("operation").as_deref() {
        Some("enqueue") => {
            let talk = said().map(|content| Box::new(TranscriptMessage::from_content(fields, Speaker::User, content)));
            LineKind::QueueOperation(QueueOperation::Enqueue(talk))
        }
        Some("dequeue") => LineKind::QueueOperation(QueueOperation::Dequeue),
        Some("remove") => {
            let absorbed = fields.get_text("reason").is_some_and(|reason| reason == "absorbed_mid_turn");
            LineKind::QueueOperation(QueueOperation::Remove { content: said(), absorbed })
        }
        Some("popAll" | "clear") => LineKind::QueueOperation(QueueOperation::TakeBack),
        _ => LineKind::Bookkeeping,
    }
}

/// Reads a line of type `attachment`; most of them are notes of the program for the model.
pub(super) fn parse_attachment<'a>(fields: &RawObject<'a>) -> LineKind<'a> {
    let Some(attached) = fields.get("attachment").and_then(RawObject::from_value) else { return LineKind::Bookkeeping };
    if attached.get_text("type").is_none_or(|kind| kind != "queued_command") {
        return LineKind::Bookkeeping;
    }
    let Some(prompt) = attached.get("prompt") else {
        return LineKind::Unknown("a queued message without its text".into());
    };
    let content = match parse_content(prompt) {
        Ok(content) if content.is_blank() => return LineKind::Bookkeeping,
        Ok(content) => content,
        Err(reason) => return LineKind::Unknown(reason),
    };
    let by_person = authorship::is_written_by_person(&attached, &content);
    let mut talk = TranscriptMessage::from_content(fields, Speaker::User, content);
    talk.by_person &= by_person;
    talk.timestamp = talk.timestamp.or_else(|| attached.get("timestamp").and_then(parse_timestamp));
    LineKind::QueuedMessage(Box::new(talk))
}

/// What was typed for a line that a command made, as it waited: `/name arguments`, or a command of the shell.
pub(super) fn command_as_typed(text: &str) -> Option<Cow<'_, str>> {
    if let Some(shell) = text_in_tag(text, "bash-input") {
        return Some(shell.trim().into());
    }
    let name = text_in_tag(text, "command-name")?.trim();
    match text_in_tag(text, "command-args").map(str::trim) {
        Some(args) if !args.is_empty() => Some(format!("{name} {args}").into()),
        _ => Some(name.into()),
    }
}

/// What stands between the marks of that name.
fn text_in_tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}
