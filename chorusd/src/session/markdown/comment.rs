//! Comments that hold JSON: nobody sees them in a rendered page.

/// Before the session's header.
pub const SESSION_COMMENT: &str = "<!-- chorus session ";
/// Before what a message says besides its text and calls.
pub const MESSAGE_COMMENT: &str = "<!-- chorus message ";
/// After either.
const COMMENT_END: &str = " -->";

/// `json` between a mark and its end: two hyphens would end the comment.
#[must_use]
pub fn render_comment(mark: &str, json: &str) -> String {
    format!("{mark}{}{COMMENT_END}\n", json.replace("--", "-\\u002d"))
}

/// The JSON of a comment line.
#[must_use]
pub fn parse_comment<'a>(mark: &str, line: &'a str) -> Option<&'a str> {
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
