//! Minifies JSON to a single line.

/// Removes the white space between tokens and copies every token unchanged, so that numbers keep their digits. `json`
/// must be valid.
#[must_use]
pub fn minify_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            in_string = c == '"';
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::minify_json;

    #[test]
    fn only_space_between_tokens_goes() {
        assert_eq!(
            minify_json("{ \"a b\" :\n [1.50, \"x\\\" \\\\\" , -0e1 ]\t}\r\n"),
            r#"{"a b":[1.50,"x\" \\",-0e1]}"#
        );
    }
}
