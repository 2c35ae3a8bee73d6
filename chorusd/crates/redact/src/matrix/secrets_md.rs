//! Compares the table of kinds in SECRETS.md with the patterns.

use std::fmt::Write as _;

use super::super::pattern_types::{Pattern, PatternPart};
use super::super::patterns::PATTERNS;

/// Describes in words what follows the prefix of `shape`.
fn form(shape: &Pattern) -> String {
    let part = |part: &PatternPart| match part {
        PatternPart::Text(text) => format!("`{text}`"),
        PatternPart::Run { of, least, most, .. } if least == most => format!("{least} {}", of.name),
        PatternPart::Run { of, least, .. } => format!("{least} or more {}", of.name),
    };
    let parts: Vec<_> = shape.parts().iter().map(part).collect();
    if parts.is_empty() { "special rule".into() } else { parts.join(", ") }
}

fn table() -> String {
    let mut rows: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for shape in PATTERNS {
        let form = form(shape);
        match rows.iter_mut().find(|(kind, other, _)| *kind == shape.kind && *other == form) {
            Some((_, _, starts)) => starts.push(shape.prefix.trim()),
            None => rows.push((shape.kind, form, vec![shape.prefix.trim()])),
        }
    }
    rows.sort_by_key(|(kind, ..)| *kind);
    let mut table = String::from("| kind | starts with | then |\n|---|---|---|\n");
    for (kind, form, starts) in rows {
        let starts: Vec<_> = starts.iter().map(|start| format!("`{start}`")).collect();
        let _ = writeln!(table, "| {kind} | {} | {form} |", starts.join(" "));
    }
    table
}

/// If the table is out of date, the test prints the table as it should be.
#[test]
fn secrets_md_has_every_kind() {
    let page = include_str!("../../../../../docs/SECRETS.md");
    let written = page.split_once("<!-- kinds -->\n").and_then(|(_, rest)| rest.split_once("<!-- end of kinds -->"));
    let table = table();
    assert!(written.is_some_and(|(written, _)| written == table), "the table in SECRETS.md should be:\n{table}");
}
