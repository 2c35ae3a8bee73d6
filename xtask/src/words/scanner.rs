//! The texts of a Rust file that users may read: string literals, and doc comments of which help texts are made. The tidy test
//! includes this file.

/// Files whose literals are data: phrases that conversations and servers use, shipped SQL, samples of secrets.
const DATA_FILES: [&str; 6] = [
    "chorusd/crates/llm/src/providers/error_phrases.rs",
    "chorusd/crates/redact/src/matrix/",
    "chorusd/crates/session/src/summary/findings/lexicon.rs",
    "chorusd/crates/session/src/summary/lexicon.rs",
    "chorusd/crates/store/src/catalog/schema.rs",
    "chorusd/crates/store/src/journal/schema.rs",
];

/// Directories and files of tests, and programs that no user runs.
const TEST_PARTS: [&str; 5] = ["tests", "examples", "benches", "test_support", "tests.rs"];

/// Traits whose derive turns doc comments into help texts or into descriptions of a tool's parameters.
const HELP_TRAITS: [&str; 5] = ["Parser", "Args", "Subcommand", "ValueEnum", "JsonSchema"];

/// A text and the line on which it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    pub line: usize,
    pub text: String,
}

/// Returns true if users may read texts of the file at `path`, which starts at the root of the workspace.
pub fn is_for_users(path: &str) -> bool {
    let is_test = |part: &str| TEST_PARTS.contains(&part) || part.ends_with("_tests") || part.ends_with("_tests.rs");
    path.contains("/src/") && !path.split('/').any(is_test) && !DATA_FILES.iter().any(|data| path.starts_with(data))
}

/// Returns the texts of a file, without those of its test module.
pub fn texts(source: &str) -> Vec<Text> {
    let end = source.find("\n#[cfg(test)]\nmod ").unwrap_or(source.len());
    let source = &source[..end];
    let mut found = literals(source);
    found.extend(help_texts(source));
    found.sort_by_key(|text| text.line);
    found
}

fn literals(source: &str) -> Vec<Text> {
    let (bytes, mut found, mut at) = (source.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let rest = &source[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(fences) = raw_string_fences(&source[..at], rest) {
            let open = fences + 2;
            let close = format!("\"{}", "#".repeat(fences));
            let end = rest[open..].find(&close).map_or(rest.len(), |end| open + end);
            found.push(text_at(source, at, rest.get(open..end).unwrap_or_default()));
            (end + close.len()).min(rest.len())
        } else if rest.starts_with('"') {
            let end = end_of_string(rest.as_bytes());
            let is_reason = source[..at].trim_end().ends_with("reason =");
            if !is_reason {
                found.push(text_at(source, at, &join_lines(rest.get(1..end).unwrap_or_default())));
            }
            (end + 1).min(rest.len())
        } else {
            char_length(rest)
        };
        at += length;
    }
    found
}

/// Returns the number of `#` of a raw string that starts here.
fn raw_string_fences(before: &str, rest: &str) -> Option<usize> {
    let fences = rest.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
    let starts = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (starts && rest[1 + fences..].starts_with('"')).then_some(fences)
}

fn end_of_string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at.min(rest.len())
}

/// Returns the length of a character, or of a character literal, which may contain a quotation mark.
fn char_length(rest: &str) -> usize {
    let literal = ["'\"'", "'\\\"'", "'\\''", "'\\\\'"].into_iter().find(|literal| rest.starts_with(literal));
    literal.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), str::len)
}

/// Joins the lines of a literal that a backslash continues.
fn join_lines(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

fn text_at(source: &str, at: usize, text: &str) -> Text {
    Text { line: source[..at].matches('\n').count() + 1, text: text.to_owned() }
}

/// Returns the doc comments before and inside the types that derive one of [`HELP_TRAITS`].
fn help_texts(source: &str) -> Vec<Text> {
    let (mut found, mut before, mut inside) = (Vec::new(), Vec::new(), false);
    for (at, line) in source.lines().enumerate() {
        let derives = line.trim_start().strip_prefix("#[derive(").is_some_and(|list| {
            list.split([',', ')'])
                .any(|name| HELP_TRAITS.contains(&name.trim().rsplit("::").next().unwrap_or_default()))
        });
        if derives {
            inside = true;
            found.append(&mut before);
        }
        match line.trim_start().strip_prefix("///") {
            Some(doc) => {
                let text = Text { line: at + 1, text: doc.trim().to_owned() };
                if inside { found.push(text) } else { before.push(text) }
            }
            None if !line.trim_start().starts_with('#') => before.clear(),
            None => {}
        }
        if line.starts_with('}') || line.ends_with("{}") || (line.starts_with("pub") && line.ends_with(';')) {
            inside = false;
        }
    }
    found
}
