//! `chorusctl context compact`.

use chorus_proto::methods::chain::{Compact, CompactParams};
use chorus_proto::{ItemSource, Receipt};

use crate::app::App;
use crate::commands::describe;
use crate::error::Failure;
use crate::ui::safe;
use crate::ui::words::{count, count_tokens};

/// Save the conversation, and go on from its summary in a fresh one
///
/// Nothing is lost: the session that is saved has every message. What goes on is its summary, decisions, open tasks and pinned
/// facts. Long conversations are also compacted by themselves, above `compact_at_tokens`: older messages give way to the working
/// set then, and stay in the conversation; `--undo` shows them to the model again.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Take the last compaction of the window back
    #[arg(long)]
    undo: bool,
}

/// Compacts it.
///
/// # Errors
/// Why it was not compacted.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let params = CompactParams { agent: app.agent(), undo: args.undo };
    app.answer::<Compact>(&params, |app, result| {
        for warning in &result.warnings {
            app.notes.warning(warning);
        }
        if let Some(session) = &result.session {
            let line = format!("saved {}", describe::session(&app.out, session));
            app.out.done(&line)?;
        }
        app.out.done(&told(&result.receipt, args.undo))?;
        describe::paragraph(&mut app.out, result.acknowledgement.as_deref().unwrap_or_default())?;
        if !args.undo {
            offer(app, &result.receipt);
        }
        Ok(())
    })
}

/// Why no model did it, or not all of it, where there is one, and what could be remembered: nothing is, by itself.
fn offer(app: &App, receipt: &Receipt) {
    if let Some(why) = &receipt.fallback {
        let who = if receipt.source == Some(ItemSource::Model) { "by the model and by rules" } else { "by rules" };
        app.notes.line(&format!("the working set is made {who}: {}", safe::one_line(why)));
    }
    for task in &receipt.done {
        app.notes.line(&format!("no longer open: {}", safe::one_line(task)));
    }
    for fact in &receipt.offered {
        app.notes.line(&format!("may be worth remembering: {}", safe::one_line(fact)));
    }
    if !receipt.offered.is_empty() {
        app.notes.hint("chorusctl memory add TEXT keeps one for later conversations");
    }
}

/// A receipt in a line.
pub fn told(receipt: &Receipt, undone: bool) -> String {
    let left = count(receipt.left, "message");
    if undone {
        return format!("{left} can be shown to the model again");
    }
    let (before, after) = (count_tokens(receipt.tokens_before), count_tokens(receipt.tokens_after));
    let pins = match receipt.pins.len() as u64 {
        0 => String::new(),
        pins => format!("; {} stayed", count(pins, "pinned fact")),
    };
    format!("compacted: {left}, {before}, gave way to {after}{pins}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_what_went_and_what_stayed() {
        let receipt = Receipt { tokens_before: 12_400, tokens_after: 300, left: 120, ..Receipt::default() };
        assert_eq!(told(&receipt, false), "compacted: 120 messages, ~12k tokens, gave way to 300 tokens");
        let pinned = Receipt { pins: vec!["a".into()], ..receipt };
        assert!(told(&pinned, false).ends_with("; 1 pinned fact stayed"));
        assert_eq!(told(&pinned, true), "120 messages can be shown to the model again");
    }
}
