//! A JSON object whose values stay unparsed, so that the digits of numbers and unknown fields are preserved.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, in order.
#[derive(Debug)]
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// Parses an object. Returns the reason if `bytes` is not one.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "not valid UTF-8".to_owned())?;
        if !matches!(text.trim_ascii_start().as_bytes().first(), Some(b'{') | None) {
            return Err("not a JSON object".into());
        }
        serde_json::from_str(text).map_err(|error| format!("broken JSON: {}", error_reason(&error)))
    }

    /// Returns the fields of a value if it is an object.
    pub(super) fn from_value(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
    }

    /// Returns the value of a field, or `None` if it is missing or `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rfind(|(key, _)| key == name).map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the text of a field that is a string.
    pub(super) fn get_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string_value)
    }

    /// Returns the text of a field that is a string and not blank.
    pub(super) fn get_filled(&self, name: &str) -> Option<String> {
        self.get_text(name).filter(|text| !text.trim().is_empty()).map(Cow::into_owned)
    }

    /// Returns whether a field is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns a field that is an unsigned integer.
    pub(super) fn get_u64(&self, name: &str) -> Option<u64> {
        self.get(name)?.get().parse().ok()
    }

    /// Returns whether the field exists, even as `null`.
    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Returns the fields of the nested object `name` together with those around it. If both have a field, the nested
    /// one counts.
    pub(super) fn with_nested(&self, name: &str) -> Option<Self> {
        let inside = Self::from_value(self.get(name)?)?;
        let around = self.0.iter().filter(|(key, _)| key != name).cloned();
        Some(Self(around.chain(inside.0).collect()))
    }

    /// Deserialises a field.
    pub(super) fn get_parsed<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Returns the object without a field.
    pub(super) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(key, _)| key != name).cloned().collect())
    }

    /// Converts back to a JSON object.
    pub(super) fn to_raw_value(&self) -> Option<Box<RawValue>> {
        let quoted = |key: &str| serde_json::to_string(key).ok();
        let fields = self.iter().map(|(key, value)| Some(format!("{}:{}", quoted(key)?, value.get())));
        RawValue::from_string(format!("{{{}}}", fields.collect::<Option<Vec<_>>>()?.join(","))).ok()
    }

    /// Iterates over all fields in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }
}

/// Returns the text of a value that is a string. A lone surrogate, which is left when a text was cut inside a
/// character, becomes U+FFFD.
pub(super) fn string_value(raw: &RawValue) -> Option<Cow<'_, str>> {
    if !raw.get().starts_with('"') {
        return None;
    }
    match serde_json::from_str::<BorrowedText<'_>>(raw.get()) {
        Ok(text) => Some(text.0),
        Err(_) => serde_json::from_str(&replace_lone_surrogates(raw.get())).ok().map(Cow::Owned),
    }
}

/// Replaces every lone `\\ud8..` escape in the JSON text by `\\ufffd`.
fn replace_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (leading_surrogate(rest), rest.get(6..).and_then(leading_surrogate)) {
            (Some(High), Some(Low)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // The escaped character must not start an escape of its own.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out + rest
}

enum Surrogate {
    High,
    Low,
}
use Surrogate::{High, Low};

/// Returns which half of a surrogate pair the escape at the start of `json` encodes.
fn leading_surrogate(json: &str) -> Option<Surrogate> {
    let unit = u16::from_str_radix(json.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    match unit {
        0xd800..=0xdbff => Some(High),
        0xdc00..=0xdfff => Some(Low),
        _ => None,
    }
}

/// Returns the entries of a value that is a list.
pub(super) fn list_entries(raw: &RawValue) -> Option<Vec<&RawValue>> {
    raw.get().starts_with('[').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// Formats a serde_json error without its position, which would be relative to the wrong start.
pub(super) fn error_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |end| text[..end].to_owned())
}

/// A string that borrows from its source if it has no escapes.
#[derive(serde::Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

struct RawObjectVisitor;

impl<'de> Visitor<'de> for RawObjectVisitor {
    type Value = RawObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject<'de>, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some(BorrowedText(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(RawObject(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_bytes() {
        let fields = RawObject::from_bytes(br#"{"a": 1.0e2, "b\n": "x\ty", "c": null, "d": true}"#).unwrap();
        assert_eq!(fields.get("a").unwrap().get(), "1.0e2");
        assert_eq!(fields.get_text("b\n").unwrap(), "x\ty");
        assert!(!fields.has("c"));
        assert!(fields.is_true("d"));
    }

    #[test]
    fn half_a_character_does_not_lose_the_text() {
        let fields = RawObject::from_bytes(br#"{"a": "x\\ud83d\ud83d\ude00\ud83d!\ude00\\"}"#).unwrap();
        assert_eq!(fields.get_text("a").unwrap(), "x\\ud83d\u{1f600}\u{fffd}!\u{fffd}\\");
    }

    #[test]
    fn what_is_no_object_says_so() {
        assert_eq!(RawObject::from_bytes(b"42").unwrap_err(), "not a JSON object");
        assert_eq!(RawObject::from_bytes(b"{\"a\xff\":1}").unwrap_err(), "not valid UTF-8");
        assert!(RawObject::from_bytes(br#"{"a":"#).unwrap_err().starts_with("broken JSON: EOF"));
    }
}
