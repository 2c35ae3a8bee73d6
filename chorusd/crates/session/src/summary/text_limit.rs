//! Truncates texts, joins their lines and ends their sentences.

/// Truncates the text to `most` characters, after a word if one ends nearby.
pub(super) fn truncate_chars(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let at_word = text[end..].starts_with(char::is_whitespace);
    let word = if at_word { Some(end) } else { head.rfind(char::is_whitespace) };
    // Some scripts have no spaces, and some words are longer than a line.
    let head = word.filter(|at| *at * 2 > end).map_or(head, |at| &head[..at]);
    let head = head.trim_end_matches(|c: char| c.is_whitespace() || ",;:-–—(\"'“‘".contains(c));
    format!("{head}…")
}

/// Joins the lines of the text, with one space between words.
pub(super) fn one_line(text: &str) -> String {
    let plain = text.replace(char::is_control, " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats a number of messages in words.
pub(super) fn format_message_count(count: u64) -> String {
    format!("{count} message{}", if count == 1 { "" } else { "s" })
}

/// Ends the text with a full stop unless it already ends like a sentence.
pub(super) fn end_sentence(text: &str) -> String {
    let text = text.trim_end_matches([':', ',', ';', ' ']);
    let bare = text.trim_end_matches(['"', '\'', ')', '”', '’', '»', '」', '』', '）']);
    if bare.ends_with(['.', '!', '?', '…', '。', '！', '？', '।', '؟', '｡']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_behind_words_and_never_go_over() {
        assert_eq!(truncate_chars("one two three", 13), "one two three");
        assert_eq!(truncate_chars("one two three", 12), "one two…");
        assert_eq!(truncate_chars("one two three", 8), "one two…");
        assert_eq!(truncate_chars(&"日".repeat(10), 5), "日日日日…");
        assert_eq!(truncate_chars("a bbbbbbbbbbbbbbbbbbbb", 10), "a bbbbbbb…");
        for most in 0..20 {
            assert!(truncate_chars("Ünïcödé, 🎉 (and) more", most).chars().count() <= most.max(1));
        }
    }

    #[test]
    fn every_sentence_ends_once() {
        assert_eq!(end_sentence("Done:"), "Done.");
        assert_eq!(end_sentence("He said \"stop.\""), "He said \"stop.\"");
        assert_eq!(end_sentence("好了。"), "好了。");
    }
}
