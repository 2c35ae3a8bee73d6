//! The options that a program of the safe list may be given.

/// The options of one program, as programs.txt lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedOptions {
    /// Any option.
    Any,
    Getopt {
        envelopes: Vec<(char, OptionValue)>,
        numbers: bool,
        long: Vec<&'static str>,
    },
    /// A fixed list: every word with a dash must be in it or be a number.
    Words(Vec<&'static str>),
}

/// The kind of value that a one-letter option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionValue {
    None,
    /// The rest of its word, or the next word if there is no rest.
    Rest,
    /// The next word, even if letters follow in its own word.
    Next,
}

impl AllowedOptions {
    /// Parses the text behind the program names: `: …` or `= …`.
    pub(super) fn parse(text: &'static str) -> Self {
        let words = || text[1..].split_whitespace();
        if text.starts_with('=') {
            return Self::Words(words().collect());
        }
        if words().eq(["*"]) {
            return Self::Any;
        }
        let mut envelopes: Vec<(char, OptionValue)> = Vec::new();
        let short = words().filter(|word| !word.starts_with("--")).filter_map(|word| word.strip_prefix('-'));
        for envelope in short.flat_map(str::chars) {
            match (envelope, envelopes.last_mut()) {
                (':', Some((_, value))) => *value = OptionValue::Rest,
                ('+', Some((_, value))) => *value = OptionValue::Next,
                _ => envelopes.push((envelope, OptionValue::None)),
            }
        }
        let numbers = envelopes.iter().any(|(envelope, _)| *envelope == '#');
        Self::Getopt { envelopes, numbers, long: words().filter_map(|word| word.strip_prefix("--")).collect() }
    }

    /// Checks the arguments of a command. Unless it is a number, a value in a word of its own is checked as if it were
    /// an option, so that a mistake in the table cannot hide an option. A `--` that may be a value ends nothing.
    ///
    /// # Errors
    /// The first word that is not listed.
    pub(super) fn check<'a>(&self, given: &[&'a str]) -> Result<(), &'a str> {
        // True if the previous option takes this word as its value (`valued`), or may take it (`may`).
        let (mut valued, mut may) = (false, false);
        // True if `valued` is certain: the previous option may itself be the value of the word before it.
        let mut sure = false;
        for word in given {
            let number = word.strip_prefix('-').is_some_and(is_number);
            let dashed = word.len() > 1 && word.starts_with('-');
            let good = match self {
                Self::Any => return Ok(()),
                Self::Words(words) => !dashed || number || words.contains(word),
                Self::Getopt { .. } if *word == "--" && !valued && !may => return Ok(()),
                Self::Getopt { .. } if *word == "--" => {
                    (valued, may) = (false, false);
                    continue;
                }
                Self::Getopt { .. } if number && valued && sure => true,
                Self::Getopt { long, .. } if word.starts_with("--") => {
                    long.contains(&word[2..].split('=').next().unwrap_or_default())
                }
                Self::Getopt { .. } if !dashed => true,
                Self::Getopt { envelopes, numbers, .. } => match check_letters(&word[1..], envelopes, *numbers) {
                    Some(open) => {
                        (valued, may, sure) = (open, false, !valued && !may);
                        continue;
                    }
                    None => false,
                },
            };
            if !good {
                return Err(word);
            }
            valued = false;
            may = word.starts_with("--") && !word.contains('=');
        }
        Ok(())
    }
}

/// Checks a group of one-letter options. Returns `Some(true)` if the group takes the next word as a value, and `None`
/// if a letter is not listed. With `numbers`, digits may be among the letters.
fn check_letters(word: &str, envelopes: &[(char, OptionValue)], numbers: bool) -> Option<bool> {
    let mut rest = word.chars();
    let mut next = false;
    while let Some(envelope) = rest.next() {
        if numbers && envelope.is_ascii_digit() {
            continue;
        }
        let (_, value) = envelopes.iter().find(|(known, _)| *known == envelope && envelope != '#')?;
        match value {
            OptionValue::None => {}
            OptionValue::Rest => return Some(next || rest.as_str().is_empty()),
            OptionValue::Next => next = true,
        }
    }
    Some(next)
}

/// Returns true if the text consists of digits, followed by at most one letter for the unit.
fn is_number(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    !digits.is_empty() && text.len() - digits.len() <= 1 && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let options = AllowedOptions::parse(": -#ab:cn+ --long --longer");
        for (words, wanted) in [
            (&["-a", "-ac", "-abx", "-b", "x", "--long=5", "x", "-"][..], None),
            (&["-b", "-5", "-7"], None),
            (&["-b", "-x"], Some("-x")),
            (&["-abx", "-d"], Some("-d")),
            (&["-ad"], Some("-ad")),
            (&["--lon"], Some("--lon")),
            (&["--", "-d"], None),
            (&["x", "-#"], Some("-#")),
            (&["-b", "--", "-d"], Some("-d")),
            (&["-ab", "--", "--", "-d"], None),
            (&["-bx", "--", "-d"], None),
            (&["-n", "--", "-d"], Some("-d")),
            (&["-na", "--", "-d"], Some("-d")),
            (&["-nd", "x"], Some("-nd")),
            (&["--long", "--", "-d"], Some("-d")),
            (&["--long=x", "--", "-d"], None),
            (&["-5"], None),
            (&["-5a", "-a5"], None),
            (&["-5d"], Some("-5d")),
            (&["-b", "-5d"], None),
            (&["-b", "-b", "-5d"], Some("-5d")),
            (&["--long", "-b", "-5d"], Some("-5d")),
        ] {
            assert_eq!(options.check(words).err(), wanted, "{words:?}");
        }
        assert_eq!(AllowedOptions::parse(": -b:").check(&["-b", "-5"]), Ok(()));
        assert_eq!(AllowedOptions::parse(": -b:").check(&["-5"]), Err("-5"));
        assert_eq!(AllowedOptions::parse("= -name").check(&["-name", "-7d", "--"]), Err("--"));
        assert_eq!(AllowedOptions::parse(": *").check(&["-x"]), Ok(()));
    }
}
