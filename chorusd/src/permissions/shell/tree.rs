//! What a parser of bash finds in a command: every simple command and every file that is written, however deep inside.

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

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

/// How deep commands may stand in each other.
const DEEP: usize = 64;
/// How long everything found may be together, in bytes: what stands in something else is there as often as it is deep.
const ALL: usize = 256 << 10;

const UNREADABLE: &str = "it cannot be parsed";
const NESTED: &str = "it has too many commands inside others to be taken apart";

/// Takes a command apart.
///
/// # Errors
/// It cannot be parsed, not in reasonable time, or what is found in it would take too much memory; to be read after "it
/// is asked about because".
pub fn find(text: &str) -> Result<Found, &'static str> {
    let tree = parse(text).ok_or(UNREADABLE)?;
    let mut found = Found::default();
    let mut cursor = tree.walk();
    // Of the nodes above the one that is looked at: what they are, and how many commands they are in.
    let mut above: Vec<(&str, usize)> = Vec::new();
    let mut length = 0;
    loop {
        let node = cursor.node();
        let (parent, depth) = above.last().copied().unwrap_or_default();
        let noted = note(&node, parent, &mut found);
        length += noted.unwrap_or_default();
        let depth = depth + usize::from(noted.is_some());
        if depth > DEEP || length > ALL {
            return Err(NESTED);
        }
        if cursor.goto_first_child() {
            above.push((node.kind(), depth));
            continue;
        }
        while !cursor.goto_next_sibling() {
            above.pop();
            if !cursor.goto_parent() {
                return Ok(found);
            }
        }
    }
}

fn parse(text: &str) -> Option<Tree> {
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
    (!tree.root_node().has_error()).then_some(tree)
}

/// Notes what a node is, its parent being of the kind `above`; the length of what was noted, in bytes, or `None`.
fn note(node: &Node<'_>, above: &str, found: &mut Found) -> Option<usize> {
    let (commands, writes) = (found.commands.len(), found.writes.len());
    match node.kind() {
        "command" => found.commands.push(words(node)),
        "declaration_command" | "unset_command" | "test_command" => found.commands.push(node.byte_range()),
        "variable_assignment" | "variable_assignments"
            if !matches!(above, "command" | "declaration_command" | "variable_assignments") =>
        {
            found.commands.push(node.byte_range());
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
    let noted = found.commands[commands..].iter().chain(&found.writes[writes..]);
    noted.map(Range::len).reduce(|one, other| one + other)
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
