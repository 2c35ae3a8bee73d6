//! HTML comments that hold JSON, as earlier releases wrote them: one for the session, one before each message.

/// Start of the comment that holds the session's header.
pub(crate) const SESSION_COMMENT: &str = "<!-- chorus session ";
/// Start of the comment that holds a message's metadata.
pub(crate) const MESSAGE_COMMENT: &str = "<!-- chorus message ";
/// End of either comment.
const COMMENT_END: &str = "-->";

/// Returns the JSON of a comment line that starts with `mark`.
#[must_use]
pub(crate) fn parse_comment<'a>(mark: &str, line: &'a str) -> Option<&'a str> {
    line.trim_end().strip_prefix(mark)?.strip_suffix(COMMENT_END).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_earlier_releases_are_read() {
        let json = parse_comment(MESSAGE_COMMENT, r#"<!-- chorus message {"a":"x -\u002d-> y"} -->"#).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap()["a"], "x ---> y");
        assert_eq!(parse_comment(SESSION_COMMENT, "<!-- chorus message {} -->"), None);
    }
}
