//! The rows of a table: filtered, and sorted by what their cells stand for.

use std::cmp::Ordering;

use super::options::Arrangement;
use super::{Cell, Column};

/// A row of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// Belongs to the row above it and stays below that.
    pub(super) is_below: bool,
}

/// The value that a cell is sorted by.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SortKey<'a> {
    Number(f64),
    Text(&'a str),
    /// An empty cell, or an unknown number, which comes last in either order.
    Missing,
}

/// Returns the rows to show, in their order.
pub(super) fn arrange<'a>(rows: &'a [Row], columns: &[Column], by: &Arrangement) -> Vec<&'a Row> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match groups.last_mut() {
            Some(group) if row.is_below => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    // A row that matches is shown with the row that it belongs to.
    groups.retain_mut(|group| {
        if !group.first().is_some_and(|first| matches(first, by)) {
            let mut first = true;
            group.retain(|row| std::mem::take(&mut first) || matches(row, by));
            return by.filters.is_empty() || group.len() > 1;
        }
        true
    });
    groups.sort_by(|a, b| match (a.first(), b.first()) {
        (Some(a), Some(b)) => compare(a, b, columns, by),
        _ => Ordering::Equal,
    });
    groups.concat()
}

fn matches(row: &Row, by: &Arrangement) -> bool {
    by.filters.iter().all(|(column, text)| {
        let has = |cell: &Cell| cell.text.to_lowercase().contains(text);
        match column {
            Some(column) => row.cells.get(*column).is_some_and(has),
            None => row.cells.iter().any(has),
        }
    })
}

fn compare(a: &Row, b: &Row, columns: &[Column], by: &Arrangement) -> Ordering {
    let orders = by.sort.iter().map(|(column, descending)| {
        let is_number = columns.get(*column).is_some_and(|column| column.right);
        compare_keys(sort_key(a.cells.get(*column), is_number), sort_key(b.cells.get(*column), is_number), *descending)
    });
    orders.fold(Ordering::Equal, Ordering::then)
}

fn sort_key(cell: Option<&Cell>, is_number: bool) -> SortKey<'_> {
    let Some(cell) = cell else { return SortKey::Missing };
    match cell.number {
        _ if cell.text.is_empty() => SortKey::Missing,
        Some(number) => SortKey::Number(number),
        // What is not known is not a number: `?`.
        None if is_number => parse_number(&cell.text).map_or(SortKey::Missing, SortKey::Number),
        None => SortKey::Text(&cell.text),
    }
}

/// Reads a number as tables print it: `1,234`, `$0.12`, `12 %`.
fn parse_number(text: &str) -> Option<f64> {
    let digits: String = text.trim_start_matches(['$', '<', '~']).replace(',', "");
    digits.split(' ').next()?.parse().ok()
}

fn compare_keys(a: SortKey<'_>, b: SortKey<'_>, descending: bool) -> Ordering {
    let order = match (a, b) {
        (SortKey::Missing, SortKey::Missing) => return Ordering::Equal,
        (SortKey::Missing, _) => return Ordering::Greater,
        (_, SortKey::Missing) => return Ordering::Less,
        (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(&b),
        (SortKey::Number(_), SortKey::Text(_)) => Ordering::Less,
        (SortKey::Text(_), SortKey::Number(_)) => Ordering::Greater,
        (SortKey::Text(a), SortKey::Text(b)) => a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| a.cmp(b)),
    };
    if descending { order.reverse() } else { order }
}
