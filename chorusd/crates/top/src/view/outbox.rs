//! Messages that are not in their conversation yet, below what is.

use chorus_proto::pluralize::pluralize;
use chorus_terminal_text::{sanitize, text};
use ratatui_core::text::Span;

use super::paint::{Paint, cut};
use crate::outbox::{Delivery, Outbox, OutboxEntry};

/// The limit on lines of a message.
const MAX_LINES: usize = 3;

/// Returns the lines of an outbox, at most `most`. The newest messages are the last.
pub(super) fn lines(outbox: &Outbox, paint: Paint, columns: usize, most: usize) -> Vec<Vec<Span<'static>>> {
    let mut lines: Vec<_> =
        outbox.entries().iter().flat_map(|entry| entry_lines(entry, paint, columns.saturating_sub(2))).collect();
    let hidden = lines.len().saturating_sub(most);
    lines.drain(..hidden);
    lines
}

fn entry_lines(entry: &OutboxEntry, paint: Paint, columns: usize) -> Vec<Vec<Span<'static>>> {
    let is_refused = matches!(entry.delivery, Delivery::Refused(_));
    let state = match &entry.delivery {
        Delivery::Sending => "sending …".to_owned(),
        Delivery::Unconfirmed(_) => "not confirmed; sent again".to_owned(),
        Delivery::Queued(0) => "queued".to_owned(),
        Delivery::Queued(before) => format!("queued after {}", pluralize(*before, "turn")),
        Delivery::Refused(reason) if reason.is_empty() => "not sent; ↑ edits it".to_owned(),
        Delivery::Refused(reason) => format!("not sent; ↑ edits it: {reason}"),
    };
    let state = cut(&state, columns.saturating_sub(5));
    let mut lines = vec![vec![
        paint.user("you"),
        paint.plain("  "),
        if is_refused { paint.bad(state) } else { paint.faint(state) },
    ]];
    let safe = sanitize::multi_line(entry.text.trim_end());
    let wrapped = text::wrap(&safe, columns.max(1));
    let is_cut = wrapped.len() > MAX_LINES;
    for (at, line) in wrapped.into_iter().take(MAX_LINES).enumerate() {
        let more = if is_cut && at + 1 == MAX_LINES { " …" } else { "" };
        lines.push(vec![
            paint.plain("  "),
            paint.faint(format!("{}{more}", cut(&line, columns.saturating_sub(more.len())))),
        ]);
    }
    lines
}
