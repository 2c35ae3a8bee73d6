//! The table of kinds in SECRETS.md.

use std::fmt::Write as _;
use std::path::Path;

use super::super::shapes::{Part, SHAPES, Shape};

/// What follows the beginning of `shape`, in words.
fn form(shape: &Shape) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => format!("`{text}`"),
        Part::Of { of, least, most, .. } if least == most => format!("{least} {}", of.name),
        Part::Of { of, least, .. } => format!("{least} or more {}", of.name),
    };
    let parts: Vec<_> = shape.parts().iter().map(part).collect();
    if parts.is_empty() { "by a rule of its own".into() } else { parts.join(", ") }
}

fn table() -> String {
    let mut rows: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for shape in SHAPES {
        let form = form(shape);
        match rows.iter_mut().find(|(kind, other, _)| *kind == shape.kind && *other == form) {
            Some((_, _, starts)) => starts.push(shape.start.trim()),
            None => rows.push((shape.kind, form, vec![shape.start.trim()])),
        }
    }
    rows.sort_by_key(|(kind, ..)| *kind);
    let mut table = String::from("| kind | begins with | then |\n|---|---|---|\n");
    for (kind, form, starts) in rows {
        let starts: Vec<_> = starts.iter().map(|start| format!("`{start}`")).collect();
        let _ = writeln!(table, "| {kind} | {} | {form} |", starts.join(" "));
    }
    table
}

/// With `CHORUS_BLESS=1` the table is written.
#[test]
fn secrets_md_has_every_kind() {
    const BEGIN: &str = "<!-- kinds -->\n";
    const END: &str = "<!-- end of kinds -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SECRETS.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var_os("CHORUS_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(written == table, "SECRETS.md is out of date: run `CHORUS_BLESS=1 cargo test -p chorusd --lib redact`");
}
