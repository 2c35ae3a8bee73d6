//! Parses the lines about messages that the user types while the program works, which exist in two forms.
//!
//! A `queue-operation` line records when each message enters and leaves the queue. If a running turn takes a message
//! up, newer versions also write an `attachment` line of the kind `queued_command`, which has a position in the tree,
//! and no user's line follows. A message that begins a turn of its own becomes an ordinary user's line.

use std::borrow::Cow;

use super::super::anthropic_blocks::content::{Content, parse_content};
use super::super::json_values::parse_timestamp;
use super::super::raw_object::RawObject;
use super::authorship;
use super::line::{LineKind, Speaker, TranscriptMessage};

/// A change to the queue of typed messages.
#[derive(Debug)]
pub(super) enum QueueOperation<'a> {
    /// A message enters the queue. `None` if the line does not contain it.
    Enqueue(Option<Box<TranscriptMessage<'a>>>),
    /// The oldest message leaves the queue and becomes an ordinary user's line.
    Dequeue,
    /// A message leaves the queue: the running turn took it up, or it was deleted.
    Remove {
        content: Option<Content<'a>>,
        /// The line says that the turn took it up.
        absorbed: bool,
    },
    /// All messages return to the input field.
    TakeBack,
}

/// Parses a line of type `queue-operation`.
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

/// Parses a line of type `attachment`. Most are notes of the program for the model.
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

/// Returns what the user typed for a line that a command wrote: `/name arguments`, or a shell command.
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

/// Returns the text inside the tag `name`.
fn text_in_tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}
