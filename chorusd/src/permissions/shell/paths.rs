//! Paths of files that a command writes, as actions name them.

use super::git_dir;

/// The path below the workspace as a file tool would name it, and why writing there is never better than `ask`.
#[must_use]
pub fn clean(path: &str) -> (String, Option<&'static str>) {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let guard = if path.starts_with(['/', '~']) || parts.contains(&"..") {
        Some("it writes a file outside the workspace")
    } else if parts.iter().any(|part| git_dir::is(part)) {
        Some("it writes below `.git`")
    } else if parts.is_empty() || path.ends_with('/') {
        Some("it writes to what is no file")
    } else {
        None
    };
    // Links may stand where `..` is: then only the path itself says where it leads.
    if path.starts_with('/') || parts.contains(&"..") { (path.to_owned(), guard) } else { (parts.join("/"), guard) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_file_tools() {
        for (path, wanted, asks) in [
            ("a/b", "a/b", false),
            ("./a//./b", "a/b", false),
            ("../a", "../a", true),
            ("a/../../b", "a/../../b", true),
            ("/etc/passwd", "/etc/passwd", true),
            ("sub/.GIT/config", "sub/.GIT/config", true),
            ("GIT~1/config", "GIT~1/config", true),
            ("", "", true),
            ("a/", "a", true),
        ] {
            let (path, guard) = clean(path);
            assert_eq!((&*path, guard.is_some()), (wanted, asks));
        }
    }
}
