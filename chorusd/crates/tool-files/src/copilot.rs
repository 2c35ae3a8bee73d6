//! GitHub Copilot CLI: title and directory of a session stand in `workspace.yaml` beside its events.

use std::path::Path;

use crate::bounded_read::{MAX_BYTES, read_text};
use crate::conversation_info::ConversationInfo;

pub(crate) const TRANSCRIPT: &str = "events.jsonl";

const WORKSPACE: &str = "workspace.yaml";

/// The title, in newer and older versions.
const TITLE_KEYS: [&str; 2] = ["name", "summary"];

/// Reads what is known of the session in `dir`.
pub(crate) fn read_info(dir: &Path) -> ConversationInfo {
    let text = read_text(&dir.join(WORKSPACE), MAX_BYTES).unwrap_or_default();
    let title = TITLE_KEYS.into_iter().find_map(|key| scalar(&text, key));
    let project = ConversationInfo::with_project(scalar(&text, "cwd")).project;
    ConversationInfo { project, ..ConversationInfo::with_title(title) }
}

/// Returns the value of a key of the YAML document, which has no nested ones: plain, quoted, or, in a block, its lines.
fn scalar(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines();
    let value = lines.by_ref().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
    let unquoted = match value.chars().next()? {
        '|' | '>' => {
            let block = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
            block.map(str::trim).collect::<Vec<_>>().join("\n")
        }
        // The escapes of JSON are those that are written.
        '"' => serde_json::from_str(value).ok()?,
        '\'' => value.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'"),
        _ => value.to_owned(),
    };
    Some(unquoted).filter(|value| !value.trim().is_empty() && !matches!(value.as_str(), "null" | "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_each_form() {
        let text = "id: 1\nname_of: no\nplain: Fix it # 2\nquoted: \"a \\\"b\\\": c\"\nsingle: 'it''s'\nblock: |-\n  Fix it.\n\n  And this.\nnone: null\nempty:\nlast: x";
        let value = |key| scalar(text, key);
        assert_eq!(value("plain").as_deref(), Some("Fix it # 2"));
        assert_eq!(value("quoted").as_deref(), Some("a \"b\": c"));
        assert_eq!(value("single").as_deref(), Some("it's"));
        assert_eq!(value("block").as_deref(), Some("Fix it.\n\nAnd this."));
        assert_eq!((value("none"), value("empty"), value("name")), (None, None, None));
        assert_eq!(value("last").as_deref(), Some("x"));
    }
}
