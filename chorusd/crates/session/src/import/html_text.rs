//! The text of HTML that programs put into their exports.

/// Replaces the entities of HTML by the characters that they stand for. Unknown ones stay.
pub(super) fn unescape_entities(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_ENTITY_BYTES + 1).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, &rest[end + 1..]))) {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

/// Converts HTML to text with the marks of Markdown.
pub(super) fn html_to_text(html: &str) -> String {
    let mut text = HtmlText::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.add(&rest[..at]);
        let tag = &rest[at + 1..];
        let is_tag = tag.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '!'));
        if !is_tag {
            text.add("<");
            rest = tag;
            continue;
        }
        let Some(end) = tag.find('>') else {
            rest = &rest[at..];
            break;
        };
        text.add_tag(&tag[..end]);
        rest = &tag[end + 1..];
    }
    text.add(rest);
    text.out.trim().to_owned()
}

/// Text that is being converted.
#[derive(Debug, Default)]
struct HtmlText {
    out: String,
    /// The lists that are open, with the number of the last entry of those that are numbered.
    lists: Vec<Option<u64>>,
    links: Vec<String>,
    /// Inside `<pre>`, where white space counts.
    in_block: bool,
    /// Inside `<script>` or `<style>`.
    is_hidden: bool,
}

impl HtmlText {
    fn add(&mut self, html: &str) {
        if self.is_hidden {
            return;
        }
        let text = unescape_entities(html);
        if self.in_block {
            self.out.push_str(&text);
            return;
        }
        for c in text.chars() {
            let is_space = c.is_ascii_whitespace();
            if !is_space {
                self.out.push(c);
            } else if !self.out.ends_with([' ', '\n']) && !self.out.is_empty() {
                self.out.push(' ');
            }
        }
    }

    /// Ends the line, so that `breaks` line ends follow the text before it.
    fn end_line(&mut self, breaks: usize) {
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        let present = self.out.len() - self.out.trim_end_matches('\n').len();
        if !self.out.is_empty() {
            self.out.extend(std::iter::repeat_n('\n', breaks.saturating_sub(present)));
        }
    }

    fn add_tag(&mut self, tag: &str) {
        let is_end = tag.starts_with('/');
        let tag = tag.trim_start_matches('/').trim_end_matches('/');
        let name = tag.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "script" | "style" => self.is_hidden = !is_end,
            "br" => self.out.push('\n'),
            "p" | "div" if !is_end && !self.lists.is_empty() => {}
            "p" | "div" | "section" | "blockquote" | "table" => {
                self.end_line(if self.lists.is_empty() { 2 } else { 1 })
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_line(2);
                let level = name[1..].parse().unwrap_or(1);
                self.out.push_str(if is_end { "" } else { &"###### "[6 - level..] });
            }
            "ul" | "ol" if is_end => {
                self.lists.pop();
                self.end_line(if self.lists.is_empty() { 2 } else { 1 });
            }
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(0)),
            "li" => self.add_list_entry(is_end),
            "strong" | "b" => self.out.push_str("**"),
            "em" | "i" => self.out.push('*'),
            "code" if !self.in_block => self.out.push('`'),
            "pre" if is_end => {
                self.in_block = false;
                self.end_line(1);
                self.out.push_str("```");
                self.end_line(2);
            }
            "pre" => {
                self.end_line(2);
                self.out.push_str("```\n");
                self.in_block = true;
            }
            "a" => self.add_link(tag, is_end),
            "tr" => self.end_line(1),
            "td" | "th" if is_end => self.out.push_str(" | "),
            "hr" => {
                self.end_line(2);
                self.out.push_str("---");
                self.end_line(2);
            }
            _ => {}
        }
    }

    fn add_list_entry(&mut self, is_end: bool) {
        self.end_line(1);
        if is_end {
            return;
        }
        let depth = self.lists.len().saturating_sub(1);
        self.out.extend(std::iter::repeat_n("  ", depth));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                self.out.push_str(&format!("{number}. "));
            }
            _ => self.out.push_str("- "),
        }
    }

    fn add_link(&mut self, tag: &str, is_end: bool) {
        if !is_end {
            let url = tag.split_once("href=\"").and_then(|(_, url)| url.split('"').next());
            self.links.push(url.map(unescape_entities).unwrap_or_default());
            self.out.push('[');
        } else if let Some(url) = self.links.pop() {
            self.out.push_str(&format!("]({url})"));
        }
    }
}

/// The longest entity, without its semicolon.
const MAX_ENTITY_BYTES: usize = 10;

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hexadecimal = number.strip_prefix(['x', 'X']).map(|number| u32::from_str_radix(number, 16));
        return char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_become_characters() {
        assert_eq!(unescape_entities("a &lt;b&gt; &amp;amp; &#39;c&#x27; &quot;"), "a <b> &amp; 'c' \"");
        assert_eq!(unescape_entities("R&D; & &unknown; &#xd800; &"), "R&D; & &unknown; &#xd800; &");
    }

    #[test]
    fn tags_become_marks() {
        let html = "<h2>Why</h2><p>A <strong>filter</strong>\n that <a href=\"https://a/?b=1&amp;c\">blocks</a>:</p><ul><li>glare<ol><li>one</li><li>two</li></ol></li><li><p>keeps &amp; passes</p></li></ul><pre><code>a  &lt; b\n</code></pre><p>x<br>y 1 < 2 <code>z</code></p><style>p {}</style>";
        let due = "## Why\n\nA **filter** that [blocks](https://a/?b=1&c):\n\n- glare\n  1. one\n  2. two\n- keeps & passes\n\n```\na  < b\n```\n\nx\ny 1 < 2 `z`";
        assert_eq!(html_to_text(html), due);
        assert_eq!(html_to_text("plain <b"), "plain <b");
        assert_eq!(html_to_text("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"), "a | b |\nc |");
    }
}
