//! Conversions of single JSON values that several formats share.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::{Attachment, Source, SourceKind};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::raw_object::{RawObject, string_value};

const BILLION: i128 = 1_000_000_000;

/// Returns the source of an imported message.
pub(super) fn import_source(format: &str) -> Source {
    Source { kind: SourceKind::Import, channel_id: None, message_id: None, format: Some(format.to_owned()) }
}

/// Returns the source of an imported message that a program wrote: a notice, the output of a hook or of a command.
pub(super) fn program_source(format: &str) -> Source {
    Source { kind: SourceKind::Agent, ..import_source(format) }
}

/// Parses a time: RFC 3339, the same without an offset (taken as UTC), or seconds or milliseconds since 1970.
pub(super) fn parse_timestamp(raw: &RawValue) -> Option<Timestamp> {
    let Some(text) = string_value(raw) else {
        return timestamp_from_epoch(raw.get());
    };
    parse_time_text(&text)
}

/// Parses a time in RFC 3339, or the same without an offset (taken as UTC).
pub(super) fn parse_time_text(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

/// Parses a number of seconds or milliseconds since 1970.
fn timestamp_from_epoch(number: &str) -> Option<Timestamp> {
    let billionths = match billionths_of(number) {
        Some(exact) => exact,
        None => (number.parse::<f64>().ok().filter(|number| number.abs() < 1e15)? * 1e9) as i128,
    };
    // As seconds, 1e11 is in the year 5138; as milliseconds, in 1973.
    let nanoseconds = if billionths.unsigned_abs() >= 100_000_000_000 * BILLION.unsigned_abs() {
        billionths / 1000
    } else {
        billionths
    };
    Timestamp::from_nanosecond(nanoseconds).ok()
}

/// Returns a number without an exponent in billionths. A floating-point number has too few digits for a time of today.
fn billionths_of(number: &str) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let nine = format!("{fraction:0<9}");
    format!("{whole}{}", nine.get(..9)?).parse().ok()
}

/// Puts the value on one line. Tokens and their order stay as they are.
pub(super) fn minify_value(raw: &RawValue) -> Box<RawValue> {
    if !raw.get().contains(['\n', '\r']) {
        return raw.to_owned();
    }
    RawValue::from_string(minify_json(raw.get())).unwrap_or_else(|_| raw.to_owned())
}

/// Removes the white space between the tokens of the JSON text.
pub(super) fn minify_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted {
            quoted = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else if c == '"' {
            quoted = true;
        } else if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        out.push(c);
    }
    out
}

/// Encodes `text` as a JSON string.
pub(super) fn json_string(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).unwrap_or_default()
}

/// Builds `{"<provider>": {<fields>}}` without changing the values, or returns `None` if there are no fields.
pub(super) fn provider_object(name: &str, fields: &[(String, Box<RawValue>)]) -> Option<Box<RawValue>> {
    if fields.is_empty() {
        return None;
    }
    let inner: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{}", json_string(key).get(), value.get())).collect();
    RawValue::from_string(format!("{{{}:{{{}}}}}", json_string(name).get(), inner.join(","))).ok()
}

/// Adds a field to the object `kept` of [`provider_object`].
pub(super) fn add_provider_field(kept: Option<Box<RawValue>>, name: &str, value: &RawValue) -> Option<Box<RawValue>> {
    let field = format!("{}:{}}}", json_string(name).get(), minify_value(value).get());
    let before = kept.as_deref().and_then(|kept| kept.get().trim_end().strip_suffix('}'));
    let whole = before.map_or_else(|| format!("{{{field}"), |before| format!("{before},{field}"));
    RawValue::from_string(whole).ok().or(kept)
}

/// Builds one list for each kind, in order of first appearance.
pub(super) fn group_by_kind(others: Vec<(String, Box<RawValue>)>) -> Vec<(String, Box<RawValue>)> {
    let mut kinds: Vec<(String, Vec<Box<RawValue>>)> = Vec::new();
    for (kind, raw) in others {
        match kinds.iter_mut().find(|(of, _)| *of == kind) {
            Some((_, raws)) => raws.push(raw),
            None => kinds.push((kind, vec![raw])),
        }
    }
    kinds.into_iter().map(|(kind, raws)| (kind, json_list(&raws))).collect()
}

/// Builds a JSON list without changing the values.
pub(super) fn json_list(values: &[Box<RawValue>]) -> Box<RawValue> {
    let inner: Vec<&str> = values.iter().map(|value| value.get()).collect();
    RawValue::from_string(format!("[{}]", inner.join(","))).unwrap_or_default()
}

/// Builds the attachment for an image or file that is given by URL. Decodes `data:` URLs.
pub(super) fn linked_attachment(number: usize, kind: &str, url: &str) -> Attachment {
    if let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(","))
        && let Some(media_type) = head.strip_suffix(";base64")
    {
        return embedded_attachment(number, kind, Some(media_type.to_owned()), data.to_owned());
    }
    Attachment {
        name: format!("{kind}-{number}"),
        media_type: None,
        size: None,
        path: None,
        url: Some(url.to_owned()),
        data: None,
    }
}

/// Builds the attachment for an image or file that is given in base64.
pub(super) fn embedded_attachment(number: usize, kind: &str, media_type: Option<String>, data: String) -> Attachment {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let size = (data.len() * 3 / 4).saturating_sub(padding) as u64;
    let ending = media_type.as_deref().and_then(|media_type| media_type.split_once('/')).map(|(_, ending)| ending);
    let name = match ending {
        Some(ending) if !ending.is_empty() => format!("{kind}-{number}.{ending}"),
        _ => format!("{kind}-{number}"),
    };
    Attachment { name, media_type, size: Some(size), path: None, url: None, data: Some(data) }
}

/// Returns what a tool returned as text: the output of a command, the content of a file, a diff, or else the whole value.
pub(super) fn output_text(value: &RawValue) -> String {
    let fields = RawObject::from_value(value);
    let named = fields.and_then(|fields| ["output", "content", "diff"].iter().find_map(|name| fields.get_text(name)));
    named.or_else(|| string_value(value)).map_or_else(|| minify_value(value).get().to_owned(), String::from)
}

/// Builds the attachment for a file of which the text is known.
pub(super) fn text_attachment(name: impl Into<String>, text: &str) -> Attachment {
    Attachment {
        name: name.into(),
        media_type: Some("text/plain".into()),
        size: Some(text.len() as u64),
        path: None,
        url: None,
        data: Some(STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn times_in_their_forms() {
        let expected: Timestamp = "2025-06-14T10:00:00Z".parse().unwrap();
        for form in [
            r#""2025-06-14T10:00:00Z""#,
            r#""2025-06-14T12:00:00+02:00""#,
            r#""2025-06-14T10:00:00""#,
            "1749895200",
            "1749895200000",
            "1749895200.0",
        ] {
            assert_eq!(parse_timestamp(&raw(form)), Some(expected), "{form}");
        }
        assert_eq!(parse_timestamp(&raw(r#""soon""#)), None);
        assert_eq!(parse_timestamp(&raw("1e300")), None);
    }

    #[test]
    fn times_keep_their_digits_and_sort_as_times() {
        let given = [
            (r#""2025-06-14T10:00:00Z""#, "2025-06-14T10:00:00Z"),
            ("1749895200.1234", "2025-06-14T10:00:00.1234Z"),
            (r#""2025-06-14T10:00:00.5Z""#, "2025-06-14T10:00:00.5Z"),
            (r#""2025-06-14T10:00:00.500001""#, "2025-06-14T10:00:00.500001Z"),
            ("1749895200.654321", "2025-06-14T10:00:00.654321Z"),
            ("1749895200750", "2025-06-14T10:00:00.75Z"),
            (r#""2025-06-14T12:00:00.800000001+02:00""#, "2025-06-14T10:00:00.800000001Z"),
            ("1749895201", "2025-06-14T10:00:01Z"),
        ];
        let times: Vec<Timestamp> = given.iter().map(|(form, _)| parse_timestamp(&raw(form)).unwrap()).collect();
        let texts: Vec<String> = times.iter().map(Timestamp::to_string).collect();
        assert_eq!(texts, given.map(|(_, text)| text));
        // The times are in order, and their texts are not: docs/EXCHANGE.md warns of that.
        assert!(times.is_sorted() && !texts.is_sorted());
        assert_eq!(parse_timestamp(&raw("-0.25")).unwrap().to_string(), "1969-12-31T23:59:59.75Z");
    }

    #[test]
    fn line_breaks_go_and_digits_stay() {
        let value = raw("{\n \"a\": 1.10,\r\n \"b \\\" \\\\\": \"x  y\"}");
        assert_eq!(minify_value(&value).get(), r#"{"a":1.10,"b \" \\":"x  y"}"#);
        assert_eq!(minify_value(&raw(r#"{"a": 1}"#)).get(), r#"{"a": 1}"#);
    }

    #[test]
    fn a_field_is_kept_beside_others() {
        let value = raw("{\n\"a\": 1.10}");
        assert_eq!(add_provider_field(None, "x", &value).unwrap().get(), r#"{"x":{"a":1.10}}"#);
        let before = provider_object("openai", &[("b".into(), raw("2"))]);
        assert_eq!(add_provider_field(before, "x", &value).unwrap().get(), r#"{"openai":{"b":2},"x":{"a":1.10}}"#);
    }

    #[test]
    fn data_links_are_opened() {
        let picture = linked_attachment(1, "image", "data:image/png;base64,aGk=");
        assert_eq!((picture.name.as_str(), picture.size), ("image-1.png", Some(2)));
        assert_eq!(picture.data.as_deref(), Some("aGk="));
        assert_eq!(linked_attachment(2, "image", "https://a/b.png").url.as_deref(), Some("https://a/b.png"));
    }
}
