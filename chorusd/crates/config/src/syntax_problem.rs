//! Describes mistakes in the grammar of config.toml: what is wrong where, and how to write it. Values are not repeated, since they may be secret.

/// A mistake in the grammar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxProblem {
    pub offset: usize,
    pub what: String,
    pub hint: String,
}

/// Describes what the parser found at an offset of the text.
pub(crate) fn describe(text: &str, offset: usize, message: &str) -> SyntaxProblem {
    let offset = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let line = line_at(text, offset);
    let key = line.split_once('=').map_or("KEY", |(key, _)| key.trim());
    let problem = |offset, what: &str, hint: String| SyntaxProblem { offset, what: what.to_owned(), hint };
    let quoted = || format!("write: {key} = \"…\"");
    if message.starts_with("string values must be quoted") {
        let value = line.split_once('=').map_or("", |(_, value)| value.trim());
        return match value.is_empty() || value.starts_with('#') {
            true => problem(offset, "the value is missing", format!("write: {key} = VALUE; text in quotes")),
            false => problem(offset, "text must be in quotes", quoted()),
        };
    }
    if message.starts_with("missing opening quote") {
        return problem(offset, "the opening quote is missing", quoted());
    }
    if message.starts_with("invalid multi-line") {
        let quotes = if message.contains("literal") { "'''" } else { "\"\"\"" };
        if text.matches(quotes).count() % 2 == 1 {
            let start = text.rfind(quotes).unwrap_or(offset);
            let hint = format!("end the text that starts here with {quotes}");
            return problem(start, &format!("the closing {quotes} is missing"), hint);
        }
    }
    let quote = match message {
        _ if message.starts_with("invalid basic string") => '"',
        _ if message.starts_with("invalid literal string") => '\'',
        _ if message.starts_with("missing comma between array elements") => return describe_list(text, offset),
        _ if message.starts_with("invalid boolean") => {
            return problem(offset, "not a boolean", format!("write: {key} = true, or false, in lower case"));
        }
        _ if message.starts_with("key with no value") => {
            return problem(offset, "a line must be KEY = VALUE", "write the key, =, and its value".to_owned());
        }
        _ => return problem(offset, message, "fix the line".to_owned()),
    };
    let is_at_end = text[offset..].chars().next().is_none_or(|c| matches!(c, '\n' | '\r'));
    if is_at_end && message.ends_with(&format!("expected `{quote}`")) {
        let hint = format!("write: {key} = {quote}…{quote}");
        return problem(offset, &format!("the closing {quote} is missing"), hint);
    }
    problem(offset, message, "fix the line".to_owned())
}

/// Describes a list without a comma. If the next line already has another key or table, it is the end of the list that is missing.
fn describe_list(text: &str, offset: usize) -> SyntaxProblem {
    let before = text[..offset].trim_end();
    let follows = line_at(text, offset).trim_start();
    let is_next = before.len() < offset && text[before.len()..offset].contains('\n');
    if is_next && (follows.starts_with('[') || follows.split_once('=').is_some_and(|(key, _)| is_key(key.trim()))) {
        let (what, hint) = ("the closing ] of the list is missing", "end the list with ]");
        return SyntaxProblem { offset: before.len(), what: what.to_owned(), hint: hint.to_owned() };
    }
    let (what, hint) = ("the list lacks a comma or a quote", "write: [\"…\", \"…\"]");
    SyntaxProblem { offset, what: what.to_owned(), hint: hint.to_owned() }
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn line_at(text: &str, offset: usize) -> &str {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::check_text;

    #[test]
    fn mistakes_are_named_where_they_are_with_the_right_form() {
        for (text, place, what, hint) in [
            ("default_model = a/b\n", (1, 17), "text must be in quotes", "write: default_model = \"…\""),
            ("[defaults]\nidle_timeout = 5m # x\n", (2, 16), "text must be in quotes", "write: idle_timeout = \"…\""),
            ("# a\nlog_level =\n", (2, 12), "the value is missing", "write: log_level = VALUE; text in quotes"),
            ("default_model = \"a/b\nx = 1\n", (1, 21), "the closing \" is missing", "write: default_model = \"…\""),
            ("default_model = 'a/b\n", (1, 21), "the closing ' is missing", "write: default_model = '…'"),
            (
                "[defaults]\nidle_timeout = 5m\"\n",
                (2, 16),
                "the opening quote is missing",
                "write: idle_timeout = \"…\"",
            ),
            (
                "x = \"\"\"abc\n\nfoo = 1\n",
                (1, 5),
                "the closing \"\"\" is missing",
                "end the text that starts here with \"\"\"",
            ),
            (
                "[discord]\nguilds = [\"1\", \"2\"\n[defaults]\n",
                (2, 19),
                "the closing ] of the list is missing",
                "end the list with ]",
            ),
            (
                "[discord]\nguilds = [\"1\"\nshards = \"2\"\n",
                (2, 14),
                "the closing ] of the list is missing",
                "end the list with ]",
            ),
            (
                "[discord]\nguilds = [\"1, \"2\"]\n",
                (2, 16),
                "the list lacks a comma or a quote",
                "write: [\"…\", \"…\"]",
            ),
            (
                "resume_on_start = True\n",
                (1, 19),
                "not a boolean",
                "write: resume_on_start = true, or false, in lower case",
            ),
            ("default_model\n", (1, 14), "a line must be KEY = VALUE", "write the key, =, and its value"),
            ("default_model: \"x\"\n", (1, 16), "a line must be KEY = VALUE", "write the key, =, and its value"),
        ] {
            let problem = check_text(text, Path::new("config.toml"), &|_| None).expect_err(text);
            assert_eq!((problem.line, problem.column), place, "{text:?}: {}", problem.what);
            assert_eq!((&*problem.what, &*problem.hint), (what, hint), "{text:?}");
        }
    }
}
