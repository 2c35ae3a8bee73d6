//! `chorusctl context append`: adds messages without calling a model.

use chorus_proto::error::exit;
use chorus_proto::methods::context::Append;
use chorus_proto::{NewMessage, Role};
use serde::Serialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::app::App;
use crate::commands::message_role::MessageRole;
use crate::commands::{format, text_input};
use crate::error::Error;
use crate::ui::units::pluralize;

/// Add messages without calling a model
///
/// The message is TEXT or standard input, unchanged. With --jsonl, each line is one message: a JSON object with `role`, `content` and the
/// other fields of a message. Either all lines are added or none.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Message; reads standard input if it is `-` or missing
    #[arg(value_name = "TEXT|-", allow_hyphen_values = true)]
    text: Option<String>,
    /// Author of the message
    #[arg(long, value_enum, default_value_t, conflicts_with = "jsonl")]
    role: MessageRole,
    /// Read one message per line, as JSON
    #[arg(long)]
    jsonl: bool,
    /// Idempotency key: repeating an append with the same key adds nothing and returns the first result
    #[arg(long)]
    key: Option<String>,
    /// Redact secrets (default: keep and report them)
    #[arg(long)]
    redact: bool,
}

/// Parameters of `context.append` with the messages as unparsed JSON.
#[derive(Debug, Serialize)]
struct Params<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redact: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let text = match text_input::text_argument(args.text, "context append", "append")? {
        Some(text) => text,
        None => text_input::read_stdin()?,
    };
    // An empty tool result is valid: a tool may print nothing.
    if text.is_empty() && (args.jsonl || !matches!(args.role, MessageRole::ToolResult)) {
        return Err(Error::usage("the message is empty").with_hint("chorusctl context append TEXT, or pipe it in"));
    }
    let (agent, conversation, key, redact) = (app.agent(), app.conversation(), args.key, args.redact);
    let mut params = Params { agent, conversation, text: None, role: None, messages: Vec::new(), key, redact };
    if args.jsonl {
        params.messages = parse_messages(&text)?;
    } else {
        params.text = Some(&text);
        params.role = Some(args.role.into());
    }
    let printed = app.call_and_print::<Append>(&params, |app, result| {
        let line = format!("appended {} ({} total)", pluralize(result.appended, "message"), result.messages);
        app.stdout.status_line(&line)?;
        if let Some(note) = result.note.filter(|_| !app.global.quiet) {
            app.stderr.line(&note);
        }
        match result.secrets_found.filter(|found| *found > 0) {
            Some(found) if redact => app.stderr.line(&format!("redacted {}", pluralize(found, "secret"))),
            Some(found) => {
                app.stderr.hint(&format!("{}; use --redact to remove secrets", format::found_secrets(found)));
            }
            None => {}
        }
        Ok(())
    });
    if args.jsonl {
        app.done = app.done.map(|_| "the messages were appended");
    }
    printed
}

/// Parses one message per line; skips empty lines.
fn parse_messages(text: &str) -> Result<Vec<&RawValue>, Error> {
    let mut messages = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // serde would accept a JSON list as the fields of a message in their order. Replace it, so that parsing fails.
        let line = if line.trim_start().starts_with('[') { "0" } else { line };
        let wrong = |error: serde_json::Error| {
            let line = at + 1;
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            Error::usage(match error.classify() {
                Category::Data => format!("line {line}: {reason}; nothing was appended"),
                _ => format!("line {line} is not valid JSON; nothing was appended"),
            })
            .with_hint(r#"each line is one JSON object, e.g. {"role":"user","content":"hello"}"#)
        };
        // Parse each line to report which one is invalid, but send it unchanged.
        serde_json::from_str::<NewMessage>(line).map_err(wrong)?;
        messages.push(serde_json::from_str(line).map_err(wrong)?);
    }
    if messages.is_empty() {
        return Err(Error::new(exit::NOTHING_TO_DO, "no messages to append")
            .with_hint(r#"each line is one JSON object, e.g. {"role":"user","content":"hello"}"#));
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sent_as_they_came() -> Result<(), Error> {
        let text = "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"name\":\"n\",\"params\":{\"x\":1.10}}]}\n\n {\"content\":\"b\"}\r\n";
        let read = parse_messages(text)?;
        assert_eq!(read.len(), 2);
        assert!(read[0].get().ends_with("{\"x\":1.10}}]}"));
        Ok(())
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in ["{", "[]", "\"text\"", "{\"role\":\"robot\"}", "{\"contents\":\"\"}", "{\"content\":1}"] {
            let text = format!("{{}}\n\n{bad}\n");
            let taken = parse_messages(&text).map_err(|failure| (failure.exit_status(), format!("{failure:?}")));
            let Err((status, told)) = taken else { panic!("{bad} was taken") };
            assert_eq!(status, exit::USAGE);
            assert!(told.contains("line 3") && !told.contains("at line 1"), "{told}");
        }
    }
}
