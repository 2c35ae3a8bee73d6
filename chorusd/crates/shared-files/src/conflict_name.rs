//! Names of the copies of files that were edited on two nodes.

use jiff::Timestamp;

/// Limit in bytes of what such a name has of the file's own name.
const MAX_OWN_BYTES: usize = 150;

/// Returns the path of a copy of `path`, for example `docs/plan.md.conflict-desk-20270115-080000`. `number` is 1 for the first
/// attempt, and makes the name another one if that is taken.
pub(crate) fn conflict_path(path: &str, node: &str, now: Timestamp, number: u32) -> String {
    let (folders, name) = path.rsplit_once('/').map_or(("", path), |(folders, name)| (folders, name));
    let end = name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= MAX_OWN_BYTES).last();
    let own = &name[..end.unwrap_or(0)];
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let node: String = node.chars().map(plain).take(40).collect();
    let time = now.strftime("%Y%m%d-%H%M%S");
    let again = if number > 1 { format!("-{number}") } else { String::new() };
    let slash = if folders.is_empty() { "" } else { "/" };
    format!("{folders}{slash}{own}.conflict-{node}-{time}{again}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_path;

    #[test]
    fn a_copy_is_next_to_its_file_and_may_be_stored() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(conflict_path("docs/a/b.md", "desk", now, 1), "docs/a/b.md.conflict-desk-20270115-080000");
        assert_eq!(conflict_path("b.md", "a/b", now, 3), "b.md.conflict-a_b-20270115-080000-3");
        let long = format!("docs/{}", "\u{e4}".repeat(127));
        assert_eq!(file_path::check(&conflict_path(&long, &"n".repeat(300), now, 99)), Ok(()));
    }
}
