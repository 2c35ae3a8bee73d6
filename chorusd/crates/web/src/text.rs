//! Pieces of pages: ages, names, links, numbers.

use std::borrow::Cow;
use std::fmt::Display;

use chorus_session::export::html::show_invisible;
use chorus_terminal_text::duration;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use crate::prefix::{at, prefix};

/// Returns a text with everything in it visible, on one line.
pub(crate) fn line(text: &str) -> String {
    let text = show_invisible(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns at most `most` characters of a text on one line.
pub(crate) fn short(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most * 4).map_or(text.len(), |(end, _)| end);
    let line = line(&text[..end]);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Returns the title of a conversation: its description, else its summary, else its name.
pub(crate) fn title(description: Option<&str>, summary: Option<&str>, name: &str) -> String {
    let texts = [description, summary, Some(name)];
    let title = texts.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default();
    short(title, 160)
}

/// Formats the time since `time`. The script keeps it up to date.
pub(crate) fn age(time: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    let shown = match now.as_second() - time.as_second() {
        ..10 => "now".to_owned(),
        seconds => duration::format_rounded(seconds.unsigned_abs()),
    };
    html! { time.age datetime=(time.to_string()) title=(clock(time, zone)) { (shown) } }
}

/// Formats the day and the minute.
pub(crate) fn clock(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Encodes a piece of a path.
pub(crate) fn segment(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        match is_plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(encoded)
}

/// Returns `?a=b&c=d` with the pairs that have a value.
pub(crate) fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter_map(|(name, value)| Some((name, (*value)?))));
    match query.finish() {
        query if query.is_empty() => query,
        query => format!("?{query}"),
    }
}

pub(crate) fn agent_path(agent: &str) -> String {
    format!("{}/agent/{}", prefix(), segment(agent))
}

/// Returns the address of a saved conversation.
pub(crate) fn session_path(id: impl Display) -> String {
    at(&format!("/session/{id}"))
}

/// Returns the address of a live conversation; `main` without a name.
pub(crate) fn live_path(agent: &str, conversation: Option<&str>) -> String {
    format!("{}/live/{}", agent_path(agent), segment(conversation.unwrap_or("main")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_in_their_place() {
        assert_eq!(agent_path("api"), "/agent/api");
        assert_eq!(live_path("../a", Some("b/c?d#e é")), "/agent/%2E%2E%2Fa/live/b%2Fc%3Fd%23e%20%C3%A9");
        assert_eq!(query(&[("q", Some("a&b c")), ("page", None)]), "?q=a%26b+c");
        assert_eq!(query(&[]), "");
    }

    #[test]
    fn lines_are_short_and_hide_nothing() {
        assert_eq!(short("a \n b\u{202e}c", 20), "a b⟨U+202E⟩c");
        assert_eq!(short("abcdef", 3), "abc…");
        assert_eq!(title(Some(" "), None, "name"), "name");
    }
}
