//! Detects words that name a `.git` directory, whose files decide which programs git runs.

/// Returns the reason why a command with one of these words is always asked about.
#[must_use]
pub(super) fn ask_reason<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = words.into_iter().find(|word| names_git_dir(word))?;
    let shown: String = word.chars().take(80).collect();
    Some(format!("it names a `.git` ({shown}), whose files define programs that git runs"))
}

/// Returns true if a path in the word has a `.git` component: `x/.git/hooks`, `--to=.git`, `-C.git`, `.GIT`, `GIT~1`,
/// also percent-encoded as in URLs (`http://x/%2egit`).
#[must_use]
pub(super) fn names_git_dir(word: &str) -> bool {
    names_git_dir_undecoded(word) || (word.contains('%') && names_git_dir_undecoded(&percent_decode(word)))
}

/// Decodes percent-encoded bytes such as `%2e`.
fn percent_decode(word: &str) -> String {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let code = after.split_at_checked(2).filter(|_| *first == b'%');
        let byte = code.and_then(|(code, _)| Some((digit(code.first()?)? << 4) | digit(code.get(1)?)?));
        if byte.is_some() {
            rest = after.get(2..).unwrap_or_default();
        }
        bytes.push(byte.unwrap_or(*first));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn names_git_dir_undecoded(word: &str) -> bool {
    // Fast path: very few words contain such a pair of bytes.
    let bytes = word.as_bytes();
    if !bytes.windows(2).any(|pair| matches!(pair, [b'.' | b't' | b'T', b'g' | b'G' | b'~'])) {
        return false;
    }
    let mut parts = word.split(|c: char| !(c.is_alphanumeric() || "._-~+".contains(c)));
    // Letters in front belong to the name (`x.git`), except in an option (`-Cx`).
    let option = parts.clone().next().filter(|part| part.starts_with('-')).unwrap_or_default().trim_end_matches('.');
    option.match_indices(['.', 'g', 'G']).any(|(at, _)| is_git_dir_component(&option[at..]))
        || parts.any(is_git_dir_component)
}

/// Returns true if a path component is, or may become, `.git`: `GIT~1` is its short name on Windows file systems, which
/// also ignore dots at the end; `split` and backups make `.git` out of `.gi` by adding a suffix.
#[must_use]
pub(super) fn is_git_dir_component(component: &str) -> bool {
    let name = component.trim_end_matches('.');
    let short = |name: &str| {
        let (base, number) = name.split_at_checked(4)?;
        Some(base.eq_ignore_ascii_case("git~") && number.parse::<u32>().is_ok())
    };
    [".git", ".gi", ".g"].iter().any(|git| name.eq_ignore_ascii_case(git)) || short(name).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_is_found_wherever_a_word_names_it() {
        for word in [
            ".git",
            ".git/hooks/post-commit",
            "x/.git",
            "x/.git//",
            "./.GIT/config",
            "--git-dir=.git",
            "-C.git",
            "-xC.git/hooks",
            "of=.git/config",
            "--transform=s,a,.git/hooks/a,",
            "host:.git",
            "a b/.git",
            "GIT~1/hooks",
            "x/git~2",
            "-CGIT~1",
            ".git...",
            "ü/.git",
            "'.git'",
            ".gi",
            "x/.g",
            "http://x/%2egit",
            "http://x/%2E%67%69%74/config",
            "http://x%2f.git%2Fconfig",
            "-C.git...",
        ] {
            assert!(names_git_dir(word), "{word}");
        }
        for word in [
            "",
            ".",
            "..",
            "git",
            ".gitignore",
            ".github/workflows",
            ".gitattributes",
            "https://host/x.git",
            "git@host:x/y.git",
            "HEAD~1",
            "git~",
            "--url=https://host/x.git",
            "-git",
            "--digit",
            "x.gi",
            "...",
            "-t~1",
            "it~1",
            "%",
            "%2",
            "%2e",
            "http://x/%2egitignore",
            "http://x/%25",
        ] {
            assert!(!names_git_dir(word), "{word}");
        }
    }
}
