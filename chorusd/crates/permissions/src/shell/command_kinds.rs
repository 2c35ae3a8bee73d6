//! Kinds of commands: the leading words that say what a command does, such as `git status` or `cargo test`.
//!
//! A pattern that people are offered at a question covers one kind. A list of everything that is harmless can never be
//! complete, so kinds are listed, and no pattern is offered for anything else: not for programs that run their arguments
//! or delete them, nor for verbs that lead to other machines.

use super::command_runners::HARMLESS_GIT_OPTIONS;
use super::{quote_word, safe_programs};

/// Programs with the words behind them that make a kind. A `+` stands for one more plain word: the name of a script.
const KINDS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "b",
            "bench",
            "build",
            "c",
            "check",
            "clean",
            "clippy",
            "d",
            "doc",
            "fmt",
            "metadata",
            "nextest list",
            "nextest run",
            "r",
            "run",
            "t",
            "test",
            "tree",
        ],
    ),
    ("dotnet", &["build", "test"]),
    (
        "git",
        &[
            "add",
            "blame",
            "branch",
            "cat-file",
            "check-ignore",
            "checkout",
            "cherry-pick",
            "commit",
            "count-objects",
            "describe",
            "diff",
            "diff-files",
            "diff-index",
            "diff-tree",
            "for-each-ref",
            "grep",
            "log",
            "ls-files",
            "ls-tree",
            "merge",
            "merge-base",
            "mv",
            "name-rev",
            "remote get-url",
            "rev-list",
            "rev-parse",
            "revert",
            "shortlog",
            "show",
            "show-ref",
            "stash apply",
            "stash list",
            "stash pop",
            "stash push",
            "stash show",
            "status",
            "switch",
            "tag",
        ],
    ),
    ("go", &["build", "doc", "fmt", "list", "mod graph", "mod tidy", "mod verify", "test", "version", "vet"]),
    ("npm", &["audit", "ls", "list", "outdated", "run +", "t", "test"]),
    ("pip", &["check", "freeze", "list", "show"]),
    ("pip3", &["check", "freeze", "list", "show"]),
    ("pnpm", &["audit", "ls", "list", "outdated", "run +", "t", "test", "why"]),
    ("ruff", &["check", "format"]),
    ("yarn", &["audit", "list", "outdated", "run +", "test", "why"]),
];

/// Returns how many leading words of a command make its kind, or `None` if it is of no listed kind. One word means that
/// the program is one of the reviewed table, whose options decide whether a command is covered.
#[must_use]
pub(crate) fn kind_len(words: &[&str]) -> Option<usize> {
    let (name, given) = words.split_first()?;
    if !is_plain(name) {
        return None;
    }
    let Some((_, kinds)) = KINDS.iter().find(|(program, _)| program == name) else {
        return safe_programs::is_listed(name).then_some(1);
    };
    let skipped = match *name {
        "git" => given.iter().take_while(|word| HARMLESS_GIT_OPTIONS.contains(word)).count(),
        _ => 0,
    };
    let given = &given[skipped..];
    let fits = |kind: &&&str| {
        let mut left = given.iter();
        kind.split(' ')
            .all(|wanted| left.next().is_some_and(|word| *word == wanted || (wanted == "+" && is_plain(word))))
    };
    let kind = kinds.iter().find(fits)?;
    Some(1 + skipped + kind.split(' ').count())
}

/// Returns true if a word needs no quotes in an action and starts like the name of a program, a verb or a script.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(plain) && quote_word(word) == word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_make_a_kind_are_found() {
        for (command, wanted) in [
            ("git status", Some(2)),
            ("git status --short", Some(2)),
            ("git --no-pager log --oneline", Some(3)),
            ("git stash pop", Some(3)),
            ("cargo test -p api", Some(2)),
            ("cargo nextest run", Some(3)),
            ("npm run build:all -- -x", Some(3)),
            ("npm test", Some(2)),
            ("ls -la src", Some(1)),
            ("grep -rn x .", Some(1)),
            ("git", None),
            ("git -c a=b status", None),
            ("git -C x status", None),
            ("git stash", None),
            ("git push origin main", None),
            ("git clean -fd", None),
            ("git reset --hard", None),
            ("git frobnicate", None),
            ("cargo", None),
            ("cargo +nightly test", None),
            ("cargo install x", None),
            ("cargo xtask x", None),
            ("npm run", None),
            ("npm run -s", None),
            ("npm exec x", None),
            ("npm install x", None),
            ("pip install x", None),
            ("poetry run x", None),
            ("rm -rf x", None),
            ("mv a b", None),
            ("curl x", None),
            ("sudo ls", None),
            ("env ls", None),
            ("xargs ls", None),
            ("sh -c ls", None),
            ("python x.py", None),
            ("./ls", None),
            ("/bin/ls", None),
            ("LS", None),
            ("", None),
        ] {
            assert_eq!(kind_len(&command.split(' ').collect::<Vec<_>>()), wanted, "{command}");
        }
    }

    #[test]
    fn no_program_with_kinds_runs_others_by_its_kind() {
        for (program, kinds) in KINDS {
            for kind in *kinds {
                let words: Vec<&str> = std::iter::once(*program).chain(kind.split(' ')).collect();
                assert_eq!(super::super::command_runners::ask_reason(&words), None, "{program} {kind}");
            }
        }
    }
}
