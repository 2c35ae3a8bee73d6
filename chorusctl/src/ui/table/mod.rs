//! Tables with aligned columns. On a terminal no line is wider than it; a pipe gets everything.

mod layout;
mod options;
mod rows;

use std::borrow::Cow;

use jiff::Timestamp;

use self::options::Arrangement;
pub use self::options::{RowArgs, TableArgs};
use self::rows::Row;
use super::stdout::{OutputFormat, Stdout};
use super::style::Style;
use super::terminal::ColorWhen;
use super::{Stderr, text};
use crate::error::Error;

const COLUMN_GAP: usize = 2;
/// Stands behind the headings if columns were left out.
const LEFT_OUT_MARK: &str = "…";

/// A column and its layout options.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    /// The name of a column whose title is not one.
    name: Option<&'static str>,
    right: bool,
    flexible: bool,
    whole: bool,
    optional: bool,
    left_out_first: bool,
    most: Option<usize>,
}

impl Column {
    /// Creates a left-aligned column.
    #[must_use]
    pub const fn new(title: &'static str) -> Self {
        Self {
            title,
            name: None,
            right: false,
            flexible: false,
            whole: false,
            optional: false,
            left_out_first: false,
            most: None,
        }
    }

    /// Gives the column the name by which options select it, if its title is no name.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Aligns the column to the right, for numbers, which are never cut.
    #[must_use]
    pub const fn align_right(self) -> Self {
        Self { right: true, ..self }
    }

    /// Makes this the first column to be cut on a narrow terminal.
    #[must_use]
    pub const fn flexible(self) -> Self {
        Self { flexible: true, ..self }
    }

    /// Never cuts the column, for ids and times, which are of no use in part.
    #[must_use]
    pub const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Leaves the column out on a terminal that is too narrow for it, unless it was chosen.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// As [`Column::optional`], and before the others.
    #[must_use]
    pub const fn left_out_first(self) -> Self {
        Self { optional: true, left_out_first: true, ..self }
    }

    /// Limits the width on a terminal, so that other columns have room.
    #[must_use]
    pub const fn at_most(self, most: usize) -> Self {
        Self { most: Some(most), ..self }
    }

    /// Returns true if options select the column by `name`.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name() == name
    }

    /// Returns the name by which options select the column.
    fn name(&self) -> String {
        self.name.map_or_else(|| self.title.to_lowercase().replace(' ', "-"), str::to_owned)
    }
}

/// One cell of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: Cow<'static, str>,
    style: Style,
    /// Another style for the first bytes.
    prefix: Option<(usize, Style)>,
    /// The value it is sorted by, if its text is a time or a rounded number.
    number: Option<f64>,
}

impl Cell {
    /// Creates a cell in `style`. The text must be sanitized and have one line.
    #[must_use]
    pub fn new(style: Style, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), style, prefix: None, number: None }
    }

    /// Gives the first `length` bytes another style.
    #[must_use]
    pub fn with_prefix(self, length: usize, style: Style) -> Self {
        Self { prefix: Some((length, style)), ..self }
    }

    /// Sorts the cell by this number instead of its text.
    #[must_use]
    pub fn sorted_by(self, number: f64) -> Self {
        Self { number: Some(number), ..self }
    }

    /// Sorts the cell by a time instead of its text.
    #[must_use]
    pub fn sorted_by_time(self, time: Timestamp) -> Self {
        self.sorted_by(time.as_microsecond() as f64)
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Style::Plain, text)
    }
}

/// Rows under headings. Columns that are empty in every row are left out, unless they were chosen.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    total: Option<Vec<Cell>>,
    arrangement: Arrangement,
    /// The terminal's width does not matter.
    is_whole: bool,
    most_rows: usize,
}

impl Table {
    /// Creates an empty table.
    #[must_use]
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        let arrangement = Arrangement::default();
        Self {
            columns: columns.into(),
            rows: Vec::new(),
            total: None,
            arrangement,
            is_whole: false,
            most_rows: usize::MAX,
        }
    }

    /// Creates an empty table that is arranged as the options of a command say.
    ///
    /// # Errors
    /// The options name a column that does not exist, or the output is not a table (exit status 2).
    pub fn arranged(columns: impl Into<Vec<Column>>, args: &RowArgs, format: OutputFormat) -> Result<Self, Error> {
        let mut table = Self::new(columns);
        table.arrangement = Arrangement::new(args, &table.columns, format)?;
        Ok(table)
    }

    /// Creates an empty table as [`Table::arranged`] does, which `--long` prints whole.
    pub fn with_args(columns: impl Into<Vec<Column>>, args: &TableArgs, format: OutputFormat) -> Result<Self, Error> {
        Ok(Self { is_whole: args.long, ..Self::arranged(columns, &args.rows, format)? })
    }

    /// Prints each cell whole.
    pub fn print_whole(&mut self) {
        self.is_whole = true;
    }

    /// Shows at most so many rows, after they were filtered and sorted.
    pub fn limit_rows(&mut self, most: usize) {
        self.most_rows = most;
    }

    /// Adds a row with one cell per column.
    pub fn add_row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row { cells: cells.into(), is_below: false });
    }

    /// Adds a row that stays below the one before it, however rows are sorted.
    pub fn add_row_below(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row { cells: cells.into(), is_below: true });
    }

    /// Adds the line of the total. It is last, and left out if not all rows are shown.
    pub fn set_total(&mut self, cells: impl Into<Vec<Cell>>) {
        self.total = Some(cells.into());
    }

    /// Returns how many rows the filters leave.
    #[must_use]
    pub fn count_rows(&self) -> usize {
        rows::arrange(&self.rows, &self.columns, &self.arrangement).len()
    }

    /// Writes the table; only its rows from `skip` on are shown.
    pub fn write_from(&self, skip: usize, out: &mut Stdout) -> Result<(), Error> {
        let mut rows = rows::arrange(&self.rows, &self.columns, &self.arrangement);
        let has_all = rows.len() == self.rows.len();
        rows.drain(..skip.min(rows.len()));
        rows.truncate(self.most_rows);
        let total = self.total.as_ref().filter(|_| has_all).map(|cells| self.total_row(cells));
        rows.extend(&total);
        if rows.is_empty() && !self.arrangement.filters.is_empty() {
            out.flush()?;
            Stderr::new(ColorWhen::Auto).line("no row matches");
            return Ok(());
        }
        let room = out.width().filter(|_| !self.is_whole);
        let chosen = self.arrangement.chosen.as_deref();
        let (used, widths) = layout::layout(&self.columns, chosen, &rows, room);
        let mut titles: Vec<Cell> = self.columns.iter().map(|column| Cell::new(Style::Strong, column.title)).collect();
        let is_left_out = |(at, column): (usize, &Column)| {
            column.optional
                && !used.contains(&at)
                && rows.iter().any(|row| row.cells.get(at).is_some_and(|cell| !cell.text.is_empty()))
        };
        let title = used.last().map_or(0, |at| text::width(self.columns[*at].title));
        // Right-aligned titles end with their column.
        let slack = used.last().zip(widths.last()).filter(|(at, _)| !self.columns[**at].right);
        let slack = slack.map_or(0, |(_, width)| width.saturating_sub(title));
        let taken = widths.iter().map(|width| width + COLUMN_GAP).sum::<usize>() - slack;
        let has_room = room.is_some_and(|room| taken + text::width(LEFT_OUT_MARK) <= room);
        let has_left_out = chosen.is_none() && self.columns.iter().enumerate().any(is_left_out);
        if let Some(last) = used.last().filter(|_| has_left_out && !has_room) {
            let title = self.columns[*last].title;
            titles[*last] = Cell::new(Style::Strong, format!("{}{LEFT_OUT_MARK}", &title[..title.len().max(1) - 1]));
        }
        let mut heading = self.render_row(&titles, &used, &widths, out, room);
        if has_left_out && has_room {
            heading.truncate(heading.trim_end().len());
            heading.push_str(&format!("{}{}\n", " ".repeat(COLUMN_GAP), out.style(Style::Faint, LEFT_OUT_MARK)));
        }
        out.text(&heading)?;
        rows.iter().try_for_each(|row| out.text(&self.render_row(&row.cells, &used, &widths, out, room)))
    }

    /// Writes the table.
    pub fn write(&self, out: &mut Stdout) -> Result<(), Error> {
        self.write_from(0, out)
    }

    /// Returns the line of the total, with its label in the first column that is shown if that has no number.
    fn total_row(&self, cells: &[Cell]) -> Row {
        let mut cells = cells.to_vec();
        if let Some(first) = self.arrangement.chosen.as_ref().and_then(|chosen| chosen.first())
            && *first != 0
            && cells.get(*first).is_some_and(|cell| cell.text.is_empty())
        {
            cells.swap(0, *first);
        }
        Row { cells, is_below: false }
    }

    /// Renders a row. Whatever the widths are, it ends at the edge of `room` columns.
    fn render_row(&self, row: &[Cell], used: &[usize], widths: &[usize], out: &Stdout, room: Option<usize>) -> String {
        let mut left = room.unwrap_or(usize::MAX);
        let mut line = String::new();
        let mut plain = String::new();
        let mut spaces = 0;
        for (at, columns) in used.iter().zip(widths) {
            let Some(cell) = row.get(*at).filter(|_| left > 0) else { break };
            let columns = left.min(*columns);
            left = left.saturating_sub(columns + COLUMN_GAP);
            let shown = text::truncate(&cell.text, columns);
            plain.clear();
            text::pad(&mut plain, &shown, columns, self.columns[*at].right);
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
    #[cfg(test)]
    fn layout(&self, room: Option<usize>) -> (Vec<usize>, Vec<usize>) {
        let rows: Vec<&Row> = self.rows.iter().collect();
        layout::layout(&self.columns, self.arrangement.chosen.as_deref(), &rows, room)
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

    /// A table with ids and times, arranged by options.
    fn sessions(columns: &str, sort: &str, filter: &str) -> Result<Table, Error> {
        let list = |names: &str| names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let args = RowArgs { columns: list(columns), sort: list(sort), filter: list(filter) };
        let columns = [
            Column::new("#").named("number").align_right(),
            Column::new("ID").whole(),
            Column::new("LAST USED").whole(),
            Column::new("MESSAGES").align_right().optional(),
            Column::new("TITLE").flexible(),
        ];
        let mut table = Table::arranged(columns, &args, OutputFormat::Text)?;
        for (number, (used, messages, title)) in
            [("5 min ago", "1,200", "A long title of a session"), ("2 h ago", "47", "👩‍👧 b"), ("", "?", "B")]
                .into_iter()
                .enumerate()
        {
            let used = if used.is_empty() { Cell::default() } else { Cell::from(used).sorted_by(-(number as f64)) };
            let id = format!("0a1b2c{number}d");
            table.add_row([(number + 1).to_string().into(), id.into(), used, messages.into(), title.into()]);
        }
        table.set_total(["total".into(), "".into(), "".into(), "1,256".into(), "".into()]);
        Ok(table)
    }

    fn shown(table: &Table, width: Option<usize>) -> Result<String, Error> {
        let mut out = Stdout::captured(width);
        table.write(&mut out)?;
        Ok(out.captured_text().to_owned())
    }

    #[test]
    fn ids_and_times_are_whole_and_what_has_no_room_is_left_out() -> Result<(), Error> {
        let text = shown(&sessions("", "", "title=a")?, Some(40))?;
        assert_eq!(text, "#  ID        LAST USED  TITLE  …\n1  0a1b2c0d  5 min ago  A long title of…\n");
        // Whatever was chosen ends at the edge.
        let text = shown(&sessions("id,last-used,messages,number", "", "")?, Some(20))?;
        assert!(text.lines().all(|line| text::width(line) <= 20), "{text}");
        Ok(())
    }

    #[test]
    fn a_heading_without_room_for_the_mark_ends_with_it() -> Result<(), Error> {
        let columns = [Column::new("NAME").whole(), Column::new("WHAT").optional(), Column::new("COUNT").align_right()];
        let mut table = Table::new(columns);
        table.add_row(["atlas-billing".into(), "moves the tables".into(), "47".into()]);
        assert_eq!(shown(&table, Some(20))?, "NAME           COUN…\natlas-billing     47\n");
        Ok(())
    }

    #[test]
    fn rows_are_sorted_by_what_cells_stand_for_and_empty_ones_come_last() -> Result<(), Error> {
        let order = |sort| {
            let text = shown(&sessions("number", sort, "")?, None)?;
            Ok::<_, Error>(text.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(order("messages")?, "2 1 3 total");
        assert_eq!(order("-messages")?, "1 2 3 total");
        assert_eq!(order("last-used")?, "2 1 3 total");
        assert_eq!(order("-LAST_USED")?, "1 2 3 total");
        assert_eq!(order("title")?, "1 3 2 total");
        Ok(())
    }

    #[test]
    fn a_total_has_its_label_in_the_first_column_and_is_not_one_of_some_rows() -> Result<(), Error> {
        let text = shown(&sessions("title,messages", "", "")?, None)?;
        assert!(text.ends_with("\ntotal                         1,256\n"), "{text}");
        let text = shown(&sessions("title,messages", "", "messages=4")?, None)?;
        assert_eq!(text, "TITLE  MESSAGES\n👩‍👧 b         47\n");
        assert!(
            sessions("titel", "", "").is_err() && sessions("", "-x", "").is_err() && sessions("", "", "x=1").is_err()
        );
        Ok(())
    }

    #[test]
    fn the_flexible_column_gives_way_first_and_no_column_is_dropped() {
        assert_eq!(table().layout(Some(40)).1, [5, 2, 29]);
        assert_eq!(table().layout(Some(20)).1, [5, 2, 9]);
        assert_eq!(table().layout(Some(10)).1, [5, 2, 6]);
    }
}
