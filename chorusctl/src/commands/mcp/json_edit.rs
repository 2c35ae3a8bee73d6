//! Changes one member of an object in a JSON text and leaves every other byte as it is. The text may have comments and
//! trailing commas.

use std::ops::Range;

use serde_json::{Map, Value};

/// A text, with the same offsets in all three forms.
struct Document<'a> {
    text: &'a str,
    /// With spaces for comments.
    bare: String,
    /// With spaces for comments and trailing commas: JSON.
    strict: String,
}

impl<'a> Document<'a> {
    /// Returns `None` if a comment or a string does not end.
    fn new(text: &'a str) -> Option<Self> {
        let (mut bare, mut at) = (text.as_bytes().to_vec(), 0);
        let mut trailing = Vec::new();
        // The last comma, while only blanks follow it.
        let mut comma = None;
        while at < bare.len() {
            let end = match (bare[at], bare.get(at + 1)) {
                (b'"', _) => string_end(&bare, at)?,
                (b'/', Some(b'/')) => text[at..].find('\n').map_or(text.len(), |length| at + length),
                (b'/', Some(b'*')) => at + 2 + text[at + 2..].find("*/")? + 2,
                _ => at + 1,
            };
            match bare[at] {
                b'/' if end > at + 1 => {
                    bare[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ')
                }
                b',' => comma = Some(at),
                b'}' | b']' => trailing.extend(comma.take()),
                byte if !byte.is_ascii_whitespace() => comma = None,
                _ => {}
            }
            at = end;
        }
        let mut strict = bare.clone();
        trailing.into_iter().for_each(|comma| strict[comma] = b' ');
        Some(Self { text, bare: String::from_utf8(bare).ok()?, strict: String::from_utf8(strict).ok()? })
    }

    fn is_empty(&self) -> bool {
        self.strict.trim().is_empty()
    }

    fn parse(&self) -> Option<Map<String, Value>> {
        if self.is_empty() { Some(Map::new()) } else { serde_json::from_str(&self.strict).ok() }
    }

    /// Returns the offset of the comma that follows `at`, if one does.
    fn comma_after(&self, at: usize) -> Option<usize> {
        let next = skip_blanks(self.bare.as_bytes(), at);
        self.bare[next..].starts_with(',').then_some(next)
    }

    /// Returns the blanks at the start of the line with the offset `at`.
    fn indent(&self, at: usize) -> &'a str {
        let line = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let length = self.text[line..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        &self.text[line..line + length]
    }

    /// Returns the indentation of a level: that of the first member, else two spaces.
    fn unit(&self, root: &Object) -> &'a str {
        let first = root.members.first().map(|member| self.indent(member.key));
        first.filter(|indent| !indent.is_empty()).unwrap_or("  ")
    }
}

/// Parses a text that may have comments and trailing commas; an empty one is an empty object.
pub(super) fn parse(text: &str) -> Option<Map<String, Value>> {
    Document::new(text)?.parse()
}

/// Returns the offset behind the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// An object in a text.
struct Object {
    /// The offset of `{`, and of `}`.
    open: usize,
    close: usize,
    members: Vec<Member>,
}

/// A member of an object: the offsets of its key and of its value.
struct Member {
    name: String,
    key: usize,
    value: Range<usize>,
}

impl Object {
    /// Returns the index of a member. Of a name that occurs twice, the last one counts.
    fn find(&self, name: &str) -> Option<usize> {
        self.members.iter().rposition(|member| member.name == name)
    }
}

/// Returns the object at `at`; the text is valid JSON.
fn object_at(text: &str, at: usize) -> Option<Object> {
    let bytes = text.as_bytes();
    let open = skip_blanks(bytes, at);
    if bytes.get(open) != Some(&b'{') {
        return None;
    }
    let mut object = Object { open, close: 0, members: Vec::new() };
    let mut at = skip_blanks(bytes, open + 1);
    while bytes.get(at)? != &b'}' {
        let key = at;
        let key_end = string_end(bytes, key)?;
        let name = serde_json::from_str(text.get(key..key_end)?).ok()?;
        let start = skip_blanks(bytes, skip_blanks(bytes, key_end) + 1);
        let end = value_end(bytes, start)?;
        object.members.push(Member { name, key, value: start..end });
        at = skip_blanks(bytes, end);
        if bytes.get(at)? == &b',' {
            at = skip_blanks(bytes, at + 1);
        }
    }
    object.close = at;
    Some(object)
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Returns the offset behind the value at `start`.
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return Some(at),
            _ => at += 1,
        }
        if depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']') {
            return Some(at);
        }
    }
}

/// Sets `servers.name` to `entry` and returns the new text; `None` if that cannot be done safely.
pub(super) fn set(text: &str, servers: &str, name: &str, entry: &Value) -> Option<String> {
    let document = Document::new(text)?;
    if document.is_empty() {
        return set("{}\n", servers, name, entry);
    }
    let mut due = document.parse()?;
    let root = object_at(&document.strict, 0)?;
    let edited = match root.find(servers).map(|index| &root.members[index]) {
        Some(member) => {
            let object = object_at(&document.strict, member.value.start)?;
            match object.find(name).map(|index| &object.members[index]) {
                Some(member) => {
                    let value = pretty(entry, document.indent(member.key), document.unit(&root));
                    replace(text, member.value.clone(), &value)
                }
                None => insert(&document, &root, &object, name, entry),
            }
        }
        None => {
            let entry = Value::Object(Map::from_iter([(name.to_owned(), entry.clone())]));
            insert(&document, &root, &root, servers, &entry)
        }
    };
    let held = due.entry(servers).or_insert_with(|| Value::Object(Map::new()));
    held.as_object_mut()?.insert(name.to_owned(), entry.clone());
    (parse(&edited)? == due).then_some(edited)
}

/// Removes `servers.name`, and `servers` if nothing else is in it; `None` if that cannot be done safely.
pub(super) fn remove(text: &str, servers: &str, name: &str) -> Option<String> {
    let document = Document::new(text)?;
    let mut due = document.parse()?;
    let root = object_at(&document.strict, 0)?;
    let object = object_at(&document.strict, root.members[root.find(servers)?].value.start)?;
    let held = due.get_mut(servers)?.as_object_mut()?;
    held.shift_remove(name)?;
    let edited = if held.is_empty() {
        due.shift_remove(servers);
        cut(&document, &root, root.find(servers)?)
    } else {
        cut(&document, &object, object.find(name)?)
    };
    (parse(&edited)? == due).then_some(edited)
}

/// Inserts a member at the end of an object.
fn insert(document: &Document<'_>, root: &Object, object: &Object, name: &str, value: &Value) -> String {
    let (text, key) = (document.text, Value::from(name));
    let inside = &text[object.open..object.close];
    let last = object.members.last();
    if let Some(last) = last.filter(|_| !inside.contains('\n')) {
        return replace(text, last.value.end..last.value.end, &format!(", {key}: {value}"));
    }
    let (unit, outer) = (document.unit(root), document.indent(object.open));
    let indent = last.map_or_else(|| format!("{outer}{unit}"), |last| document.indent(last.key).to_owned());
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let value = pretty(value, &indent, unit).replace('\n', newline);
    // Behind the last thing in the object, which may be a comment.
    let end = object.open + inside.trim_end().len();
    let trailing_comma = last.and_then(|last| document.comma_after(last.value.end));
    let mut member = format!("{newline}{indent}{key}: {value}");
    if trailing_comma.is_some() {
        member.push(',');
    }
    if !text[end..object.close].contains('\n') {
        member.push_str(&format!("{newline}{outer}"));
    }
    let edited = replace(text, end..end, &member);
    match last.filter(|_| trailing_comma.is_none()) {
        Some(last) => replace(&edited, last.value.end..last.value.end, ","),
        None => edited,
    }
}

/// Removes the member with this index, its line if it has one of its own, and a comma.
fn cut(document: &Document<'_>, object: &Object, index: usize) -> String {
    let (text, member) = (document.text, &object.members[index]);
    let (mut start, mut end) = (member.key, member.value.end);
    let comma_after = document.comma_after(end);
    if let Some(comma) = comma_after {
        end = comma + 1;
    }
    let line_start = text[..start].trim_end_matches([' ', '\t']).len();
    let line_end = end + text[end..].len() - text[end..].trim_start_matches([' ', '\t', '\r']).len();
    let owns_line = text[..line_start].ends_with('\n') && text[line_end..].starts_with('\n');
    let comma_before = index.checked_sub(1).and_then(|before| document.comma_after(object.members[before].value.end));
    if owns_line {
        // From the end of the line before to the end of its own.
        start = line_start - 1;
        start -= usize::from(text[..start].ends_with('\r'));
        end = line_end - usize::from(text[..line_end].ends_with('\r'));
    } else if comma_after.is_some() {
        end = line_end;
    } else if let Some(comma) = comma_before.filter(|comma| text[comma + 1..start].trim().is_empty()) {
        return replace(text, comma..end, "");
    }
    let mut edited = replace(text, start..end, "");
    if let Some(comma) = comma_before.filter(|_| comma_after.is_none()) {
        edited.remove(comma);
    }
    let inside = edited[object.open + 1..].find('}').map(|length| object.open + 1..object.open + 1 + length);
    match inside.filter(|inside| object.members.len() == 1 && edited[inside.clone()].trim().is_empty()) {
        Some(inside) => replace(&edited, inside, ""),
        None => edited,
    }
}

fn replace(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// Formats a value whose first line is indented by `indent`.
fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner = format!("{indent}{unit}");
            let members: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{inner}{}: {}", Value::from(&**key), pretty(value, &inner, unit)))
                .collect();
            format!("{{\n{}\n{indent}}}", members.join(",\n"))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Value {
        json!({"command": "/bin/chorusctl", "args": ["mcp"]})
    }

    #[test]
    fn an_entry_is_added_in_the_style_of_the_file() {
        let added = |text: &str| set(text, "servers", "chorus", &entry()).expect("it is possible");
        let whole = "{\n  \"servers\": {\n    \"chorus\": {\n      \"command\": \"/bin/chorusctl\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n";
        assert_eq!(added(""), whole);
        assert_eq!(added("{}\n"), whole);
        assert_eq!(
            added("{\"a\": 1}"),
            "{\"a\": 1, \"servers\": {\"chorus\":{\"command\":\"/bin/chorusctl\",\"args\":[\"mcp\"]}}}"
        );
        assert_eq!(
            added("{\n\t\"servers\": {\n\t\t\"other\": {} // mine, \"}\"\n\t}\n}"),
            "{\n\t\"servers\": {\n\t\t\"other\": {}, // mine, \"}\"\n\t\t\"chorus\": {\n\t\t\t\"command\": \"/bin/chorusctl\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}\n}"
        );
        assert!(added("{\n  \"a\": [1,],\n  /* , */\n}").ends_with("/* , */\n  \"servers\": {\n    \"chorus\": {\n      \"command\": \"/bin/chorusctl\",\n      \"args\": [\"mcp\"]\n    }\n  },\n}"));
    }

    #[test]
    fn what_was_added_is_removed_without_a_trace() {
        for text in [
            "{\n}\n",
            "{\n  \"a\": 1\n}\n",
            "{\"a\": {\"b\": [1, 2]}}",
            "{\r\n  \"a\": 1\r\n}\r\n",
            "// top\n{\n    // first\n    \"a\": \"x // y\", // behind\n    \"b\": [1, 2,], /* last */\n}\n// end",
            "{\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"é\": \"\\\"}\"\n}",
            "{\"servers\": {\"other\": {}}, \"z\": null}",
            "{\n  \"servers\": {\n    // none\n    \"other\": {},\n  },\n}\n",
        ] {
            let with = set(text, "servers", "chorus", &entry()).expect(text);
            assert_eq!(parse(&with).expect(text)["servers"]["chorus"], entry(), "{with}");
            let without = remove(&with, "servers", "chorus").expect(&with);
            let due = if text == "{\n}\n" { "{}\n" } else { text };
            assert_eq!(without, due, "{with}");
            let changed = set(&with, "servers", "chorus", &json!({"command": "y"})).expect(&with);
            assert_eq!(remove(&changed, "servers", "chorus").expect(&changed), due);
        }
    }

    #[test]
    fn an_entry_in_the_middle_is_removed() {
        let cut = |text: &str| remove(text, "s", "chorus").expect("it is possible");
        assert_eq!(cut("{\"s\": {\"chorus\": {}, \"b\": 1}}"), "{\"s\": {\"b\": 1}}");
        assert_eq!(cut("{\"s\": {\"chorus\": {}}, \"b\": 1}"), "{\"b\": 1}");
        assert_eq!(cut("{\"a\": 1, \"s\": {\"chorus\": {}}}"), "{\"a\": 1}");
        assert_eq!(
            cut("{\n  \"s\": {\n    \"chorus\": {},\n    \"b\": 1 // b\n  }\n}"),
            "{\n  \"s\": {\n    \"b\": 1 // b\n  }\n}"
        );
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for text in [
            "{",
            "[]",
            "{\"a\": }",
            "{\"servers\": []}",
            "{\"servers\": 1}",
            "{} {}",
            "{\"a\": \"",
            "{ /* }",
            "{'a': 1}",
        ] {
            assert_eq!(set(text, "servers", "chorus", &entry()), None, "{text}");
            assert_eq!(remove(text, "servers", "chorus"), None, "{text}");
        }
    }
}
