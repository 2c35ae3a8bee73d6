//! Recognizes commands that can be read in one way only: then the strict parser is enough, and tree-sitter, which takes
//! two thirds of the time of an analysis, need not read them as well.
//!
//! Such a command consists of words of letters, digits and a few signs, each after one space, that are joined by `|`,
//! `||`, `&&` and `;`, and of redirections of output behind the words. A random test compares what both parsers find in
//! such commands (`both_parsers_read_plain_commands_alike`).

/// Longest command that is looked at, in bytes.
const MAX_LEN: usize = 1 << 10;

/// Words that are part of the shell's syntax, or that tree-sitter has rules for, somewhere in a command.
const SYNTAX_WORDS: [&str; 27] = [
    "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "eval", "export", "fi", "for", "function", "if",
    "in", "let", "local", "nameref", "readonly", "select", "then", "time", "typeset", "unset", "unsetenv", "until",
    "while",
];

/// Redirections that are one token.
const REDIRECTIONS: [&str; 5] = ["2>&1", ">&2", "2>/dev/null", ">/dev/null", "&>/dev/null"];

/// The place in a command at which the next token stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Program,
    Word,
    /// Behind a redirection: no more words.
    Redirections,
    /// Behind `>` or `>>`.
    File,
}

/// Returns true if only one reading of the command is possible.
#[must_use]
pub(super) fn are_plain(text: &str) -> bool {
    // The limit on `case` in `syntax_tree` counts it in other words, too.
    if text.len() > MAX_LEN || text.contains("case") {
        return false;
    }
    let mut place = Place::Program;
    for token in text.split(' ') {
        let (token, ends) = token.strip_suffix(';').map_or((token, false), |token| (token, true));
        let next = match (place, token) {
            (Place::Word | Place::Redirections, "|" | "||" | "&&") if !ends => Some(Place::Program),
            (Place::Word | Place::Redirections, ">" | ">>") => Some(Place::File),
            (Place::Word | Place::Redirections, _) if REDIRECTIONS.contains(&token) => Some(Place::Redirections),
            (Place::Program, _) if is_program(token) => Some(Place::Word),
            (Place::Word, _) if is_word(token) => Some(Place::Word),
            (Place::File, _) if is_file(token) => Some(Place::Redirections),
            _ => None,
        };
        let Some(next) = next.filter(|next| !ends || matches!(next, Place::Word | Place::Redirections)) else {
            return false;
        };
        place = if ends { Place::Program } else { next };
    }
    matches!(place, Place::Word | Place::Redirections)
}

fn is_program(token: &str) -> bool {
    token != "test" && token.starts_with(|c: char| c.is_ascii_alphabetic()) && !token.contains('=') && is_word(token)
}

fn is_file(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && !token.contains('=') && is_word(token)
}

/// Returns true for a word of plain characters. Only an option may have `=`: elsewhere it may be an assignment.
fn is_word(token: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./,:=".contains(&byte);
    // tree-sitter takes a lone `-` before a redirection for a part of that.
    !matches!(token, "" | "-")
        && token.bytes().all(plain)
        && (token.starts_with('-') || !token.contains('='))
        && !SYNTAX_WORDS.contains(&token)
}

#[cfg(test)]
mod tests {
    use super::super::{strict_parser, syntax_tree};
    use super::*;

    /// Tokens of random commands; most are plain, and the others look like plain ones.
    const TOKENS: [&str; 64] = [
        "git",
        "log",
        "ls",
        "grep",
        "cat",
        "sort",
        "head",
        "cargo",
        "a",
        "b1",
        "x_y",
        "A",
        "s",
        "e",
        "n",
        "r",
        "--oneline",
        "-n",
        "5",
        "-la",
        "-",
        "--",
        "-e",
        "-a",
        "-z",
        "-eq",
        "--format=%h",
        "-c=1",
        "src/a.rs",
        "./run",
        "/bin/ls",
        ".",
        "..",
        "/",
        "1",
        "0",
        "2",
        "12",
        "1.5",
        "a.b",
        "a:b",
        "a,b",
        "@",
        "%",
        ":",
        "HEAD..x",
        "user@host",
        "%s",
        "1,2p",
        "true",
        "false",
        "not",
        "and",
        "is",
        "exec",
        "set",
        "source",
        "trap",
        "exit",
        "return",
        "shift",
        "alias",
        "wait",
        "test",
    ];
    const JOINS: [&str; 12] =
        ["|", "||", "&&", ";", ";", "2>&1", ">&2", "> out.txt", ">> log/a", "2>/dev/null", ">/dev/null", "&>/dev/null"];

    /// The parts of random words.
    const LETTERS: &[u8] = b"abnxEF0127___---....///,:%=@+";

    /// A small generator of numbers, so that each run tests the same commands.
    fn next(state: &mut u64, limit: usize) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state % limit as u64) as usize
    }

    fn random_command(state: &mut u64) -> String {
        let mut text = String::new();
        for _ in 0..=next(state, 12) {
            let is_join = next(state, 3) == 0;
            let token = match next(state, 3) {
                _ if is_join => JOINS[next(state, JOINS.len())].to_owned(),
                0 => (0..=next(state, 4)).map(|_| char::from(LETTERS[next(state, LETTERS.len())])).collect(),
                _ => TOKENS[next(state, TOKENS.len())].to_owned(),
            };
            if !text.is_empty() && token != ";" {
                text.push(' ');
            }
            text.push_str(&token);
        }
        text
    }

    #[test]
    fn both_parsers_read_plain_commands_alike() {
        let rounds = std::env::var("CHORUS_PERMISSION_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
        let (mut state, mut plain) = (0x9e37_79b9_7f4a_7c15, 0);
        let rounds = rounds.unwrap_or(20_000);
        for _ in 0..rounds {
            let text = random_command(&mut state);
            if !are_plain(&text) {
                continue;
            }
            plain += 1;
            let strict = strict_parser::parse(&text);
            let strict: Vec<_> = strict.unwrap_or_default().into_iter().filter_map(|simple| simple.span).collect();
            let found = syntax_tree::find_commands(&text).map(|found| found.commands);
            assert_eq!(Ok(strict), found, "{text}");
        }
        assert!(plain * 20 > rounds, "only {plain} of {rounds} commands are plain");
    }

    #[test]
    fn what_may_be_read_in_another_way_is_not_plain() {
        for text in ["ls", "ls -la; git status", "a | b && c || d 2>&1", "cat a > b; c >> /d 2>&1", "a --b=c"] {
            assert!(are_plain(text), "{text}");
        }
        for text in [
            "",
            " ",
            "ls ",
            " ls",
            "ls  a",
            "ls;",
            "ls; ",
            "ls ;",
            "ls | ",
            "| ls",
            "a |& b",
            "a & b",
            "a &",
            "a=b c",
            "a b=c",
            "a 'b'",
            "a $b",
            "a *",
            "a?",
            "~/a",
            "a ~",
            "a {b,c}",
            "if a; then b; fi",
            "time a",
            "a > ",
            "a >",
            "a > b c",
            "a 2> b",
            "2>&1",
            "a 2>&1 b",
            "! a",
            "[ a ]",
            "a\tb",
            "a\nb",
            "a #b",
            "é",
            "a é",
            "a > 1",
            "a > -",
            "lowercase a",
            "a < b",
            "a \\b",
            "a(b)",
            "-a",
            "5 a",
            "a |; b",
            "a && ; b",
            "a; ; b",
            "declare a",
            "test -e a",
        ] {
            assert!(!are_plain(text), "{text}");
        }
    }
}
