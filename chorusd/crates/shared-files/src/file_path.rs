//! Which paths below the directory of an agent may be files of it. Other nodes write them, too, so nothing is believed.

/// Files and directories of an agent that are kept in other ways, or belong to one machine.
const OTHERS: [&str; 5] = ["agent.json", "sessions", "workspace", "worktrees", "logs"];

/// Limit of the folders around a file.
pub(crate) const MAX_FOLDERS: usize = 8;

/// Limits in bytes of a path and of each name in it. Names of copies are longer than those of their files.
const MAX_PATH_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 255;

/// Checks the path of a file, relative to the directory of its agent.
///
/// # Errors
/// Why it is not stored, or not made of a row.
pub(crate) fn check(path: &str) -> Result<(), &'static str> {
    if path.len() > MAX_PATH_BYTES {
        return Err("its path is too long");
    }
    let mut names = path.split('/');
    if names.clone().count() > MAX_FOLDERS + 1 {
        return Err("it is in too many folders");
    }
    if path.split('/').next().is_some_and(is_other) {
        return Err("it is not a file of this kind");
    }
    names.try_for_each(check_name)
}

/// Returns true for a name in the directory of an agent that is nothing of what is kept here.
pub(crate) fn is_other(name: &str) -> bool {
    // What the nodes have in a shared directory since.
    let is_moved = |part: &str| name.strip_prefix(part).is_some_and(|rest| rest.starts_with(".moved"));
    OTHERS.contains(&name) || is_moved("workspace") || is_moved("worktrees")
}

/// Checks a part of a path.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("its path has an empty part"),
        _ if name.starts_with('.') => Err("it is hidden"),
        _ if name.len() > MAX_NAME_BYTES => Err("its name is too long"),
        _ if name.chars().any(char::is_control) => Err("its name has control characters"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for allowed in
            ["docs/README.md", "docs/a b/\u{e4}.md", "persona.txt", "docs/1/2/3/4/5/6/7/x", "docs/a..b", "x\\y"]
        {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "docs/../../x",
            "docs/./x",
            "docs//x",
            "docs/",
            "docs/.git/hooks/pre-commit",
            ".profile",
            "docs/a\nb",
            "docs/a\0b",
            "agent.json",
            "sessions/x.json",
            "workspace/.git/config",
            "workspace",
            "worktrees/x/y",
            "logs/1",
            "docs/1/2/3/4/5/6/7/8/x",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        assert!(check(&format!("docs/{}", "x".repeat(256))).is_err());
        assert!(check(&"docs/xxxxxxxxxxxxxxxxxxxxxxxx/".repeat(50)).is_err());
    }
}
