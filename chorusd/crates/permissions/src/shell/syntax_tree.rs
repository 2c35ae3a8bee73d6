//! Finds every simple command and every redirected file in a command, at any depth, with tree-sitter's bash grammar.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::sync::LazyLock;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

/// Byte ranges found in a command, in order.
#[derive(Debug, Default)]
pub(super) struct CommandSpans {
    /// Simple commands, from the first word to the end of the last.
    pub commands: Vec<Range<usize>>,
    /// Targets of redirections that write.
    pub writes: Vec<Range<usize>>,
    /// Targets of redirections that read.
    pub reads: Vec<Range<usize>>,
    /// Simple and compound commands with their redirections.
    pub redirected: Vec<Range<usize>>,
}

/// Limit on the progress reports of the parser (one every hundred steps) before it is stopped. Counting reports instead
/// of time gives the same result on every machine. Ten thousand commands take under two thousand reports.
const MAX_PROGRESS_REPORTS: usize = 3000;
/// The same limit after a syntax error: error recovery gets slower with each step, and a tree with errors is not used.
const MAX_ERROR_REPORTS: usize = 8;
/// Limit on the word `case` in a command: each open `case` slows down every further step.
const MAX_CASE_WORDS: usize = 100;

/// Limit on the nesting of commands.
const MAX_NESTING: usize = 64;
/// Limit on the total length of the ranges found, in bytes: nested text counts once for each level.
const MAX_TOTAL_LEN: usize = 256 << 10;

const UNREADABLE: &str = "it cannot be parsed";
const NESTED: &str = "its commands are nested too deeply";

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());
/// The kind of a node by the grammar's numeric id.
static NODE_KINDS: LazyLock<Vec<NodeKind>> = LazyLock::new(|| {
    let kinds = 0..LANGUAGE.node_kind_count();
    kinds.map(|id| LANGUAGE.node_kind_for_id(id as u16).map_or(NodeKind::Other, NodeKind::from_name)).collect()
});

thread_local! {
    /// Reused, because creating a parser takes a considerable part of the time of parsing a short command. If the
    /// language cannot be set, the parser parses nothing.
    static PARSER: RefCell<Parser> = RefCell::new({
        let mut parser = Parser::new();
        let _ = parser.set_language(&LANGUAGE);
        parser
    });
}

/// The kinds of syntax nodes that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NodeKind {
    /// A program and its words.
    Command,
    /// Another node that counts as one command.
    OtherCommand,
    /// `declare` and similar: one command that contains assignments.
    Declaration,
    Assignment,
    Assignments,
    FileRedirect,
    /// A here-document or a here-string.
    OtherRedirect,
    /// A command with its redirections.
    Redirected,
    #[default]
    Other,
}

impl NodeKind {
    fn from_name(name: &str) -> Self {
        match name {
            "command" => Self::Command,
            "declaration_command" => Self::Declaration,
            "unset_command" | "test_command" => Self::OtherCommand,
            "variable_assignment" => Self::Assignment,
            "variable_assignments" => Self::Assignments,
            "file_redirect" => Self::FileRedirect,
            "redirected_statement" => Self::Redirected,
            _ if name.ends_with("_redirect") => Self::OtherRedirect,
            _ => Self::Other,
        }
    }

    fn of_node(node: &Node<'_>) -> Self {
        NODE_KINDS.get(usize::from(node.kind_id())).copied().unwrap_or_default()
    }
}

/// Finds the commands and redirected files of a command.
///
/// # Errors
/// The command cannot be parsed, not within the limits, or the ranges found would take too much memory. The text
/// continues "it is asked about because".
pub(super) fn find_commands(text: &str) -> Result<CommandSpans, &'static str> {
    let tree = parse(text).ok_or(UNREADABLE)?;
    let mut found = CommandSpans::default();
    let mut cursor = tree.walk();
    // For each ancestor of the current node: its kind, and the number of commands it is in.
    let mut above: Vec<(NodeKind, usize)> = Vec::new();
    let mut length = 0;
    loop {
        let node = cursor.node();
        let kind = NodeKind::of_node(&node);
        let (parent, depth) = above.last().copied().unwrap_or_default();
        let noted = record_node(&node, kind, parent, &mut found);
        length += noted.unwrap_or_default();
        let depth = depth + usize::from(noted.is_some() && kind != NodeKind::Redirected);
        if depth > MAX_NESTING || length > MAX_TOTAL_LEN {
            return Err(NESTED);
        }
        if cursor.goto_first_child() {
            above.push((kind, depth));
            continue;
        }
        while !cursor.goto_next_sibling() {
            above.pop();
            if !cursor.goto_parent() {
                return if spans_are_within(text, &found) { Ok(found) } else { Err(UNREADABLE) };
            }
        }
    }
}

/// Returns true if all ranges lie in the text; ranges in the newline that the parser was given behind it do not.
fn spans_are_within(text: &str, found: &CommandSpans) -> bool {
    let CommandSpans { commands, writes, reads, redirected } = found;
    let mut all = commands.iter().chain(writes).chain(reads).chain(redirected);
    all.all(|range| text.get(range.clone()).is_some())
}

fn parse(text: &str) -> Option<Tree> {
    if text.matches("case").nth(MAX_CASE_WORDS).is_some() {
        return None;
    }
    PARSER.with_borrow_mut(|parser| {
        let (mut reports, mut mending) = (0, 0);
        let mut progress = |state: &ParseState| {
            reports += 1;
            mending += usize::from(state.has_error());
            if reports > MAX_PROGRESS_REPORTS || mending > MAX_ERROR_REPORTS {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let mut read = |at: usize, _| match text.as_bytes().get(at..) {
            Some([]) => trailing_input(text),
            Some(rest) => rest,
            None => b"",
        };
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        // A stopped parser would otherwise resume where it was.
        parser.reset();
        tree.filter(|tree| !tree.root_node().has_error())
    })
}

/// Returns the input given to the parser behind the text: a newline if the text contains a pipe.
///
/// At the end of input the parser first recovers a failed reading of a pipe, which takes ten times as long as the rest;
/// a newline discards that reading. No newline is added where it might become part of a token.
fn trailing_input(text: &str) -> &'static [u8] {
    let safe = text.contains('|') && !text.contains('\\') && !text.contains("<<");
    if safe { b"\n" } else { b"" }
}

/// Records a node whose parent has the kind `above`. Returns the length of the recorded range in bytes, or `None`.
fn record_node(node: &Node<'_>, kind: NodeKind, above: NodeKind, found: &mut CommandSpans) -> Option<usize> {
    match kind {
        NodeKind::Command => push_span(&mut found.commands, command_span(node)),
        NodeKind::Declaration | NodeKind::OtherCommand => push_span(&mut found.commands, node.byte_range()),
        NodeKind::Assignment | NodeKind::Assignments
            if !matches!(above, NodeKind::Command | NodeKind::Declaration | NodeKind::Assignments) =>
        {
            push_span(&mut found.commands, node.byte_range())
        }
        NodeKind::Redirected => push_span(&mut found.redirected, node.byte_range()),
        NodeKind::FileRedirect => {
            let (mut reads, mut writes, mut length) = (false, false, None);
            for at in 0..node.child_count() {
                let Some(child) = node.child(at as u32) else { continue };
                match child.kind() {
                    ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => writes = true,
                    "<" | "<&" => reads = true,
                    "<>" => (reads, writes) = (true, true),
                    _ if node.field_name_for_child(at as u32) == Some("destination") => {
                        let lists = [(writes, &mut found.writes), (reads, &mut found.reads)];
                        for (_, list) in lists.into_iter().filter(|(noted, _)| *noted) {
                            length = length.max(push_span(list, child.byte_range()));
                        }
                    }
                    _ => {}
                }
            }
            length
        }
        _ => None,
    }
}

/// Adds a range to a list and returns its length.
fn push_span(list: &mut Vec<Range<usize>>, range: Range<usize>) -> Option<usize> {
    let length = range.len();
    list.push(range);
    Some(length)
}

/// Returns the range of a command's words, without redirections at the end.
fn command_span(node: &Node<'_>) -> Range<usize> {
    let mut range = node.start_byte()..node.start_byte();
    let mut cursor = node.walk();
    let redirects =
        |child: &Node<'_>| matches!(NodeKind::of_node(child), NodeKind::FileRedirect | NodeKind::OtherRedirect);
    for child in node.children(&mut cursor).filter(|child| !redirects(child)) {
        if range.is_empty() {
            range.start = child.start_byte();
        }
        range.end = child.end_byte();
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_stands_in_the_text() {
        for (text, commands, writes, redirected) in [
            ("a | b c | d", vec!["a", "b c", "d"], vec![], vec![]),
            ("a | b | c > d", vec!["a", "b", "c"], vec!["d"], vec!["a | b | c > d"]),
            ("a 2>&1 | b > 'c", vec![], vec![], vec![]),
            ("a | b #", vec!["a", "b"], vec![], vec![]),
            ("a | b <<E\nE", vec!["a", "b"], vec![], vec!["a | b <<E\nE"]),
            ("a < b > c", vec!["a"], vec!["c"], vec!["a < b > c"]),
            ("if a; then b; fi < c", vec!["a", "b"], vec![], vec!["if a; then b; fi < c"]),
        ] {
            let found = find_commands(text).unwrap_or_default();
            let texts = |ranges: Vec<Range<usize>>| ranges.into_iter().map(|range| &text[range]).collect::<Vec<_>>();
            let found = (texts(found.commands), texts(found.writes), texts(found.redirected));
            assert_eq!(found, (commands, writes, redirected), "{text}");
        }
    }

    #[test]
    fn what_ends_behind_the_text_or_within_a_letter_is_not_passed_over() {
        let stands = |text: &str, commands: Range<usize>, writes: Range<usize>| {
            spans_are_within(
                text,
                &CommandSpans { commands: vec![commands], writes: vec![writes], ..CommandSpans::default() },
            )
        };
        assert!(stands("a|b", 0..3, 3..3));
        assert!(!stands("a|b", 2..4, 0..1) && !stands("a|b", 0..1, 2..4));
        assert!(!stands("a|\u{e9}", 2..3, 0..1));
    }

    #[test]
    fn a_parser_that_was_stopped_reads_the_next_command_from_its_beginning() {
        for piece in ["(", "$((", "case a in (", "a|"] {
            assert!(find_commands(&piece.repeat((64 << 10) / piece.len())).is_err(), "{piece}");
            assert_eq!(find_commands("ls | rm x").map(|found| found.commands), Ok(vec![0..2, 5..9]), "after {piece}");
        }
    }
}
