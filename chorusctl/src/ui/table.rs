//! Tables with aligned columns.

use std::borrow::Cow;

use super::stdout::Stdout;
use super::style::Style;
use super::text;
use crate::error::Error;

const COLUMN_GAP: usize = 2;
/// Minimum width of a column on a narrow terminal.
const MIN_COLUMN_WIDTH: usize = 6;
/// Minimum width of the flexible column while other columns can be cut.
const MIN_FLEXIBLE_WIDTH: usize = 24;

/// A column and its layout options.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    right: bool,
    flexible: bool,
}

impl Column {
    /// Creates a left-aligned column.
    #[must_use]
    pub fn new(title: &'static str) -> Self {
        Self { title, right: false, flexible: false }
    }

    /// Aligns the column to the right, for numbers.
    #[must_use]
    pub fn align_right(self) -> Self {
        Self { right: true, ..self }
    }

    /// Makes this the first column to be cut on a narrow terminal.
    #[must_use]
    pub fn flexible(self) -> Self {
        Self { flexible: true, ..self }
    }
}

/// One cell of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: Cow<'static, str>,
    style: Style,
    /// Another style for the first bytes.
    prefix: Option<(usize, Style)>,
}

impl Cell {
    /// Creates a cell in `style`. The text must be sanitized and have one line.
    #[must_use]
    pub fn new(style: Style, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), style, prefix: None }
    }

    /// Gives the first `length` bytes another style.
    #[must_use]
    pub fn with_prefix(self, length: usize, style: Style) -> Self {
        Self { prefix: Some((length, style)), ..self }
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Style::Plain, text)
    }
}

/// Rows under headings. Columns that are empty in every row are left out.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates an empty table.
    #[must_use]
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub fn add_row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// Writes the table.
    pub fn write(&self, out: &mut Stdout) -> Result<(), Error> {
        let (used, widths) = self.layout(out.width());
        let titles: Vec<Cell> = self.columns.iter().map(|column| Cell::new(Style::Strong, column.title)).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            out.text(&self.render_row(row, &used, &widths, out))?;
        }
        Ok(())
    }

    fn render_row(&self, row: &[Cell], used: &[usize], widths: &[usize], out: &Stdout) -> String {
        let mut line = String::new();
        let mut plain = String::new();
        let mut spaces = 0;
        for (at, columns) in used.iter().zip(widths) {
            let Some(cell) = row.get(*at) else { break };
            let shown = text::truncate(&cell.text, *columns);
            plain.clear();
            text::pad(&mut plain, &shown, *columns, self.columns[*at].right);
            // Style only the text, not the padding, and end no line with spaces.
            let start = plain.len() - plain.trim_start_matches(' ').len();
            let body = plain.trim_matches(' ');
            if !body.is_empty() {
                line.extend(std::iter::repeat_n(' ', spaces + start));
                let prefix = cell.prefix.filter(|(length, _)| body.is_char_boundary(*length));
                let (first, rest) = body.split_at(prefix.map_or(0, |(length, _)| length));
                if let Some((_, style)) = prefix {
                    line.push_str(&out.style(style, first).to_string());
                }
                line.push_str(&out.style(cell.style, rest).to_string());
                spaces = plain.len() - start - body.len() + COLUMN_GAP;
            } else {
                spaces += plain.len() + COLUMN_GAP;
            }
        }
        line.push('\n');
        line
    }

    /// Returns the indexes and widths of the columns that are shown.
    fn layout(&self, room: Option<usize>) -> (Vec<usize>, Vec<usize>) {
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|at| self.rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.text.is_empty())))
            .collect();
        let mut widths: Vec<usize> = used.iter().map(|at| self.natural_width(*at)).collect();
        let Some(room) = room else { return (used, widths) };
        let too_much = |widths: &[usize]| {
            (widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1)).saturating_sub(room)
        };
        if let Some(at) = used.iter().position(|at| self.columns[*at].flexible) {
            widths[at] -= too_much(&widths).min(widths[at].saturating_sub(MIN_FLEXIBLE_WIDTH));
        }
        // Other flexible columns give way before those that are read whole, such as names.
        while too_much(&widths) > 0 {
            let widest = |only_flexible: bool| {
                let can_give =
                    |at: &usize| widths[*at] > MIN_COLUMN_WIDTH && (!only_flexible || self.columns[used[*at]].flexible);
                (0..used.len()).filter(can_give).max_by_key(|at| widths[*at])
            };
            let Some(at) = widest(true).or_else(|| widest(false)) else { break };
            widths[at] -= 1;
        }
        (used, widths)
    }

    /// Returns the width of a column if nothing is cut.
    fn natural_width(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| text::width(&cell.text));
        cells.fold(text::width(self.columns[at].title), usize::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::new("NAME"),
            Column::new("MODEL"),
            Column::new("N").align_right(),
            Column::new("WHAT").flexible(),
        ]);
        table.add_row(["atlas".into(), "".into(), "47".into(), "moves the billing tables to the new schema".into()]);
        table.add_row(["世界".into(), "".into(), "8".into(), "x".into()]);
        table
    }

    #[test]
    fn columns_line_up_and_empty_ones_go() -> Result<(), Error> {
        let mut out = Stdout::captured(Some(40));
        table().write(&mut out)?;
        assert_eq!(out.captured_text(), "NAME    N  WHAT\natlas  47  moves the billing tables to…\n世界    8  x\n");
        Ok(())
    }

    #[test]
    fn a_pipe_cuts_nothing() {
        assert_eq!(table().layout(None), (vec![0, 2, 3], vec![5, 2, 42]));
    }

    #[test]
    fn the_flexible_column_gives_way_first_and_no_column_is_dropped() {
        assert_eq!(table().layout(Some(40)).1, [5, 2, 29]);
        assert_eq!(table().layout(Some(20)).1, [5, 2, 9]);
        assert_eq!(table().layout(Some(10)).1, [5, 2, 6]);
    }
}
