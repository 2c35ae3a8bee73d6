//! Decides which columns of a table are shown on a terminal, and how wide.

use super::{COLUMN_GAP, Column, Row};
use crate::ui::text;

/// Minimum width of a column on a narrow terminal.
const MIN_COLUMN_WIDTH: usize = 6;
/// Minimum width of a name while titles and optional columns can give way.
const MIN_NAME_WIDTH: usize = 12;
/// Minimum width of the flexible column while other columns can be cut.
const MIN_FLEXIBLE_WIDTH: usize = 24;
/// Minimum width of a flexible column while names or optional columns can give way.
const MIN_READABLE_WIDTH: usize = 12;
/// Minimum width of a heading that is longer than what is below it.
const MIN_HEADING_WIDTH: usize = 4;

/// A column that is shown.
#[derive(Debug, Clone, Copy)]
struct Shown {
    at: usize,
    /// Columns of the terminal that it gets.
    width: usize,
    /// Width of its widest cell below the heading.
    content: usize,
    column: Column,
}

impl Shown {
    /// Returns the width below which the column is not cut unless nothing else helps.
    fn readable(&self) -> usize {
        let least = if self.column.flexible { MIN_READABLE_WIDTH } else { MIN_NAME_WIDTH };
        self.width.min(self.least().max(least))
    }

    /// Returns the width below which the column is never cut: that of an id, a time or a number.
    fn least(&self) -> usize {
        let least =
            if self.column.right || self.column.whole { self.content.max(MIN_HEADING_WIDTH) } else { MIN_COLUMN_WIDTH };
        self.width.min(least)
    }
}

/// Returns the indexes and widths of the columns that are shown in `room` columns of a terminal; `None` cuts nothing.
pub(super) fn layout(
    columns: &[Column],
    chosen: Option<&[usize]>,
    rows: &[&Row],
    room: Option<usize>,
) -> (Vec<usize>, Vec<usize>) {
    let content = |at: usize| rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| text::width(&cell.text)).max();
    let used: Vec<usize> = match chosen {
        Some(chosen) => chosen.to_vec(),
        None => (0..columns.len()).filter(|at| content(*at).is_some_and(|content| content > 0)).collect(),
    };
    let mut shown: Vec<Shown> = Vec::with_capacity(used.len());
    for at in used {
        let column = columns[at];
        let content = content(at).unwrap_or_default();
        let content = column.most.filter(|_| room.is_some()).map_or(content, |most| content.min(most));
        shown.push(Shown { at, width: content.max(text::width(column.title)), content, column });
    }
    if let Some(room) = room {
        if chosen.is_none() {
            leave_out(&mut shown, room);
        }
        shrink(&mut shown, room);
    }
    shown.into_iter().map(|one| (one.at, one.width)).unzip()
}

/// Leaves out optional columns, of those of the same rank the last one first, as long as the others have too little room.
fn leave_out(shown: &mut Vec<Shown>, room: usize) {
    while excess(shown.iter().map(Shown::readable), room) > 0 {
        let first = shown.iter().rposition(|one| one.column.left_out_first);
        let Some(last) = first.or_else(|| shown.iter().rposition(|one| one.column.optional)) else { break };
        shown.remove(last);
    }
}

/// Makes columns narrower until all of them fit: titles first, then names, headings, and whatever may be cut.
fn shrink(shown: &mut [Shown], room: usize) {
    if let Some(first) = shown.iter().position(|one| one.column.flexible) {
        let too_much = excess(shown.iter().map(|one| one.width), room);
        shown[first].width -= too_much.min(shown[first].width.saturating_sub(MIN_FLEXIBLE_WIDTH));
    }
    let steps: [fn(&Shown) -> usize; 5] = [
        |one| if one.column.flexible { one.readable() } else { one.width },
        |one| if one.column.flexible { one.width } else { one.readable() },
        |one| if one.column.flexible { one.width } else { one.width.min(one.content.max(MIN_HEADING_WIDTH)) },
        |one| if one.column.flexible { one.least() } else { one.width },
        Shown::least,
    ];
    for least in steps {
        while excess(shown.iter().map(|one| one.width), room) > 0 {
            let can_give = shown.iter_mut().filter(|one| one.width > least(one));
            let Some(widest) = can_give.max_by_key(|one| one.width) else { break };
            widest.width -= 1;
        }
    }
}

/// Returns by how much columns of these widths are wider than `room`, with the gaps between them.
fn excess(widths: impl ExactSizeIterator<Item = usize>, room: usize) -> usize {
    let gaps = COLUMN_GAP * widths.len().saturating_sub(1);
    (widths.sum::<usize>() + gaps).saturating_sub(room)
}
