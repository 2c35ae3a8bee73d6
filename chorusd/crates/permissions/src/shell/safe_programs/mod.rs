//! Programs that are known to run nothing else with the options they are given. A rule that matches any program allows
//! only these.
//!
//! A list of dangerous programs can never be complete, so this one lists harmless programs, and everything else is
//! asked about.

mod git;
mod options;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::delegating_options::shorten_word;
use options::AllowedOptions;

static SAFE_PROGRAMS: LazyLock<HashMap<&str, AllowedOptions>> =
    LazyLock::new(|| parse_table(include_str!("programs.txt")));

/// Checks that a command is known to run nothing else.
///
/// # Errors
/// The words that are not known: the program, or the program with an option or verb.
pub(crate) fn check(words: &[&str]) -> Result<(), String> {
    let Some((name, given)) = words.split_first() else { return Ok(()) };
    let program = system_program_name(name).unwrap_or_default();
    let known = match program {
        "git" => git::check(given),
        _ => SAFE_PROGRAMS.get(program).ok_or_else(|| shorten_word(name))?.check(given),
    };
    known.map_err(|word| shorten_word(&[*name, " ", word].concat()))
}

/// Returns true if a program is in the table.
pub(super) fn is_listed(name: &str) -> bool {
    SAFE_PROGRAMS.contains_key(name)
}

/// Returns the name of a program that is found through PATH or in the system's directories; `None` for a file of the
/// workspace.
fn system_program_name(name: &str) -> Option<&str> {
    let plain = ["/bin/", "/usr/bin/"].iter().find_map(|place| name.strip_prefix(place)).unwrap_or(name);
    (!plain.contains('/')).then_some(plain)
}

fn parse_table(text: &'static str) -> HashMap<&'static str, AllowedOptions> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.filter_map(|line| Some(line.split_at(line.find(": ").or_else(|| line.find("= "))?)));
    entries
        .flat_map(|(names, options)| {
            let options = AllowedOptions::parse(options);
            names.split(',').map(move |name| (name, options.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: &str) -> Option<String> {
        check(&command.split(' ').collect::<Vec<_>>()).err()
    }

    #[test]
    fn readers_are_known_with_options_that_only_read() {
        for command in [
            "ls",
            "ls -la src --color=auto",
            "/bin/ls x",
            "/usr/bin/cat -n x",
            ": x",
            "true",
            "[ -f x ]",
            "cd ..",
            "head -5 x",
            "head -n -3 x",
            "grep -rn -A3 x --include=a",
            "grep -e -5 x",
            "sort -k2,2n -t, x",
            "sort -t - x",
            "find . -name x -mtime -7 -print",
            "ls -- -rf",
            "wc -l",
            "cat -",
            "tee -a x",
            "dd if=a of=b",
        ] {
            assert_eq!(refused(command), None, "{command}");
        }
    }

    #[test]
    fn everything_else_is_not_known_and_named() {
        for (command, named) in [
            ("make", "make"),
            ("cargo test", "cargo"),
            ("npm run x", "npm"),
            ("python3 x.py", "python3"),
            ("./ls", "./ls"),
            ("bin/ls", "bin/ls"),
            ("/tmp/ls", "/tmp/ls"),
            ("LS", "LS"),
            ("/usr/bin/../../tmp/ls", "/usr/bin/../../tmp/ls"),
            ("cp a b", "cp"),
            ("sort -o x y", "sort -o"),
            ("sort -ro x", "sort -ro"),
            ("sort --out x", "sort --out"),
            ("sort x -T.", "sort -T."),
            ("sort --compress-program=x", "sort --compress-program=x"),
            ("tree -R", "tree -R"),
            ("diff -l a b", "diff -l"),
            ("file -z x", "file -z"),
            ("find . -exec x ;", "find -exec"),
            ("find . -files0-from x", "find -files0-from"),
            ("rg -nz x", "rg -nz"),
            ("date -s x", "date -s"),
            ("ls --tomorrow", "ls --tomorrow"),
        ] {
            assert_eq!(refused(command).as_deref(), Some(named), "{command}");
        }
    }

    #[test]
    fn the_table_names_each_program_once_and_no_runner() {
        let text = include_str!("programs.txt");
        let mut names: Vec<&str> = parse_table(text).into_keys().collect();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let written: usize = lines.map(|line| line.split([' ']).next().unwrap_or_default().split(',').count()).sum();
        assert_eq!(names.len(), written, "a program stands there twice");
        names.retain(|name| super::super::command_runners::ask_reason(&[name]).is_some());
        names.retain(|name| *name != "sed");
        assert_eq!(names, [""; 0], "runs others");
    }
}
