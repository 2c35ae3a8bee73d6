//! The lines that show a tool call, its output and what it changed.

use chorus_proto::methods::send::ToolOutput;
use chorus_proto::tool_gist;

use crate::ui::{Style, sanitize, text};

/// The limits on lines of an output and of a diff.
const MAX_OUTPUT_LINES: usize = 5;
const MAX_DIFF_LINES: usize = 20;

/// A line with its style.
pub type StyledLine = (Style, String);

/// The words between the action and the reason in the result of a call that nobody approved.
const NOT_APPROVED: &str = " was not approved: ";

/// Returns the line for a call: `→ bash  cargo test`.
pub fn call_line(name: &str, gist: Option<&str>, width: usize) -> String {
    let name = sanitize::one_line(tool_gist::display_name(name));
    let gist = gist.map(|gist| format!("  {}", sanitize::one_line(gist))).unwrap_or_default();
    text::truncate(&format!("→ {name}{gist}"), width).into_owned()
}

/// Returns the lines for the end of a call: the first lines of its output, or of an edit the lines that it changed; for
/// a failure its reason. `show` is the command that shows the whole.
pub fn result_lines(
    name: &str,
    is_error: bool,
    output: Option<&ToolOutput>,
    (width, show): (usize, &str),
) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let denial = output.filter(|_| is_error).and_then(|output| output.text.split_once(NOT_APPROVED));
    if is_error {
        let name = sanitize::one_line(tool_gist::display_name(name));
        let what = if denial.is_some() { "was not run" } else { "failed" };
        lines.push((Style::Bad, format!("✗ {name} {what}")));
    }
    let Some(output) = output else { return lines };
    if let Some(diff) = &output.diff {
        let total = diff.lines().count();
        for line in diff.lines().take(MAX_DIFF_LINES) {
            let style = if line.starts_with('+') { Style::Good } else { Style::Bad };
            lines.push((style, indented(line, width)));
        }
        lines.extend(folded((total.saturating_sub(MAX_DIFF_LINES)) as u64, show));
        return lines;
    }
    // One more line is shown rather than a line that says that there is one.
    let most = if output.lines == MAX_OUTPUT_LINES as u64 + 1 { MAX_OUTPUT_LINES + 1 } else { MAX_OUTPUT_LINES };
    let shown: Vec<&str> = output.text.lines().take(most).collect();
    if is_error {
        // The reason is wrapped, because the end of the line may be what matters.
        let text = denial.map_or_else(|| shown.join("\n"), |(_, why)| why.to_owned());
        let reason = sanitize::multi_line(&text).into_owned();
        let wrapped = text::wrap(&reason, width.saturating_sub(2).max(10));
        lines.extend(wrapped.iter().map(|line| (Style::Faint, format!("  {line}"))));
    } else {
        lines.extend(shown.iter().map(|line| (Style::Faint, indented(line, width))));
    }
    lines.extend(folded(output.lines.saturating_sub(shown.len() as u64), show));
    lines
}

fn indented(line: &str, width: usize) -> String {
    let line = sanitize::multi_line(line.trim_end()).replace('\t', "    ");
    text::truncate(&format!("  {line}"), width).into_owned()
}

fn folded(more: u64, show: &str) -> Option<StyledLine> {
    let lines = if more == 1 { "line" } else { "lines" };
    (more > 0).then(|| (Style::Faint, format!("  … {more} more {lines}: {show}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, diff: Option<&str>) -> ToolOutput {
        ToolOutput { text: text.into(), lines: text.lines().count() as u64, diff: diff.map(Into::into) }
    }

    fn texts(lines: Vec<StyledLine>) -> Vec<String> {
        lines.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(call_line("bash", Some("cargo test"), 80), "→ bash  cargo test");
        assert_eq!(call_line("str_replace", Some("a.rs +3 -1"), 80), "→ edit  a.rs +3 -1");
        assert_eq!(call_line("list_models", None, 80), "→ list_models");
        assert_eq!(call_line("bash", Some("echo 1234567890"), 12), "→ bash  ech…");
    }

    #[test]
    fn long_output_is_folded() {
        let six = (1..=6).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(texts(result_lines("bash", false, Some(&output(&six, None)), (80, "/show 16"))).len(), 6);
        let nine = (1..=9).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        let lines = texts(result_lines("bash", false, Some(&output(&nine, None)), (80, "/show 16")));
        assert_eq!(lines[5], "  … 4 more lines: /show 16");
    }

    #[test]
    fn an_edit_shows_its_lines_and_a_failure_its_reason() {
        let edit = result_lines("str_replace", false, Some(&output("done", Some("-a\n+b"))), (80, "/show 16"));
        assert_eq!(edit, [(Style::Bad, "  -a".to_owned()), (Style::Good, "  +b".to_owned())]);
        let failed = texts(result_lines("view", true, Some(&output("no such file\x1b[2J", None)), (80, "/show 16")));
        assert_eq!(failed, ["✗ view failed", "  no such file␛[2J"]);
        assert!(result_lines("view", false, None, (80, "/show 16")).is_empty());
        let long =
            texts(result_lines("bash", true, Some(&output("rm -rf x: denied by the user", None)), (20, "/show 16")));
        assert_eq!(long, ["✗ bash failed", "  rm -rf x: denied", "  by the user"]);
    }
}
