//! Speaker labels (`**You:** `) at the start of a line.

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
    }
}
