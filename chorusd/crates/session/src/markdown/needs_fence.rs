//! Decides which texts need neither escaping nor a fenced block.

use super::char_escape::needs_escape;
use super::fenced_block::MIN_FENCE_LEN;
use super::{FencedBlock, Section, Timing, is_call_label, message_heading};

/// Returns whether `text` can be written unchanged: it parses back to itself and does not affect the lines after it.
#[must_use]
pub(crate) fn is_safe_text(text: &str) -> bool {
    if text.trim() != text || needs_escape(text) {
        return false;
    }
    let mut open: Option<&str> = None;
    for line in text.split('\n') {
        if is_structural_line(line) {
            return false;
        }
        let start = line.trim_start_matches(' ');
        let run = start.len() - start.trim_start_matches(['`', '~']).len();
        if run >= MIN_FENCE_LEN {
            open = match open {
                None => Some(&start[..run]),
                Some(fence) if start.starts_with(fence) && start[run..].trim().is_empty() => None,
                still => still,
            };
        }
    }
    open.is_none()
}

/// Returns whether a reader would take the line for structure of the file.
fn is_structural_line(line: &str) -> bool {
    line.contains("<!--")
        || Section::parse(line).is_some()
        || message_heading::Heading::parse(line).is_some()
        || FencedBlock::parse(line).is_some()
        || is_call_label(line)
        || Timing::parse(line).is_some()
}

/// Joins the lines of `text` into one.
#[must_use]
pub fn one_line(text: &str) -> String {
    super::char_escape::escape_comments(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_misread_is_not_plain() {
        for text in ["", "a\n\n# b", "```rust\nfn\n```", "~~~\n```\n~~~", "a\n---\nb", "**You:** x"] {
            assert!(is_safe_text(text), "{text}");
        }
        for text in [
            "## User",
            "## Query 7 (10:00:00)",
            "*Time: 2.1s*",
            "x\n```text content\ny",
            "```json call\n{}\n```",
            "x\n\n**Tool call (bash):**",
            "```\nleft open",
            "<!-- hidden",
            " a",
            "a\n",
            "a\rb",
        ] {
            assert!(!is_safe_text(text), "{text}");
        }
    }
}
