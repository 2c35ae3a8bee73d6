//! Programs that run other commands, always or with certain options.
//!
//! No such list can be complete: any program that is missing here is judged by the profile's patterns alone.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::delegating_options::{canonical_name, is_kernel_path, matches_option};
use super::normalize::base_name;

/// Programs that run their arguments, read commands or programs from elsewhere, or change the meaning of later
/// commands. Names are without versions.
static WRAPPER_PROGRAMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("runners.txt").split_whitespace().collect());

/// Programs that do so only with one of these options, whatever a rule spells out, because the command they run follows
/// the option, or because they set variables of the shell. [`matches_option`] describes the notation. Options that a
/// rule may spell out are in delegating_options/tables.rs.
const WRAPPER_OPTIONS: &[(&str, &[&str])] = &[
    ("[", &["-v", "-R"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("find", &["-exec", "-ok", "-delete", "-fprint", "-fls"]),
    ("jobs", &["-x"]),
    ("printf", &["-v"]),
    ("test", &["-v", "-R"]),
];

/// Verbs of git that run nothing but git. Other verbs may be aliases, which can run anything.
const SAFE_GIT_VERBS: &[&str] = &[
    "add",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "grep",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "pull",
    "push",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stash",
    "status",
    "switch",
    "tag",
];

/// Options of git in front of its verb that do not change what git runs.
pub(super) const HARMLESS_GIT_OPTIONS: [&str; 4] = ["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"];

/// Options that make git run something else or write to a given file.
const DELEGATING_GIT_OPTIONS: &[&str] = &[
    "--config",
    "--exec",
    "--ext-diff",
    // It opens a manual viewer, which the repository may configure.
    "--help",
    "--open-files-in-pager",
    "--output",
    "--receive-pack",
    "--template",
    "--textconv",
    "--upload-pack",
    "--separate-git-dir",
];

/// Returns the reason why a command may run other commands, as a text that continues "it is asked about because".
#[must_use]
pub(super) fn ask_reason(words: &[&str]) -> Option<String> {
    let (name, given) = words.split_first()?;
    if is_kernel_path(name) {
        return Some(format!("`{name}` can be any program"));
    }
    let name = base_name(name).to_lowercase();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if WRAPPER_PROGRAMS.contains(plain)
        || WRAPPER_PROGRAMS.contains(&*name)
        || WRAPPER_PROGRAMS.contains(canonical_name(&name))
        || is_dynamic_loader(&name)
    {
        return Some(format!("`{name}` runs other commands or changes their meaning"));
    }
    let told = WRAPPER_OPTIONS.iter().filter(|(program, _)| *program == name || *program == plain);
    let told =
        told.flat_map(|(_, options)| *options).find(|option| given.iter().any(|word| matches_option(word, option)));
    if let Some(option) = told {
        return Some(format!("the option {option} of `{name}` runs or writes something else"));
    }
    match plain {
        // Without a verb it reads commands, which may load engines.
        "openssl" if given.first().is_none_or(|verb| verb.starts_with('-')) => Some("`openssl` reads commands".into()),
        "git" => git_ask_reason(given),
        "printf" if given.iter().any(|word| has_percent_n(word)) => {
            Some("the format of `printf` contains `%n`, which sets a variable".into())
        }
        "sed" if !is_simple_sed(given) => Some("the `sed` script may run commands or write files".into()),
        _ => None,
    }
}

/// Returns the reason why a command may run other commands if it is not in the workspace's top directory.
#[must_use]
pub(super) fn changed_directory_reason(words: &[&str]) -> Option<String> {
    // A directory of plain files can be a repository whose configuration names programs.
    let git = words.first().is_some_and(|name| base_name(name).eq_ignore_ascii_case("git"));
    git.then(|| "`git` uses the repository of another directory, whose configuration may run programs".to_owned())
}

/// Returns true if a command changes the directory of later commands.
#[must_use]
pub(super) fn changes_directory(words: &[&str]) -> bool {
    matches!(words.first(), Some(&("cd" | "pushd" | "popd")))
}

/// Returns true if a program is a dynamic loader: `ld-linux-x86-64.so.2`, `ld-musl-aarch64.so.1`, `ld64.so`.
fn is_dynamic_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

/// Returns true if a `printf` format contains `%n`, possibly with flags or widths in between.
fn has_percent_n(format: &str) -> bool {
    let between = |c: char| c.is_ascii_digit() || "-+ #'*.hlLjtzq".contains(c);
    let mut behind = format.split('%').skip(1);
    behind.any(|rest| rest.trim_start_matches(between).starts_with('n'))
}

fn git_ask_reason(given: &[&str]) -> Option<String> {
    let mut given = given.iter().skip_while(|word| HARMLESS_GIT_OPTIONS.contains(word) || **word == "--version");
    let verb = given.next()?;
    if verb.starts_with('-') {
        return Some(format!("`git {verb}` may change which programs git runs"));
    }
    if !SAFE_GIT_VERBS.contains(verb) {
        return Some(format!("`git {verb}` may run other commands"));
    }
    let cloning = ["-c", "-u"];
    given
        .find(|word| {
            DELEGATING_GIT_OPTIONS.iter().any(|option| matches_option(word, option))
                || word.contains("::")
                || (*verb == "clone" && cloning.iter().any(|option| matches_option(word, option)))
                || (*verb == "grep" && matches_option(word, "-O"))
        })
        .map(|word| format!("the option {word} of `git {verb}` runs or writes something else"))
}

/// Returns true for scripts that print or delete lines by number, or make one substitution whose flags neither run nor
/// write.
fn is_simple_sed(given: &[&str]) -> bool {
    let mut given = given.iter().skip_while(|word| ["-n", "-E", "-r"].contains(word));
    let Some(script) = given.next() else { return false };
    let by_number = script
        .strip_suffix(['p', 'd', 'q', '='])
        .is_some_and(|lines| lines.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$')));
    let substitutes = script.strip_prefix("s/").is_some_and(|rest| {
        let mut parts = rest.split('/');
        let (from, to, flags) = (parts.next(), parts.next(), parts.next());
        let plain = |part: Option<&str>| part.is_some_and(|part| !part.contains(['\\', '\n']));
        let flags = flags.is_some_and(|flags| flags.chars().all(|c| "gpiI0123456789".contains(c)));
        plain(from) && plain(to) && flags && parts.next().is_none()
    });
    (by_number || substitutes) && given.all(|word| !word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_others_is_known() {
        let asks = |command: &str| ask_reason(&command.split(' ').collect::<Vec<_>>()).is_some();
        for command in [
            "/usr/bin/env x",
            "python3.11 -c x",
            "SUDO ls",
            "find . -execdir x ;",
            "find . -delete",
            "git -c a=b log",
            "git --exec-path=/x log",
            "git frobnicate",
            "git log --outp=x",
            "git clone -cx=y z",
            "git fetch ext::sh",
            "sed -i s/a/b/ x",
            "sed s/a/b/e x",
            "sed 1e x",
            "sed -n w/x",
            ". x",
            "test -v x",
            "printf %n x",
            "printf a%%%-05.*lln x",
            "sensible-pager x",
            "vim.tiny x",
            "/proc/self/exe -c x",
            "perl5.36-x86_64-linux-gnu -e x",
            "ld-linux-aarch64.so.1 x",
            "x86_64 x",
            "uname26 x",
            "slogin x",
            "prove x",
            "msgexec x",
            "msgfilter x",
            "openssl -engine x",
            "openssl",
        ] {
            assert!(asks(command), "{command}");
        }
        for command in [
            "ls -la",
            "find . -name x",
            "tar -tzf x",
            "git --no-pager log --oneline -n 3",
            "git diff HEAD~1",
            "sed -n 1,20p x",
            "sed s/a/b/g x",
            "sort -u x",
            "rg -n x",
            "test -f x",
            "cargo test --all",
            "base64 x",
            "printf %s\\n x",
            "printf 100%-done",
            "gcc -O2 -DBAR a.c",
        ] {
            assert!(!asks(command), "{command}");
        }
    }
}
