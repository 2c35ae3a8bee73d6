//! HTML comments that hold JSON. A rendered page does not show them.

/// Start of the comment that holds the session's header.
pub(crate) const SESSION_COMMENT: &str = "<!-- chorus session ";
/// Start of the comment that holds a message's metadata.
pub(crate) const MESSAGE_COMMENT: &str = "<!-- chorus message ";
/// End of either comment.
const COMMENT_END: &str = " -->";

/// Renders `json` as a comment that starts with `mark`. Escapes double hyphens, which would end the comment.
#[must_use]
pub(crate) fn render_comment(mark: &str, json: &str) -> String {
    format!("{mark}{}{COMMENT_END}\n", json.replace("--", "-\\u002d"))
}

/// Returns the JSON of a comment line that starts with `mark`.
#[must_use]
pub(crate) fn parse_comment<'a>(mark: &str, line: &'a str) -> Option<&'a str> {
    line.trim_end().strip_prefix(mark)?.strip_suffix(COMMENT_END.trim_end()).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_do_not_end_early() {
        let text = render_comment(MESSAGE_COMMENT, r#"{"a":"x ---> y"}"#);
        assert_eq!(text.matches("--").count(), 2);
        let json = parse_comment(MESSAGE_COMMENT, text.trim_end()).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap()["a"], "x ---> y");
    }
}
