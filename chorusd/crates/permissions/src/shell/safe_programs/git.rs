//! Verbs of git that run nothing but git, whatever the repository's configuration and attributes name.
//!
//! A repository can name programs: hooks, filters (`clean`, `smudge`), `textconv` and external diffs, merge drivers,
//! fsmonitor, pagers, editors, and programs for signatures, credentials and connections. The environment of commands
//! pins or disables fsmonitor, the signature programs and lazy fetching (sandbox/git_settings.rs), and without a
//! terminal there is no pager. The remaining ways are decided here:
//!
//! - `status`, `diff` of the working tree, `blame`, `add`, `checkout`, `stash` and similar verbs run filters.
//! - `commit`, `branch NAME`, `tag NAME`, `reset`, `merge`, `fetch`, `push` and similar verbs run hooks; the last two
//!   also run programs for connections.
//! - `diff` runs external diffs and `textconv`; `log -p` and `show` run `textconv`, unless an option forbids it.
//!   `log -G`, `-S` and `-m` may run `textconv` and merge drivers.

use super::super::command_runners::HARMLESS_GIT_OPTIONS;
use super::options::AllowedOptions;

/// Options of `log` and `show` that select commits and their format.
const LOG_OPTIONS: &str = "= -n -s -q -z -i -E -F -P -r -t --no-patch --oneline --stat --shortstat --numstat --name-only \
    --name-status --summary --raw --graph --decorate --no-decorate --all --branches --tags --remotes --reverse --merges \
    --no-merges --first-parent --follow --abbrev-commit --no-abbrev-commit --no-color --color --date-order --topo-order \
    --author-date-order --left-right --boundary --full-history --simplify-merges --source --relative-date \
    --no-notes --no-ext-diff --no-textconv --no-renames --full-index --";
/// Options of `log` and `show` that have a value.
const LOG_OPTIONS_WITH_VALUE: [&str; 22] = [
    "--format",
    "--pretty",
    "--date",
    "--since",
    "--after",
    "--until",
    "--before",
    "--author",
    "--committer",
    "--grep",
    "--max-count",
    "--skip",
    "--abbrev",
    "--stat",
    "--decorate",
    "--decorate-refs",
    "--branches",
    "--tags",
    "--remotes",
    "--exclude",
    "--color",
    "--diff-filter",
];

/// Checks the arguments of `git`.
///
/// # Errors
/// The verb, or the first word that is not known to be safe.
pub(super) fn check<'a>(given: &[&'a str]) -> Result<(), &'a str> {
    let before = given.iter().take_while(|word| HARMLESS_GIT_OPTIONS.contains(word)).count();
    let Some((verb, whole)) = given.get(before..).and_then(<[&str]>::split_first) else { return Ok(()) };
    // Words behind `--` are not options; only `check_no_operands` examines them.
    let given = whole.split(|word| *word == "--").next().unwrap_or_default();
    match *verb {
        "--version" => Ok(()),
        "rev-parse" => check_options(
            "= -q --abbrev-ref --short --verify --quiet --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir \
             --absolute-git-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --symbolic-full-name \
             --symbolic --all --branches --tags --remotes --",
            given,
            &["--short", "--abbrev-ref"],
        ),
        "ls-tree" => check_options(
            "= -r -d -t -l -z --name-only --name-status --long --full-name --full-tree --object-only --",
            given,
            &["--abbrev", "--format"],
        ),
        "show-ref" => {
            check_options("= -q -s -d --head --heads --branches --tags --verify --quiet --hash --dereference --exists --", given, &[])
        }
        "merge-base" => check_options("= -a --all --octopus --independent --is-ancestor --fork-point", given, &[]),
        "name-rev" => check_options("= --tags --all --name-only --always --no-undefined", given, &["--refs", "--exclude"]),
        "count-objects" => check_options("= -v -H --verbose --human-readable", given, &[]),
        "check-ignore" => check_options("= -v -q -n -z --verbose --quiet --non-matching --no-index --", given, &[]),
        "cat-file" => check_options("= -p -t -s -e --batch-check --batch --batch-all-objects --buffer --", given, &[]),
        "ls-files" => check_options(
            "= -c -d -o -s -i -u -z -t -v -k --cached --deleted --others --stage --ignored --unmerged --killed \
             --exclude-standard --full-name --error-unmatch --directory --deduplicate --eol --",
            given,
            &["--exclude", "--abbrev"],
        ),
        "rev-list" => check_options(
            "= -n --count --all --branches --tags --remotes --reverse --merges --no-merges --first-parent --objects \
             --left-right --topo-order --date-order --parents --children --abbrev-commit --",
            given,
            &["--max-count", "--skip", "--since", "--after", "--until", "--before", "--author", "--grep"],
        ),
        "describe" => check_options(
            "= --tags --all --long --always --contains --exact-match --first-parent",
            given,
            &["--abbrev", "--match", "--exclude", "--candidates"],
        ),
        "for-each-ref" => check_options("=", given, &["--format", "--sort", "--count", "--points-at", "--contains", "--merged"]),
        "shortlog" => check_options(
            "= -s -n -e -c -sn -ns -sne --summary --numbered --email --no-merges --all --",
            given,
            &["--since", "--until", "--author"],
        ),
        "grep" => AllowedOptions::parse(
            ": -nilLcwvEFPGe:A:B:C:hHoqzWpf:m: --cached --untracked --and --or --not --heading --break --quiet --column \
             --name-only --files-with-matches --files-without-match --count --line-number --ignore-case --word-regexp \
             --extended-regexp --fixed-strings --perl-regexp --invert-match --max-depth --all-match --only-matching \
             --no-color --color --no-textconv",
        )
        // `grep` may have `--` as the value of an option, which [`AllowedOptions::check`] recognises.
        .check(whole),
        // With a name these would create a branch or tag.
        "branch" => check_listing(verb, given, whole, "= -a -r -v -vv -l --all --remotes --list --show-current --verbose --no-color"),
        "tag" => check_listing(verb, given, whole, "= -l -n --list --no-color --no-column"),
        "remote" => check_options("= -v --verbose", given, &[]).and(check_no_operands(verb, whole, given.first() == Some(&"get-url"))),
        "reflog" => check_options("= -n", given, &[]).and(check_no_operands(verb, whole, false)),
        "log" => check_options(LOG_OPTIONS, given, &LOG_OPTIONS_WITH_VALUE),
        // Safe without a patch, or with the options that forbid running programs for it.
        "show" => {
            let quiet = ["-s", "--no-patch", "--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--raw"];
            let safe = given.iter().any(|word| *word == "--no-textconv" || quiet.contains(word));
            check_options(LOG_OPTIONS, given, &LOG_OPTIONS_WITH_VALUE).and(if safe { Ok(()) } else { Err(verb) })
        }
        // Diffs of the working tree run filters.
        "diff" => {
            let has = |wanted: &[&str]| given.iter().any(|word| wanted.contains(word));
            let safe = has(&["--cached", "--staged"]) && has(&["--no-ext-diff"]) && has(&["--no-textconv"]);
            let known = check_options(
                "= --cached --staged --no-ext-diff --no-textconv --stat --shortstat --numstat --name-only --name-status \
                 --summary --raw -p -u -w -b -z -q --quiet --exit-code --no-color --color --no-renames --word-diff \
                 --ignore-all-space --ignore-space-change --minimal --patience --histogram --full-index --",
                given,
                &["--unified", "--stat", "--diff-filter", "--color", "--abbrev", "--diff-algorithm"],
            );
            known.and(if safe { Ok(()) } else { Err(verb) })
        }
        _ => Err(verb),
    }
}

/// Checks that every word with a dash is listed, a number, or one of `valued` with its value behind `=`.
fn check_options<'a>(listed: &'static str, given: &[&'a str], valued: &[&str]) -> Result<(), &'a str> {
    let has_value = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| valued.contains(&name));
    let rest: Vec<&str> = given.iter().filter(|word| !has_value(word)).copied().collect();
    AllowedOptions::parse(listed).check(&rest)
}

/// Checks that branches or tags are listed and none is created.
fn check_listing<'a>(verb: &'a str, given: &[&'a str], whole: &[&'a str], listed: &'static str) -> Result<(), &'a str> {
    let list = given.iter().any(|word| ["-l", "--list"].contains(word));
    let valued =
        ["--sort", "--format", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--color"];
    check_options(listed, given, &valued).and(check_no_operands(verb, whole, list))
}

/// Checks that there are only options, unless operands are allowed (`may`).
fn check_no_operands<'a>(verb: &'a str, given: &[&'a str], may: bool) -> Result<(), &'a str> {
    if may || given.iter().all(|word| word.starts_with('-') && *word != "--") { Ok(()) } else { Err(verb) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_that_only_read_are_known() {
        for command in [
            "log",
            "log --oneline -n 5",
            "log -5 --format=%H%n%s -- src",
            "--no-pager log --stat main..x",
            "show --stat HEAD",
            "show --no-textconv",
            "diff --cached --no-ext-diff --no-textconv",
            "rev-parse HEAD",
            "ls-files -o --exclude-standard",
            "branch",
            "branch -a -v",
            "branch --list x*",
            "branch --list -- x*",
            "diff --cached --no-ext-diff --no-textconv -- x",
            "grep -n -- -O",
            "tag -l v1*",
            "remote -v",
            "remote get-url origin",
            "grep -n x src",
            "cat-file -p HEAD:x",
            "--version",
        ] {
            assert_eq!(check(&command.split(' ').collect::<Vec<_>>()), Ok(()), "{command}");
        }
    }

    #[test]
    fn what_may_run_a_program_of_the_repository_is_not() {
        for (command, named) in [
            ("status", "status"),
            ("commit -m x", "commit"),
            ("add x", "add"),
            ("diff", "diff"),
            ("diff --cached", "diff"),
            ("diff --no-ext-diff --no-textconv", "diff"),
            ("diff --cached --no-ext-diff --no-textconv --ext-diff", "--ext-diff"),
            ("log -p", "-p"),
            ("log --pat", "--pat"),
            ("log -Gx", "-Gx"),
            ("log --remerge-diff", "--remerge-diff"),
            ("log -m", "-m"),
            ("show", "show"),
            ("show HEAD", "show"),
            ("show -s -p", "-p"),
            ("branch x", "branch"),
            ("branch -d x", "-d"),
            ("branch -- x", "branch"),
            ("branch -- x --list", "branch"),
            ("tag -- v1 -l", "tag"),
            ("diff -- . --cached --no-ext-diff --no-textconv", "diff"),
            ("diff --cached --no-ext-diff -- --no-textconv", "diff"),
            ("show HEAD -- . --stat", "show"),
            ("grep -e -- -Oless", "-Oless"),
            ("tag v1", "tag"),
            ("remote add x y", "remote"),
            ("remote show origin", "remote"),
            ("reflog expire", "reflog"),
            ("describe --dirty", "--dirty"),
            ("ls-files -m", "-m"),
            ("grep -Oless x", "-Oless"),
            ("grep --open-files-in-pager x", "--open-files-in-pager"),
            ("cat-file --filters HEAD:x", "--filters"),
            ("rev-list --alternate-refs", "--alternate-refs"),
            ("ls-tree --help", "--help"),
            ("rev-parse --help", "--help"),
            ("frobnicate", "frobnicate"),
            ("-c a=b log", "-c"),
        ] {
            assert_eq!(check(&command.split(' ').collect::<Vec<_>>()), Err(named), "{command}");
        }
    }
}
