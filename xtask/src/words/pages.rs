//! The texts of the pages for users. The tidy test includes this file.

use super::scanner::Text;

/// The pages that are checked, relative to the root of the workspace.
pub const PAGES: [&str; 37] = [
    "README.md",
    "CHANGELOG.md",
    "docs/ARCHITECTURE.md",
    "docs/BRANCHES.md",
    "docs/COMPACTION.md",
    "docs/DEPENDENCIES.md",
    "docs/DISCORD.md",
    "docs/EXCHANGE.md",
    "docs/GETTING_STARTED.md",
    "docs/GLOSSARY.md",
    "docs/GUIDE.md",
    "docs/MCP.md",
    "docs/MEMORY.md",
    "docs/OPERATIONS.md",
    "docs/PERFORMANCE.md",
    "docs/PERMISSIONS.md",
    "docs/PROTOCOL.md",
    "docs/README.md",
    "docs/SANDBOX.md",
    "docs/SCALING.md",
    "docs/SECRETS.md",
    "docs/SELF_EDIT.md",
    "docs/TASKS.md",
    "docs/TOOLS.md",
    "docs/design/approvals.md",
    "docs/design/contexts.md",
    "docs/design/discord.md",
    "docs/design/durability.md",
    "docs/design/journal.md",
    "docs/design/permissions.md",
    "docs/design/sandbox.md",
    "docs/design/secrets.md",
    "docs/design/server.md",
    "docs/design/sessions.md",
    "docs/design/turns.md",
    "docs/design/windows.md",
    "template/docs/README.md",
];

/// Returns the lines of a Markdown page without its code; `` ` `` stands for a code span.
pub fn prose(page: &str) -> Vec<Text> {
    let (mut found, mut is_fenced, mut is_span) = (Vec::new(), false, false);
    for (line, number) in page.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if is_fenced || line.starts_with("    ") {
            continue;
        }
        // A code span may continue in the next line, but not in the next paragraph.
        is_span &= !line.trim().is_empty();
        let mut text = String::new();
        for part in line.split_inclusive('`') {
            if !is_span {
                text.push_str(part);
            }
            is_span ^= part.ends_with('`');
        }
        found.push(Text { line: number, text });
    }
    found
}
