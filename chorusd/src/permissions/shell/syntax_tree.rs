//! What a parser of bash finds in a command: every simple command and every file that is written, however deep inside.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::sync::LazyLock;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

/// What was found, in order.
#[derive(Debug, Default)]
pub struct CommandSpans {
    /// Simple commands, from the first word to the end of the last, in bytes.
    pub commands: Vec<Range<usize>>,
    /// Targets of redirections that write.
    pub writes: Vec<Range<usize>>,
    /// Targets of redirections that read.
    pub reads: Vec<Range<usize>>,
    /// Commands with their redirections, simple ones and compounds.
    pub redirected: Vec<Range<usize>>,
}

/// How often the parser may report (once in a hundred steps) before it is stopped: a bound on time that is the same
/// everywhere. Ten thousand commands take under two thousand.
const MAX_PROGRESS_REPORTS: usize = 3000;
/// The same once there was an error: mending one takes a step ever longer, and what has one is not used.
const MAX_ERROR_REPORTS: usize = 8;
/// How often the word `case` may stand in a command: each that is open makes every further step slower.
const MAX_CASE_WORDS: usize = 100;

/// How deep commands may stand in each other.
const MAX_NESTING: usize = 64;
/// How long everything found may be together, in bytes: what stands in something else is there as often as it is deep.
const MAX_TOTAL_LEN: usize = 256 << 10;

const UNREADABLE: &str = "it cannot be parsed";
const NESTED: &str = "it has too many commands inside others to be taken apart";

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());
/// What a node is, by the number that the language has for its kind.
static NODE_KINDS: LazyLock<Vec<NodeKind>> = LazyLock::new(|| {
    let kinds = 0..LANGUAGE.node_kind_count();
    kinds.map(|id| LANGUAGE.node_kind_for_id(id as u16).map_or(NodeKind::Other, NodeKind::from_name)).collect()
});

thread_local! {
    /// Kept, as making one takes a part of the time of reading a short command. Without its language it reads nothing.
    static PARSER: RefCell<Parser> = RefCell::new({
        let mut parser = Parser::new();
        let _ = parser.set_language(&LANGUAGE);
        parser
    });
}

/// What of a node matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NodeKind {
    /// A program and its words.
    Command,
    /// What is a command as it stands.
    OtherCommand,
    /// `declare` and its like: whole too, with assignments in it.
    Declaration,
    Assignment,
    Assignments,
    FileRedirect,
    /// A here-document or a here-string.
    OtherRedirect,
    /// A command and what is redirected of it.
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

/// Takes a command apart.
///
/// # Errors
/// It cannot be parsed, not in reasonable time, or what is found in it would take too much memory; to be read after "it
/// is asked about because".
pub fn find_commands(text: &str) -> Result<CommandSpans, &'static str> {
    let tree = parse(text).ok_or(UNREADABLE)?;
    let mut found = CommandSpans::default();
    let mut cursor = tree.walk();
    // Of the nodes above the one that is looked at: what they are, and how many commands they are in.
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

/// Whether all that was found is a piece of the text: what the parser was given behind it is not.
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
        // One that was stopped would go on where it was.
        parser.reset();
        tree.filter(|tree| !tree.root_node().has_error())
    })
}

/// What the parser is given behind a text: an end of line after a pipe.
///
/// At the end of all text it first mends the reading of a pipe that came to nothing, which takes ten times as long as the rest; at
/// an end of line that reading is gone. Not where an end of line might be part of something.
fn trailing_input(text: &str) -> &'static [u8] {
    let safe = text.contains('|') && !text.contains('\\') && !text.contains("<<");
    if safe { b"\n" } else { b"" }
}

/// Notes what a node is, its parent being of the kind `above`; the length of what was noted, in bytes, or `None`.
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

/// Adds a range to a list, and answers its length.
fn push_span(list: &mut Vec<Range<usize>>, range: Range<usize>) -> Option<usize> {
    let length = range.len();
    list.push(range);
    Some(length)
}

/// Where the words of a command stand, its redirections left out at the end.
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
