//! What a parser of bash finds in a command: every simple command and every file that is written, however deep inside.

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// What was found, in order.
#[derive(Debug, Default)]
pub struct Found {
    /// Simple commands, from the first word to the end of the last, in bytes.
    pub commands: Vec<Range<usize>>,
    /// Targets of redirections that write.
    pub writes: Vec<Range<usize>>,
}

/// How often the parser may report (once in a hundred steps) before it is stopped: a bound on time that is the same
/// everywhere. Ten thousand commands take under two thousand.
const PATIENCE: usize = 3000;
/// The same once there was an error: mending one takes a step ever longer, and what has one is not used.
const PATIENCE_MENDING: usize = 8;
/// How often the word `case` may stand in a command: each that is open makes every further step slower.
const CASES: usize = 100;

/// Takes a command apart; `None` where it cannot be parsed, or not in reasonable time.
#[must_use]
pub fn find(text: &str) -> Option<Found> {
    if text.matches("case").nth(CASES).is_some() {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let (mut reports, mut mending) = (0, 0);
    let mut progress = |state: &ParseState| {
        reports += 1;
        mending += usize::from(state.has_error());
        if reports > PATIENCE || mending > PATIENCE_MENDING {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut found = Found::default();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let inside = note(&node, &mut found);
        if inside && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(found);
            }
        }
    }
}

/// Notes what a node is; whether there may be more inside.
fn note(node: &Node<'_>, found: &mut Found) -> bool {
    match node.kind() {
        "command" => found.commands.push(words(node)),
        "declaration_command" | "unset_command" | "test_command" => found.commands.push(node.byte_range()),
        "variable_assignment" | "variable_assignments" => {
            let above = node.parent().map_or("", |above| above.kind());
            if !matches!(above, "command" | "declaration_command" | "variable_assignments") {
                found.commands.push(node.byte_range());
            }
        }
        "file_redirect" => {
            let mut writes = false;
            for at in 0..node.child_count() {
                let Some(child) = node.child(at as u32) else { continue };
                match child.kind() {
                    ">" | ">>" | ">|" | "&>" | "&>>" | ">&" | "<>" => writes = true,
                    _ if writes && node.field_name_for_child(at as u32) == Some("destination") => {
                        found.writes.push(child.byte_range());
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    node.child_count() > 0
}

/// Where the words of a command stand, its redirections left out at the end.
fn words(node: &Node<'_>) -> Range<usize> {
    let mut range = node.start_byte()..node.start_byte();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor).filter(|child| !child.kind().ends_with("_redirect")) {
        if range.is_empty() {
            range.start = child.start_byte();
        }
        range.end = child.end_byte();
    }
    range
}
