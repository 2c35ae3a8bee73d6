//! Delegating words: arguments that make a program run another program, load code, or write to a file that they name.
//!
//! A rule allows such a command only if it spells the word out: `npm run .*` allows `npm run x`, but `gcc( .*)?` does
//! not allow `gcc @options`.

mod program_name;
mod tables;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::normalize::base_name;
pub(super) use program_name::{canonical_name, is_kernel_path};

/// Delegating options by program name.
static OPTIONS_BY_PROGRAM: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut options: HashMap<&str, Vec<&str>> = HashMap::new();
    for (programs, more) in tables::DELEGATING_OPTIONS {
        for program in *programs {
            options.entry(program).or_default().extend(*more);
        }
    }
    options
});

static RESPONSE_FILE_PROGRAMS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| tables::RESPONSE_FILE_PROGRAMS.iter().copied().collect());

/// Length of the longest name in [`RESPONSE_FILE_PROGRAMS`], in bytes.
static MAX_PROGRAM_NAME_LEN: LazyLock<usize> =
    LazyLock::new(|| tables::RESPONSE_FILE_PROGRAMS.iter().map(|name| name.len()).max().unwrap_or(0));

/// A delegating word of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Delegation {
    /// Index of the last delegating word of the command.
    pub word_index: usize,
    /// The reason, as a text that continues "it is asked about because".
    pub reason: String,
}

/// Finds the last delegating word of a command.
#[must_use]
pub(super) fn find_last(words: &[&str]) -> Option<Delegation> {
    let (name, given) = words.split_first()?;
    let name = base_name(name).to_lowercase();
    let family = strip_imagemagick_version(canonical_name(&name));
    let options =
        OPTIONS_BY_PROGRAM.get(family).or_else(|| OPTIONS_BY_PROGRAM.get(&*name)).map_or(&[][..], Vec::as_slice);
    let (response, archiver) = (RESPONSE_FILE_PROGRAMS.contains(family), family.ends_with("tar"));
    if options.is_empty() && !response && !archiver {
        return None;
    }
    let remote = archiver && !given.iter().take_while(|word| **word != "--").any(|word| *word == "--force-local");
    let verb = given.iter().position(|word| !word.starts_with('-'));
    // An option in front of the verb may take the next word as its value: then any word may be the verb.
    let certain =
        given.iter().take_while(|word| word.starts_with('-')).all(|word| tables::FLAGS_WITHOUT_VALUE.contains(word));
    let is_verb = |at: usize, word: &str| if certain { verb == Some(at) } else { !word.starts_with('-') };
    let hands = |at: usize, word: &str| {
        options.iter().any(|option| match option.strip_prefix("verb ") {
            Some("+") => is_verb(at, word) && !tables::SAFE_VERBS.contains(&word),
            Some(listed) => is_verb(at, word) && listed == word,
            None => matches_option(word, option),
        }) || (response && word.starts_with('@'))
            // The first word of `tar` needs no dash.
            || (at == 0 && archiver && !word.starts_with('-') && word.contains(['I', 'F', 'P']))
            || (remote && is_remote_archive(word))
    };
    let at = given.iter().enumerate().rev().find(|(at, word)| hands(*at, word)).map(|(at, _)| at)?;
    let word = given.get(at)?;
    let reason = format!("an option of `{name}` runs or writes something else (`{}`)", shorten_word(word));
    Some(Delegation { word_index: at + 1, reason })
}

/// Strips the version from the name of an ImageMagick tool, such as `convert-im6.q16`.
fn strip_imagemagick_version(name: &str) -> &str {
    let version = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit());
    name.split_once("-im").filter(|(_, rest)| version(rest)).map_or(name, |(tool, _)| tool)
}

/// Returns true if a word may name an archive on another machine (`host:x`), which `tar` accesses through `rsh`.
fn is_remote_archive(word: &str) -> bool {
    let name = match word.strip_prefix("--").map(|long| long.split_once('=')) {
        Some(Some((long, name))) if "file".starts_with(long) => name,
        Some(_) => return false,
        None => match word.strip_prefix('-') {
            Some(letters) => letters.split_once('f').map_or("", |(_, name)| name),
            None => word,
        },
    };
    name.split_once(':').is_some_and(|(host, _)| !host.contains('/'))
}

/// Shortens a word so that it fits on one line of a message.
pub(super) fn shorten_word(word: &str) -> String {
    word.chars().take_while(|c| !c.is_control()).take(60).collect()
}

/// Returns true if a word matches an option of the tables. `--long` also matches its abbreviations, `-x` every group of
/// letters that contains `x`, `-long` every word that starts with it, with one dash or two; anything else matches
/// literally. A `*` at the end, or at both ends, matches any text.
pub(super) fn matches_option(word: &str, option: &str) -> bool {
    if let Some(start) = option.strip_suffix('*') {
        return start.strip_prefix('*').map_or_else(|| word.starts_with(start), |part| word.contains(part));
    }
    if let Some(long) = option.strip_prefix("--") {
        let Some(given) = word.strip_prefix("--") else { return false };
        let given = given.split('=').next().unwrap_or_default();
        return !given.is_empty() && (long.starts_with(given) || given == long);
    }
    match option.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
        Some(_) => word.starts_with(option) || word.strip_prefix('-').is_some_and(|word| word.starts_with(option)),
        None => word == option,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_that_hands_over_is_found() {
        for (command, at) in [
            ("gcc @opts", Some(1)),
            ("gcc -O2 -B/x a.c @opts", Some(4)),
            ("/usr/bin/x86_64-linux-gnu-gcc-12 @opts", Some(1)),
            ("aarch64-linux-gnu-g++-13 -wrapper x", Some(1)),
            ("c99 @opts", Some(1)),
            ("c89-gcc -wrapper x", Some(1)),
            ("ld @f", Some(1)),
            ("x86_64-linux-gnu-ld.bfd -plugin x", Some(1)),
            ("nm @f", Some(1)),
            ("llvm-nm-14 --plugin=x", Some(1)),
            ("gcc-ar-12 --plugin x", Some(1)),
            ("ranlib --plug x", Some(1)),
            ("ar @f", Some(1)),
            ("rustc @f", Some(1)),
            ("rustc -Clinker=x a.rs", Some(1)),
            ("javac @f", Some(1)),
            ("javac -J-javaagent:x", Some(1)),
            ("keytool -J-javaagent:x", Some(1)),
            ("npm x", Some(1)),
            ("npm run x", Some(1)),
            ("npm --silent run x", Some(2)),
            ("npm test", Some(1)),
            ("npm --prefix ls run x", Some(4)),
            ("npm --prefix run ls", Some(2)),
            ("uv --directory x run y", Some(3)),
            ("yarn lint", Some(1)),
            ("pip wheel .", Some(1)),
            ("pip3.11 --python x list", Some(1)),
            ("pip install x", Some(1)),
            ("dpkg --pre-invoke=x -l", Some(1)),
            ("apt-get -oDir::Bin=x update", Some(1)),
            ("apt -c x update", Some(1)),
            ("openssl engine x", Some(1)),
            ("openssl dgst -engine x", Some(2)),
            ("openssl list -provider x", Some(2)),
            ("ssh-keygen -D x", Some(1)),
            ("tar -cf a --index-file=x b", Some(3)),
            ("tar xIf x a", Some(1)),
            ("sdiff -o x a b", Some(1)),
            ("tree -R", Some(1)),
            ("dpkg-architecture -c x", Some(1)),
            ("uv run x", Some(1)),
            ("convert |x y", Some(1)),
            ("convert png:|x y", Some(1)),
            ("convert-im6.q16 png:|x y", Some(1)),
            ("mogrify-im6 @x", Some(1)),
            ("conjure x", Some(1)),
            ("magick -script x", Some(1)),
            ("convert a.png b.jpg", None),
            ("rsync --daemon", Some(1)),
            ("rsync -a src/ out/", None),
            ("clang --ptxas-path=x a.cu", Some(1)),
            ("tar cf host:x y", Some(2)),
            ("tar -cfhost:x y", Some(1)),
            ("tar -c --file=host:x y", Some(2)),
            ("tar -c --file host:x y", Some(3)),
            ("tar cf host:x y --force-local", None),
            ("tar cf ./host:x y", None),
            ("gcc -O2 -DBAR -c a.c", None),
            ("npm ls x", None),
            ("npm install exec", None),
            ("yarn add x", None),
            ("pip list", None),
            ("nm a.o", None),
            ("ar rcs x.a y.o", None),
            ("apt-get update", None),
            ("openssl version", None),
            ("echo @x", None),
            ("tar -tzf x", None),
            ("cargo test run", None),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(find_last(&words).map(|found| found.word_index), at, "{command}");
        }
    }
}
