//! Edits of source files by what stands beside them. Each returns `None` if it does not find its place.

/// Adds `new` behind the last line for which `is_sibling` holds, indented as that one.
pub fn behind_last(text: &str, new: &str, is_sibling: impl Fn(&str) -> bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| is_sibling(line.trim()))?;
    Some(insert(&lines, at + 1, &indented(new, lines[at])))
}

/// Adds `new` before the first line for which `is_next` holds, indented as that one.
pub fn before_first(text: &str, new: &str, is_next: impl Fn(&str) -> bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| is_next(line.trim()))?;
    Some(insert(&lines, at, &indented(new, lines[at])))
}

/// Adds `pub mod NAME;` or `mod NAME;` where the alphabet wants it.
pub fn module(text: &str, keyword: &str, name: &str) -> Option<String> {
    let other = |line: &str| line.strip_prefix(keyword)?.trim().strip_suffix(';').map(str::to_owned);
    let new = format!("{keyword} {name};");
    let later = |line: &str| other(line).is_some_and(|other| *other > *name);
    before_first(text, &new, later).or_else(|| behind_last(text, &new, |line| other(line).is_some()))
}

/// Adds a name to `use PATH::{…};`.
pub fn import(text: &str, path: &str, name: &str) -> Option<String> {
    let start = format!("use {path}::{{");
    let at = text.find(&start)? + start.len();
    let (before, rest) = text.split_at(at);
    // rustfmt puts it in its place.
    Some(format!("{before}{name}, {rest}"))
}

/// Adds a line at the end of the block that `head` opens.
pub fn at_end_of_block(text: &str, head: &str, new: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.iter().position(|line| line.contains(head))?;
    let margin = lines[from].len() - lines[from].trim_start().len();
    let is_end = |line: &&str| line.trim_end() == format!("{}}}", " ".repeat(margin));
    let at = from + lines[from..].iter().position(is_end)?;
    Some(insert(&lines, at, &indented(new, &" ".repeat(margin + 4))))
}

fn indented(new: &str, like: &str) -> String {
    let margin = &like[..like.len() - like.trim_start().len()];
    new.lines().map(|line| format!("{margin}{line}")).collect::<Vec<_>>().join("\n")
}

fn insert(lines: &[&str], at: usize, new: &str) -> String {
    let (before, behind) = lines.split_at(at);
    let all: Vec<&str> = before.iter().copied().chain([new]).chain(behind.iter().copied()).collect();
    all.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_added_in_order() {
        let text = "//! x\n\npub mod a;\npub mod c;\n\nfn f() {}\n";
        assert_eq!(module(text, "pub mod", "b").unwrap(), text.replace("pub mod c", "pub mod b;\npub mod c"));
        assert_eq!(module(text, "pub mod", "d").unwrap(), text.replace("pub mod c;", "pub mod c;\npub mod d;"));
        assert_eq!(module("fn f() {}\n", "mod", "d"), None);
    }

    #[test]
    fn lists_grow_by_one() {
        let text = "routes! {\n    a::A;\n    b::B;\n}\n";
        let grown = behind_last(text, "b::C;", |line| line.starts_with("b::")).unwrap();
        assert_eq!(grown, "routes! {\n    a::A;\n    b::B;\n    b::C;\n}\n");
        assert_eq!(behind_last(text, "c::D;", |line| line.starts_with("c::")), None);
    }

    #[test]
    fn blocks_grow_at_their_end() {
        let text = "enum Verb {\n    A(a::Args),\n}\n\nfn g() {\n}\n";
        let grown = at_end_of_block(text, "enum Verb {", "/// B\nB(b::Args),").unwrap();
        assert_eq!(grown, "enum Verb {\n    A(a::Args),\n    /// B\n    B(b::Args),\n}\n\nfn g() {\n}\n");
        assert_eq!(import("use a::{b, c};\n", "a", "x").unwrap(), "use a::{x, b, c};\n");
    }
}
