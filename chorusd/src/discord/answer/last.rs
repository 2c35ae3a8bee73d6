//! How a turn ends in a channel.

use chorus_proto::methods::send::SendResult;

use crate::discord::commands::here;
use crate::discord::posts::{Body, File};
use crate::discord::render::{Shown, shown, split};
use crate::failure::{Failure, Result};
use crate::redact::Redactor;

/// The messages that an answer is in the end; at least one.
pub fn bodies(result: &Result<SendResult>, so_far: &str, stopped_by: Option<&str>, redactor: &Redactor) -> Vec<Body> {
    let looks = match result {
        Ok(result) => shown(&redactor.text(&result.reply)),
        Err(failure) => {
            let line = match stopped_by {
                Some(name) => format!("-# Stopped by {}.", plain(name)),
                None => told(failure, redactor),
            };
            if so_far.trim().is_empty() {
                Shown::Parts(split(&line))
            } else {
                shown(&redactor.cut_text(so_far.to_owned())).ending(&line)
            }
        }
    };
    match looks {
        Shown::Parts(parts) => parts.into_iter().map(Body::text).collect(),
        Shown::File { beginning, file } => {
            let file = Some(File { name: "answer.md".into(), bytes: file });
            vec![Body { content: beginning, buttons: Vec::new(), file }]
        }
    }
}

/// What happened, and what to do.
fn told(failure: &Failure, redactor: &Redactor) -> String {
    let what = format!("**Error:** {}", plain(&redactor.message(&failure.message)));
    match &failure.hint {
        Some(hint) => format!("{what}\n-# {}", here(&plain(&redactor.message(hint)))),
        None => what,
    }
}

/// On one line.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
