//! Text in markup.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes `text` for an element or an attribute in double or single quotes. Characters that XML does not have are replaced.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || !is_xml(c);
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_xml(c) => escaped.push(c),
            _ => escaped.push('\u{fffd}'),
        }
    }
    Cow::Owned(escaped)
}

fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Cuts `text` to about `columns` average characters. Wide ones, as of Chinese, count twice.
pub(crate) fn shorten(text: &str, columns: usize) -> Cow<'_, str> {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += if c >= '\u{1100}' { 2 } else { 1 };
        if used > columns {
            return Cow::Owned(format!("{}…", text[..at].trim_end()));
        }
    }
    Cow::Borrowed(text)
}

/// Opens an SVG element of this size with its name, and with a description if that is not empty.
pub(crate) fn open_svg(class: &str, (width, height): (f64, f64), title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{0}\">\n",
        escape(title)
    )
}

/// Adds `inner` with a tooltip, and with a link if there is one.
pub(crate) fn push_item(svg: &mut String, tooltip: &str, link: Option<&str>, inner: &str) {
    // A `javascript:` link would be a script.
    let link = link.filter(|link| !link.split(['/', '?', '#']).next().unwrap_or_default().contains(':'));
    let (open, close) = match link {
        Some(link) => (format!("<a href=\"{}\">", escape(link)), "</a>"),
        None => ("<g>".to_owned(), "</g>"),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "{open}<title>{}</title>{inner}{close}", escape(tooltip));
}

/// Formats a coordinate with at most two decimals.
pub(crate) fn coordinate(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(escape("a <b> & \"c\" 'd'"), "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
        assert_eq!(escape("\u{0}\u{1b}\u{ffff}é👩"), "\u{fffd}\u{fffd}\u{fffd}é👩");
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_link_is_no_script() {
        let item = |link| {
            let mut svg = String::new();
            push_item(&mut svg, "t", Some(link), "x");
            svg
        };
        assert_eq!(item("a b.html#m\"1"), "<a href=\"a b.html#m&quot;1\"><title>t</title>x</a>\n");
        for script in ["javascript:alert(1)", "JAVASCRIPT:x", "data:text/html,x", "https://elsewhere/"] {
            assert_eq!(item(script), "<g><title>t</title>x</g>\n");
        }
    }

    #[test]
    fn shortened_texts_count_wide_characters_twice() {
        assert_eq!((&*shorten("hello world", 6), &*shorten("世界の天気", 4)), ("hello…", "世界…"));
        assert_eq!((shorten("abc", 3), coordinate(1.50), coordinate(2.0)), ("abc".into(), "1.5".into(), "2".into()));
    }
}
