//! Checks names given by a model (branches, remotes, paths), so that none can pass for an option.

use super::GitResult;

/// Checks that `name` may be a branch, by the rules of `git check-ref-format --branch`.
pub(super) fn check_branch(name: &str) -> GitResult<()> {
    let wrong = |why: &str| Err(format!("{name:?} is not a valid branch name: {why}"));
    if name.is_empty() || name.len() > 200 {
        return wrong("it is empty or longer than 200 bytes");
    }
    if name.starts_with('-') || name == "HEAD" || name == "@" {
        return wrong("it has a special meaning in git");
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c)) {
        return wrong("it contains a space or one of ~ ^ : ? * [ \\");
    }
    if name.contains("..") || name.contains("@{") || name.ends_with('.') {
        return wrong("it contains `..` or `@{`, or ends with a dot");
    }
    if name.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock")) {
        return wrong("a part of it is empty, starts with a dot or ends with `.lock`");
    }
    Ok(())
}

/// Checks that `name` may be a remote. URLs are refused.
pub(super) fn check_remote(name: &str) -> GitResult<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if first && name.len() <= 100 && name.chars().all(good) && !name.contains("..") {
        return Ok(());
    }
    Err(format!("{name:?} is not a valid remote name: use letters, digits, `-`, `_` and `.`, for example \"origin\""))
}

/// Checks that `path` may be a file or directory in the workspace.
pub(super) fn check_path(path: &str) -> GitResult<()> {
    let parts: Vec<&str> = path.split('/').collect();
    let bad = path.is_empty()
        || path.len() > 4096
        || path.starts_with('/')
        || path.chars().any(char::is_control)
        || parts.iter().any(|part| *part == ".." || part.eq_ignore_ascii_case(".git"));
    if bad { Err(format!("{path:?} is not a path in the workspace; use one such as \"src/main.rs\"")) } else { Ok(()) }
}

/// Returns a pathspec that matches the path literally.
pub(super) fn literal_pathspec(path: &str) -> String {
    format!(":(top,literal){path}")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_branch_is_what_git_says_is_one() {
        for name in [
            "main",
            "a/b",
            "feature-1",
            "ä",
            "a.b",
            "a@b",
            "@a",
            "-a",
            "--all",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "a@{1}",
            ".a",
            "a/.b",
            "a.lock",
            "a/b.lock/c",
            "a.",
            "a/",
            "/a",
            "a//b",
            "a\tb",
            "a\u{7f}",
            "",
        ] {
            // Names that mean something special to git are refused in addition.
            let git = Command::new("git").args(["check-ref-format", &format!("refs/heads/{name}")]).status().unwrap();
            let dashed = name.starts_with('-');
            assert_eq!(check_branch(name).is_ok(), git.success() && !dashed, "{name:?}");
        }
        for name in ["HEAD", "@", "a\u{2028}b"] {
            assert!(check_branch(name).is_err(), "{name:?}");
        }
        assert!(check_branch(&"x".repeat(201)).is_err());
    }

    #[test]
    fn remotes_are_names_and_paths_stay_inside() {
        for good in ["origin", "up-stream_2", "a.b"] {
            assert_eq!(check_remote(good), Ok(()));
        }
        for bad in ["", "-x", "--mirror", "https://a/b", "../x", "a b", "a..b", "ext::sh", ".hidden", "a/b"] {
            assert!(check_remote(bad).is_err(), "{bad}");
        }
        for good in ["a", "a/b.rs", ":(glob)*", "-a", "a b"] {
            assert_eq!(check_path(good), Ok(()));
        }
        for bad in ["", "/etc", "../x", "a/../../x", ".git/config", "a/.GIT/x", "a\nb"] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
    }
}
