//! `chorusctl context compact`: saves the context and continues from its summary.

use chorus_proto::methods::continuation::{Compact, CompactParams};
use chorus_proto::{ItemSource, Receipt, Session};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::units::{format_token_count, pluralize};
use crate::ui::{Stdout, sanitize};

/// Save, then continue in a new conversation from its summary
///
/// Nothing is lost: the saved session contains every message. The new conversation starts with the summary, decisions, open tasks and
/// pinned facts. Chorus also compacts a long conversation automatically, above `compact_at_tokens`: the model then sees the working set
/// instead of the older messages, which stay in the conversation. `--undo` undoes the newest compaction. If it was automatic, the model
/// sees the older messages again. If you ran it, the saved messages are live again, followed by the messages since then.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Undo the newest compaction, manual or automatic
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = CompactParams { conversation: app.conversation(), agent: app.agent(), undo: args.undo };
    app.call_and_print::<Compact>(&params, |app, result| {
        for warning in &result.warnings {
            app.stderr.warning(warning);
        }
        if let Some(session) = result.session.as_ref().filter(|_| !args.undo) {
            let line = format!("saved {}", format::session(&app.stdout, session));
            app.stdout.status_line(&line)?;
        }
        let line = match result.session.as_ref().filter(|_| args.undo) {
            Some(session) => describe_manual_undo(&app.stdout, session, result.messages),
            None => describe_receipt(&result.receipt, args.undo),
        };
        app.stdout.status_line(&line)?;
        format::print_paragraph(&mut app.stdout, result.acknowledgement.as_deref().unwrap_or_default())?;
        if !args.undo {
            print_notes(app, &result.receipt);
        }
        Ok(())
    })
}

/// Prints why rules made the working set instead of a model, which tasks are done, and facts worth remembering. Facts
/// are only suggested, never stored automatically.
fn print_notes(app: &App, receipt: &Receipt) {
    if let Some(why) = &receipt.fallback {
        let who = if receipt.source == Some(ItemSource::Model) { "the model and " } else { "" };
        app.stderr.line(&format!("used {who}the built-in summarizer: {}", sanitize::one_line(why)));
    }
    for task in &receipt.done {
        app.stderr.line(&format!("completed: {}", sanitize::one_line(task)));
    }
    for fact in &receipt.offered {
        app.stderr.line(&format!("suggested memory: {}", sanitize::one_line(fact)));
    }
    if !receipt.offered.is_empty() {
        app.stderr.hint("remember one for later conversations: chorusctl memory add TEXT");
    }
}

/// Formats what the undo of a compaction by hand has done. `live` is the number of messages now.
fn describe_manual_undo(out: &Stdout, session: &Session, live: u64) -> String {
    let saved = session.header.message_count;
    let since = match live.saturating_sub(saved) {
        0 => String::new(),
        since => format!(", followed by {} since then", pluralize(since, "message")),
    };
    format!(
        "undid the compaction: {} of {} live again{since}",
        pluralize(saved, "message"),
        format::session_name(out, session)
    )
}

/// Formats a receipt as one line.
pub fn describe_receipt(receipt: &Receipt, undone: bool) -> String {
    let left = pluralize(receipt.left, "message");
    if undone {
        return format!("restored {left} to the model's window");
    }
    let (before, after) = (format_token_count(receipt.tokens_before), format_token_count(receipt.tokens_after));
    let pins = match receipt.pins.len() as u64 {
        0 => String::new(),
        pins => format!("; kept {}", pluralize(pins, "pinned fact")),
    };
    format!("compacted {left} ({before}) to {after}{pins}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_what_went_and_what_stayed() {
        let receipt = Receipt { tokens_before: 12_400, tokens_after: 300, left: 120, ..Receipt::default() };
        assert_eq!(describe_receipt(&receipt, false), "compacted 120 messages (~12k tokens) to 300 tokens");
        let pinned = Receipt { pins: vec!["a".into()], ..receipt };
        assert!(describe_receipt(&pinned, false).ends_with("; kept 1 pinned fact"));
        assert_eq!(describe_receipt(&pinned, true), "restored 120 messages to the model's window");
    }
}
