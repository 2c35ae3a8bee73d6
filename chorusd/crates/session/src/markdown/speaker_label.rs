//! Speaker labels (`**You:** `) at the start of a line.

use chorus_proto::Role;

use super::one_line;

/// Formats the label for `name`, which may contain any characters.
#[must_use]
pub(crate) fn speaker_label(name: &str) -> String {
    let name = one_line(&name.replace(|c: char| c.is_control() || matches!(c, '*' | '`'), " "));
    // The first `:**` ends the label.
    format!("**{}:**", name.trim_end_matches([':', ' ']))
}

/// Splits a line into the speaker's name and the text after the label. The text is empty if it begins on a later line.
#[must_use]
pub(crate) fn parse_speaker_label(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("**")?.split_once(":**")?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    (!name.contains('*')).then_some((name, rest))
}

/// Formats the label of a message. `tool` is the name of the tool that a result is of.
#[must_use]
pub(crate) fn message_label(agent: &str, role: Role, author: Option<&str>, tool: Option<&str>) -> String {
    let label = match role {
        Role::System => speaker_label("System"),
        Role::User => speaker_label(author.unwrap_or("You")),
        Role::Assistant => speaker_label(author.unwrap_or(agent)),
        Role::ToolResult => match tool {
            Some(name) => speaker_label(&format!("Tool result ({name})")),
            None => speaker_label("Tool result"),
        },
    };
    // Whoever has such a name shall not be taken for a call.
    match parse_call_label(&label) {
        Some(tool) => speaker_label(&format!("({TOOL_CALL} ({tool}))")),
        None => label,
    }
}

/// Name of the speaker in the label of a tool call.
const TOOL_CALL: &str = "Tool call";

/// Formats the line before the block of a tool call: `**Tool call (bash):**`.
#[must_use]
pub(crate) fn call_label(tool: &str) -> String {
    speaker_label(&format!("{TOOL_CALL} ({tool})"))
}

/// Returns the tool's name from the line before the block of a tool call.
#[must_use]
pub(crate) fn parse_call_label(line: &str) -> Option<&str> {
    let (name, rest) = parse_speaker_label(line)?;
    let tool = name.strip_prefix(TOOL_CALL)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    rest.trim().is_empty().then_some(tool)
}

/// Returns whether the line is the one before the block of a tool call.
#[must_use]
pub(crate) fn is_call_label(line: &str) -> bool {
    parse_call_label(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        for (name, read) in [("Simple Sally", "Simple Sally"), ("a:** *b*\n::", "a: b"), ("", "")] {
            assert_eq!(
                parse_speaker_label(&format!("{} x:** y", speaker_label(name))),
                Some((read, "x:** y")),
                "{name}"
            );
        }
        assert_eq!(parse_speaker_label("**You:**"), Some(("You", "")));
        assert_eq!(parse_speaker_label("**bold** and: more"), None);
        for (name, read) in [("bash", "bash"), ("a *(b)*", "a (b)"), ("", ""), ("x\ny", "x y")] {
            assert_eq!(parse_call_label(&call_label(name)).map(str::trim), Some(read), "{name}");
        }
        assert_eq!(parse_call_label("**Tool call (bash):** ls"), None);
    }
}
