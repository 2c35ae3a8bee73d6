//! The final messages of a turn in a channel.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::send::SendResult;
use chorus_redact::Redactor;

use crate::commands::{format_hint, mention_people, rewrite_message};
use crate::outbox::{File, MessageBody};
use crate::render::{RenderedText, render_text, split};

/// The message of an error that says that Chorus restarted in the middle of a turn. It is shown without a prefix.
pub(crate) const RESTARTED_MESSAGE: &str = "Chorus restarted while answering.";

/// Returns the messages that show the result of a turn; at least one.
pub(super) fn final_bodies(
    result: &Result<SendResult>,
    so_far: &str,
    stopped_by: Option<&str>,
    redactor: &Redactor,
) -> Vec<MessageBody> {
    let looks = match result {
        Ok(result) => render_text(&redactor.redact_text(&result.reply)),
        Err(failure) => {
            let line = match stopped_by {
                Some(name) => format!("-# Stopped by {}.", collapse_whitespace(name)),
                None => error_text(failure, redactor),
            };
            if so_far.trim().is_empty() {
                RenderedText::Messages(split(&line))
            } else {
                render_text(&redactor.redact_truncated(so_far.to_owned())).with_last_line(&line)
            }
        }
    };
    match looks {
        RenderedText::Messages(parts) => parts.into_iter().map(MessageBody::from_text).collect(),
        RenderedText::File { beginning, file } => {
            let file = Some(File { name: "answer.md".into(), bytes: file });
            vec![MessageBody { content: beginning, buttons: Vec::new(), file }]
        }
    }
}

/// Formats an error and its hint.
fn error_text(failure: &Error, redactor: &Redactor) -> String {
    let message = mention_people(&rewrite_message(&redactor.redact_message(&failure.message)));
    let message = collapse_whitespace(&message);
    let what = if failure.message == RESTARTED_MESSAGE { message } else { format!("**Error:** {message}") };
    match &failure.hint {
        Some(hint) => format!("{what}\n-# {}", collapse_whitespace(&format_hint(&redactor.redact_message(hint)))),
        None => what,
    }
}

/// Joins the words of `text` on one line.
fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
