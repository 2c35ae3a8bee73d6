//! Normalises a command to what its author may have meant, so that quoting cannot evade rules that deny or ask.

use std::borrow::Cow;

use super::hidden_chars;

/// Limit on the word positions of a command that are tried as the start of another command.
const MAX_TAILS: usize = 64;
/// Length of the part of a command that is searched for such positions, in bytes.
const MAX_TAIL_SEARCH_LEN: usize = 4 << 10;

/// Options of git in front of its verb that take the next word as their value.
const GIT_OPTIONS_WITH_VALUE: [&str; 7] =
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"];

/// Removes quotes, escapes, expansions and invisible characters, and separates the words by single spaces.
///
/// The result is a guess that errs towards matching more: expansions are removed (`r${x}m` becomes `rm`), `$IFS`
/// becomes a space, and braces become the words in them (`{rm,-rf}` becomes `rm -rf`).
#[must_use]
pub(super) fn normalize_command(text: &str) -> String {
    let unseen = |c: char| hidden_chars::is_hidden(c) && !c.is_whitespace();
    let seen = if text.contains(unseen) { Cow::Owned(text.replace(unseen, "")) } else { Cow::Borrowed(text) };
    let mut out = String::with_capacity(seen.len());
    let mut rest = &*seen;
    let mut braces = 0_usize;
    let mut double = false;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let next = rest.chars().next();
                rest = &rest[next.map_or(0, char::len_utf8)..];
                out.extend(next.filter(|next| *next != '\n'));
            }
            '\'' if !double => {
                let (inside, after) = rest.split_once('\'').unwrap_or((rest, ""));
                out.push_str(inside);
                rest = after;
            }
            '"' => double = !double,
            '$' if !double && rest.starts_with('\'') => rest = decode_ansi_quote(&rest[1..], &mut out),
            '$' => rest = skip_expansion(rest, &mut out),
            '`' => rest = rest.split_once('`').map_or("", |(_, after)| after),
            '{' if !double => braces += 1,
            '}' if !double => braces = braces.saturating_sub(1),
            ',' if !double && braces > 0 => out.push(' '),
            _ => out.push(c),
        }
    }
    let mut words = String::with_capacity(out.len());
    for word in out.split_whitespace() {
        words.extend(Some(" ").filter(|_| !words.is_empty()).into_iter().chain([word]));
    }
    words
}

/// Skips an expansion whose `$` has been read, writes its replacement to `out`, and returns the remaining text.
fn skip_expansion<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let Some(first) = rest.chars().next() else { return rest };
    let (inside, after) = match first {
        '(' | '{' => {
            let close = if first == '(' { ')' } else { '}' };
            let mut depth = 0_usize;
            let end = rest.char_indices().find(|(_, c)| {
                depth = if *c == first { depth + 1 } else { depth - usize::from(*c == close) };
                depth == 0
            });
            rest.split_at(end.map_or(rest.len(), |(at, c)| at + c.len_utf8()))
        }
        c if c.is_ascii_alphabetic() || c == '_' => {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest.split_at(end)
        }
        '"' => return rest,
        c if c.is_ascii_digit() || "@*#?-$!".contains(c) => rest.split_at(1),
        _ => return rest,
    };
    if inside.contains("IFS") {
        out.push(' ');
    }
    after
}

/// Decodes a `$'…'` whose opening quote has been read, and returns the remaining text.
fn decode_ansi_quote<'a>(mut rest: &'a str, out: &mut String) -> &'a str {
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => return rest,
            '\\' => {
                let Some(kind) = rest.chars().next() else { return rest };
                rest = &rest[kind.len_utf8()..];
                let (radix, most) = match kind {
                    'x' => (16, 2),
                    'u' => (16, 4),
                    'U' => (16, 8),
                    '0'..='7' => (8, 3),
                    'n' | 't' | 'r' | 'v' | 'f' => {
                        out.push(' ');
                        continue;
                    }
                    'a' | 'b' | 'e' | 'E' | 'c' => continue,
                    other => {
                        out.push(other);
                        continue;
                    }
                };
                let first = if radix == 8 { kind.to_digit(8).unwrap_or_default() } else { 0 };
                // `\x{…}` takes any number of digits, and its closing brace may be missing.
                let open = kind == 'x' && rest.starts_with('{');
                rest = if open { &rest[1..] } else { rest };
                let most = if open { usize::MAX } else { most - usize::from(radix == 8) };
                let digits = rest.chars().map_while(|c| c.to_digit(radix)).take(most);
                let (count, code) =
                    digits.fold((0, first), |(count, code), digit| (count + 1, code.wrapping_mul(radix) + digit));
                rest = &rest[count..];
                rest = rest.strip_prefix('}').filter(|_| open).unwrap_or(rest);
                // All escapes but `\u` and `\U` stand for bytes.
                let code = if kind.eq_ignore_ascii_case(&'u') { code } else { code & 0xff };
                let code = char::from_u32(code);
                out.extend(code.filter(|c| *c != '\0'));
            }
            _ => out.push(c),
        }
    }
    rest
}

/// Adds the names under which a normalised command may be known: without leading assignments, by the last component of
/// its path (`/bin/rm` as `rm`), in lower case (some file systems ignore case), and for git without the options in
/// front of the verb.
pub(super) fn push_name_forms(loose: &str, out: &mut Vec<String>) {
    let mut rest = loose;
    while let Some((first, after)) = rest.split_once(' ')
        && is_assignment(first)
    {
        rest = after;
    }
    let (name, words) = rest.split_once(' ').map_or((rest, ""), |(name, words)| (name, words));
    let base = base_name(name);
    let small = base.to_lowercase();
    let mut called = vec![name, base, &small];
    called.dedup();
    let verb = if small == "git" { skip_git_options(words) } else { words };
    for words in if verb == words { vec![words] } else { vec![words, verb] } {
        for &name in &called {
            let form = if words.is_empty() { name.to_owned() } else { [name, " ", words].concat() };
            if !form.is_empty() && !out.contains(&form) {
                out.push(form);
            }
        }
    }
    if rest.len() < loose.len() && !out.iter().any(|form| form == loose) {
        out.push(loose.to_owned());
    }
}

/// Skips the options of git in front of its verb.
fn skip_git_options(mut words: &str) -> &str {
    while words.starts_with('-') {
        let (option, after) = words.split_once(' ').unwrap_or((words, ""));
        words = after;
        if GIT_OPTIONS_WITH_VALUE.contains(&option) {
            words = words.split_once(' ').map_or("", |(_, after)| after);
        }
    }
    words
}

/// Like [`push_name_forms`], and adds every command that may start at one of the words: for programs that run others.
pub(super) fn push_tail_forms(loose: &str, out: &mut Vec<String>) {
    push_name_forms(loose, out);
    let loose = truncate(loose, MAX_TAIL_SEARCH_LEN);
    let starts = loose.match_indices([' ', ';', '&', '|', '(', '=', '"', '\'']).map(|(at, _)| at + 1);
    for at in starts.take(MAX_TAILS) {
        push_name_forms(loose[at..].trim_start(), out);
    }
}

/// Truncates a text to at most `most` bytes at a character boundary.
#[must_use]
pub(super) fn truncate(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Returns the last component of a path.
#[must_use]
pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_+[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_and_expansions_are_seen_through() {
        for (text, loose) in [
            (r#""r"m -rf 'a b'"#, "rm -rf a b"),
            (r"\r\m x", "rm x"),
            (r"$'\x72\155' $'a\'b'", "rm a'b"),
            (r"$'\x{72}\x{000000016d}\x{20}x\562\x{72", "rm xrr"),
            ("r$()m r${x:-(}m $x`y`rm", "rm rm rm"),
            ("rm${IFS}-rf$IFS/", "rm -rf /"),
            ("{rm,-rf,x}", "rm -rf x"),
            ("r\\\nm  \t x", "rm x"),
            ("r\u{200b}m", "rm"),
            (r#"$"rm" "${x}y""#, "rm y"),
            ("$( (", ""),
            ("'open", "open"),
            ("$'\\U00110000\\", ""),
        ] {
            assert_eq!(normalize_command(text), loose, "{text}");
        }
    }

    #[test]
    fn names_and_tails() {
        let mut forms = Vec::new();
        push_name_forms("A=b /bin/RM x", &mut forms);
        assert_eq!(forms, ["/bin/RM x", "RM x", "rm x", "A=b /bin/RM x"]);
        for command in [
            "git --no-pager push x",
            "/usr/bin/git -P push x",
            "git --literal-pathspecs -C a --git-dir=b --git-dir c -c d=e push x",
        ] {
            forms.clear();
            push_name_forms(command, &mut forms);
            assert!(forms.contains(&"git push x".to_owned()), "{command}: {forms:?}");
        }
        forms.clear();
        push_tail_forms("sh -c a;rm x", &mut forms);
        assert!(forms.contains(&"rm x".to_owned()), "{forms:?}");
    }
}
