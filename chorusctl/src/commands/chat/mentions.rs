//! Files that a message names with `@FILE`, and the completion of their names.

use std::path::{Path, PathBuf};

/// Candidates that are offered; more do not fit a screen.
const MAX_CANDIDATES: usize = 200;

/// A message with the files that it names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// The message as it is sent: the names stay, `\@` is a plain `@`.
    pub text: String,
    pub files: Vec<PathBuf>,
    /// Names that look like paths but are no files.
    pub missing: Vec<String>,
}

/// Finds the files that a message names. A word `@FILE` names a file if there is one; `@"my file"` and `@my\ file` have
/// spaces; punctuation at the end of a word may follow the name.
#[must_use]
pub(super) fn find(message: &str, is_file: impl Fn(&Path) -> bool) -> Mentions {
    let mut found = Mentions::default();
    let mut rest = message;
    let mut at_word_start = true;
    while let Some(char) = rest.chars().next() {
        if at_word_start && let Some(literal) = rest.strip_prefix("\\@") {
            found.text.push('@');
            rest = literal;
            at_word_start = false;
            continue;
        }
        if at_word_start && char == '@' {
            let (name, length) = read_name(&rest[1..]);
            let (written, behind) = rest.split_at(1 + length);
            found.text.push_str(written);
            rest = behind;
            at_word_start = false;
            add_name(&mut found, &name, &is_file);
            continue;
        }
        found.text.push(char);
        rest = &rest[char.len_utf8()..];
        at_word_start = char.is_whitespace() || matches!(char, '(' | '[');
    }
    found
}

fn add_name(found: &mut Mentions, name: &str, is_file: &impl Fn(&Path) -> bool) {
    let bare = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
    let file = [name, bare].into_iter().filter(|name| !name.is_empty()).map(expand_home).find(|path| is_file(path));
    match file {
        Some(path) if found.files.contains(&path) => {}
        Some(path) => found.files.push(path),
        None if bare.contains('/') || Path::new(bare).extension().is_some() => found.missing.push(bare.to_owned()),
        None => {}
    }
}

/// Reads the name behind `@`. Returns it without quotation marks and backslashes, and its length as written.
fn read_name(text: &str) -> (String, usize) {
    if let Some(quoted) = text.strip_prefix('"')
        && let Some(end) = quoted.find('"')
    {
        return (quoted[..end].to_owned(), end + 2);
    }
    let (mut name, mut length) = (String::new(), 0);
    let mut chars = text.chars();
    while let Some(char) = chars.next().filter(|char| !char.is_whitespace()) {
        length += char.len_utf8();
        match (char, chars.clone().next()) {
            ('\\', Some(next)) => {
                chars.next();
                name.push(next);
                length += next.len_utf8();
            }
            _ => name.push(char),
        }
    }
    (name, length)
}

fn expand_home(name: &str) -> PathBuf {
    match (name.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(name),
    }
}

/// Returns where the name behind the last `@` of a line starts, and that name; `None` if the line does not end in one.
#[must_use]
pub(super) fn open_name(typed: &str) -> Option<(usize, String)> {
    let at = typed.rmatch_indices('@').map(|(at, _)| at).find(|at| {
        let before = typed[..*at].chars().next_back();
        before.is_none_or(|char| char.is_whitespace() || matches!(char, '(' | '['))
    })?;
    let start = at + 1;
    let (name, length) = read_name(&typed[start..]);
    (start + length == typed.len()).then_some((start, name))
}

/// Returns the files and directories whose path starts with `begun`: each as it is shown, and as it is written behind
/// `@`.
#[must_use]
pub(super) fn candidates(begun: &str) -> Vec<(String, String)> {
    let (dir, prefix) = begun.rsplit_once('/').map_or(("", begun), |(dir, prefix)| (dir, prefix));
    let folder = match (dir, begun.starts_with('/')) {
        ("", true) => PathBuf::from("/"),
        ("", false) => PathBuf::from("."),
        _ => expand_home(&format!("{dir}/")),
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let above = &begun[..begun.len() - prefix.len()];
    let mut found: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !prefix.starts_with('.');
            if hidden || !name.starts_with(prefix) {
                return None;
            }
            let end = if entry.path().is_dir() { "/" } else { "" };
            let written = format!("{above}{name}{end}").replace('\\', "\\\\").replace(' ', "\\ ");
            Some((format!("{name}{end}"), written))
        })
        .collect();
    found.sort();
    found.truncate(MAX_CANDIDATES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_files_attach_them_and_stay() {
        let is_file = |path: &Path| ["src/main.rs", "my file.txt", "a"].map(Path::new).contains(&path);
        let find = |text: &str| find(text, is_file);
        let found = find("look at @src/main.rs, @\"my file.txt\" and @my\\ file.txt (@a)");
        assert_eq!(found.files, ["src/main.rs", "my file.txt", "a"].map(PathBuf::from));
        assert_eq!(found.text, "look at @src/main.rs, @\"my file.txt\" and @my\\ file.txt (@a)");
        assert_eq!(find("\\@a is @alice or mail@a.b @").files, Vec::<PathBuf>::new());
        assert_eq!(find("\\@a is").text, "@a is");
        assert_eq!(find("@src/man.rs @types/node, @b").missing, ["src/man.rs", "types/node"]);
        assert_eq!(find("@a @a").files.len(), 1);
    }

    #[test]
    fn names_are_completed_where_they_are_written() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("my file"), "").expect("a file");
        std::fs::create_dir(dir.path().join("mine")).expect("a directory");
        std::fs::write(dir.path().join(".my"), "").expect("a file");
        let begun = format!("{}/m", dir.path().display());
        let written: Vec<String> = candidates(&begun).into_iter().map(|(_, written)| written).collect();
        assert_eq!(written, [format!("{begun}ine/"), format!("{begun}y\\ file")]);
        assert_eq!(open_name("see @src/ma"), Some((5, "src/ma".to_owned())));
        assert_eq!(open_name("@my\\ fi"), Some((1, "my fi".to_owned())));
        for other in ["see @src/ma in", "mail@src", "", "\\@src"] {
            assert_eq!(open_name(other), None, "{other}");
        }
    }
}
