//! Text in HTML that programs put into their exports.

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
}
