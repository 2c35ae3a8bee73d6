//! A tree, drawn downwards: a row for each node, in the column of its branch.

use std::fmt::Write as _;

use crate::markup::{coordinate, escape, open_svg, push_item, shorten};

const WIDTH: f64 = 860.0;
const ROW: f64 = 28.0;
const COLUMN: f64 = 20.0;
const LEFT: f64 = 12.0;
/// Width of an average character.
const CHARACTER: f64 = 7.2;

/// The kind of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mark {
    /// A node without a parent.
    Root,
    #[default]
    Node,
    /// The one that is still growing.
    Live,
    /// One that does not exist any more.
    Missing,
}

/// A row of a tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeRow {
    /// Counted from 0.
    pub column: usize,
    /// Index of the row of its parent, which is above it.
    pub parent: Option<usize>,
    pub mark: Mark,
    /// Its short name, such as an id.
    pub name: String,
    pub title: String,
    /// The text behind the title, less prominent.
    pub facts: String,
    /// More about it, for the tooltip; may be empty.
    pub details: String,
    /// Address of a page about it.
    pub link: Option<String>,
}

/// Draws a tree. Empty without rows.
#[must_use]
pub fn tree(title: &str, rows: &[TreeRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut svg = open_svg("tree", (WIDTH, ROW * rows.len() as f64), title);
    let place = |at: usize, row: &TreeRow| (LEFT + COLUMN * row.column as f64, ROW * (at as f64 + 0.5));
    // Lines first, so that the marks cover their ends.
    for (at, row) in rows.iter().enumerate() {
        let Some((parent, above)) =
            row.parent.filter(|parent| *parent < at).zip(row.parent.and_then(|at| rows.get(at)))
        else {
            continue;
        };
        let ((from_x, from_y), (x, y)) = (place(parent, above), place(at, row));
        let path = if from_x < x {
            format!("M{from_x} {from_y}V{}Q{from_x} {y} {} {y}H{x}", y - 8.0, from_x + 8.0)
        } else {
            format!("M{from_x} {from_y}L{x} {y}")
        };
        // Writing to a String cannot fail.
        let _ = writeln!(svg, "<path class=\"branch\" d=\"{path}\"/>");
    }
    for (at, row) in rows.iter().enumerate() {
        let (x, y) = place(at, row);
        push_item(&mut svg, &tooltip(row), row.link.as_deref(), &node(row, x, y));
    }
    svg.push_str("</svg>\n");
    svg
}

fn node(row: &TreeRow, x: f64, y: f64) -> String {
    let class = match row.mark {
        Mark::Root => "root",
        Mark::Node => "node",
        Mark::Live => "live",
        Mark::Missing => "missing",
    };
    let text_x = x + 14.0;
    let room = ((WIDTH - text_x) / CHARACTER).max(0.0) as usize;
    let used = row.name.chars().count() + row.facts.chars().count() + 4;
    let title = shorten(&row.title, room.saturating_sub(used).max(12));
    let part = |class: &str, text: &str, gap: f64| {
        let gap = if gap > 0.0 { format!(" dx=\"{}\"", coordinate(gap)) } else { String::new() };
        if text.is_empty() { String::new() } else { format!("<tspan class=\"{class}\"{gap}>{}</tspan>", escape(text)) }
    };
    let title_gap = if row.name.is_empty() { 0.0 } else { 10.0 };
    format!(
        "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/><text x=\"{text_x}\" y=\"{y}\" dy=\"4\">{}{}{}</text>",
        part("name", &row.name, 0.0),
        part("title", &title, title_gap),
        part("facts", &row.facts, 10.0),
    )
}

fn tooltip(row: &TreeRow) -> String {
    let parts = [&*row.name, &*row.title, &*row.facts, &*row.details];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_line_to_its_parent() {
        let row = |column, parent, title: &str| TreeRow { column, parent, title: title.into(), ..TreeRow::default() };
        let mut rows =
            vec![row(0, None, "one"), row(1, Some(0), "<two>"), row(0, Some(0), "three"), row(0, Some(9), "")];
        rows[1].link = Some("two.html".into());
        let svg = tree("Tree", &rows);
        assert_eq!((svg.matches("class=\"branch\"").count(), svg.matches("<circle").count()), (2, 4));
        assert!(svg.contains("<a href=\"two.html\"><title>&lt;two&gt;</title>"), "{svg}");
        assert!(svg.contains("M12 14V34Q12 42 20 42H32") && svg.contains("M12 14L12 70"), "{svg}");
        assert_eq!(tree("Tree", &[]), "");
    }
}
