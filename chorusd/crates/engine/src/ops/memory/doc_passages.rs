//! Finds passages in the notes of an agent, the files in its docs/.

use std::fs;
use std::path::Path;

use chorus_proto::methods::memory::DocPassage;

use super::word_matcher::{MatchScore, WordMatcher};
use crate::agent::docs_listing::{DocFile, list_docs};

/// Largest file that is searched, and limit of all files, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 16 << 20;

/// Length of a snippet in characters, and how many there are before the first word that was found.
const SNIPPET_CHARS: usize = 160;
const CHARS_BEFORE: usize = 40;

/// Returns the passages with a word of the query, in the order of the files. Blocks.
pub(super) fn find(docs: &Path, matcher: &WordMatcher) -> Vec<(MatchScore, DocPassage)> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for DocFile { name, path, size } in list_docs(docs) {
        if size > MAX_FILE_BYTES || bytes + size > MAX_BYTES {
            continue;
        }
        bytes += size;
        let Ok(text) = fs::read_to_string(path) else { continue };
        find_in_file(&format!("docs/{name}"), &text, matcher, &mut found);
    }
    found
}

/// A paragraph, a list item or a heading.
#[derive(Debug, Default)]
struct Passage<'a> {
    /// The heading above it.
    heading: &'a str,
    /// Number of its first line, from 1.
    line: u64,
    lines: Vec<&'a str>,
}

fn find_in_file(path: &str, text: &str, matcher: &WordMatcher, found: &mut Vec<(MatchScore, DocPassage)>) {
    for passage in split_passages(text) {
        let own = passage.lines.join("\n");
        if !matcher.finds_any(&own) {
            continue;
        }
        // The words of a question are often divided between a text and its heading.
        let score = matcher.score(&format!("{path}\n{}\n{own}", passage.heading));
        let before = passage.lines.iter().position(|line| matcher.finds_any(line)).unwrap_or(0);
        let (snippet, marks) = snippet(&own, matcher);
        let line = passage.line + before as u64;
        found.push((score, DocPassage { path: path.to_owned(), line, snippet, marks }));
    }
}

fn split_passages(text: &str) -> Vec<Passage<'_>> {
    let mut passages: Vec<Passage<'_>> = Vec::new();
    let mut heading = "";
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let is_heading = trimmed.starts_with('#');
        if trimmed.is_empty() {
            is_open = false;
            continue;
        }
        match passages.last_mut().filter(|_| is_open && !is_heading && !is_list_item(trimmed)) {
            Some(passage) => passage.lines.push(line),
            None => passages.push(Passage { heading, line: number, lines: vec![line] }),
        }
        is_open = !is_heading;
        if is_heading {
            heading = line;
        }
    }
    passages
}

fn is_list_item(line: &str) -> bool {
    let mark = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[&str] = if mark.len() < line.len() { &[". ", ") "] } else { &["- ", "* ", "+ "] };
    marks.iter().any(|end| mark.starts_with(end))
}

/// Returns the part of a passage around the first word that was found, on one line, and its marks.
fn snippet(text: &str, matcher: &WordMatcher) -> (String, Vec<(u64, u64)>) {
    let plain = text.replace(char::is_control, " ");
    let line: Vec<char> = plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let first = matcher.marks(&line.iter().collect::<String>()).first().map_or(0, |mark| mark.0);
    let mut start = if line.len() <= SNIPPET_CHARS { 0 } else { first.saturating_sub(CHARS_BEFORE) };
    if start > 0 {
        start += line[start..first].iter().position(|c| *c == ' ').map_or(0, |space| space + 1);
    }
    let end = line.len().min(start + SNIPPET_CHARS);
    let mut shown: String = line[start..end].iter().collect();
    if start > 0 {
        shown.insert(0, '…');
    }
    if end < line.len() {
        shown.push('…');
    }
    let marks = matcher.marks(&shown).into_iter().map(|(start, end)| (start as u64, end as u64)).collect();
    (shown, marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Deploys\n\nOn Tuesdays, after\nthe standup.\n- Staging first.\n- Then\n  production.\n\n## Redis\n\
        We dropped it.\n1. Export\n2. Import\n";

    fn found(query: &str) -> Vec<(u64, String)> {
        let (matcher, mut found) = (WordMatcher::new(query), Vec::new());
        find_in_file("docs/run.md", TEXT, &matcher, &mut found);
        found.into_iter().filter(|(score, _)| score.all).map(|(_, passage)| (passage.line, passage.snippet)).collect()
    }

    #[test]
    fn a_passage_is_found_with_the_words_of_its_heading() {
        assert_eq!(found("production"), [(7, "- Then production.".to_owned())]);
        assert_eq!(found("standup deploys run"), [(4, "On Tuesdays, after the standup.".to_owned())]);
        assert_eq!(found("redis dropped"), [(10, "We dropped it.".to_owned())]);
        assert_eq!(found("redis"), [(9, "## Redis".to_owned())]);
        assert_eq!(found("import"), [(12, "2. Import".to_owned())]);
        assert!(found("redis tuesdays").is_empty() && found("run").is_empty());
    }

    #[test]
    fn a_long_passage_is_cut_around_the_first_word() {
        let text = format!("{}the needle\u{7} is\there {}", "hay ".repeat(100), "straw ".repeat(100));
        let (shown, marks) = snippet(&text, &WordMatcher::new("needle"));
        assert!(shown.starts_with("…hay hay ") && shown.contains("hay the needle is here straw"), "{shown}");
        assert!(shown.ends_with('…') && shown.chars().count() == SNIPPET_CHARS + 2, "{shown}");
        let (start, end) = marks[0];
        let marked: String = shown.chars().skip(start as usize).take((end - start) as usize).collect();
        assert_eq!((&*marked, marks.len()), ("needle", 1));
    }

    #[test]
    fn files_that_are_no_notes_are_not_searched() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.md"), "a needle").unwrap();
        fs::write(dir.path().join("big.md"), "needle ".repeat(1 << 18)).unwrap();
        fs::write(dir.path().join("binary"), b"needle \xFF").unwrap();
        std::os::unix::fs::symlink(dir.path().join("a.md"), dir.path().join("link.md")).unwrap();
        let paths: Vec<_> =
            find(dir.path(), &WordMatcher::new("needle")).into_iter().map(|(_, passage)| passage.path).collect();
        assert_eq!(paths, ["docs/a.md"]);
    }
}
