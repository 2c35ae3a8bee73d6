//! Headers for the collector, as the configuration has them.

use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Parses `NAME=VALUE`, one per line or comma. Values may be percent-encoded, as in `OTEL_EXPORTER_OTLP_HEADERS`.
///
/// # Errors
/// A message without anything of the text, which may be a key.
pub(crate) fn parse_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let entries = text.split(['\n', ',']).map(str::trim).filter(|entry| !entry.is_empty());
    for (index, entry) in entries.enumerate() {
        let header = parse_header(entry);
        let (name, value) =
            header.ok_or_else(|| format!("header {} for the collector is not NAME=VALUE", index + 1))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn parse_header(entry: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = entry.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_separated_by_lines_or_commas() {
        for text in ["Authorization=Bearer%20a%2Cb,x-team = one ", "authorization=Bearer a%2Cb\n\nX-Team=one\n"] {
            let headers = parse_headers(text).unwrap();
            assert_eq!(headers.len(), 2, "{text}");
            assert_eq!(
                (&headers["authorization"], &headers["x-team"]),
                (&"Bearer a,b".parse().unwrap(), &"one".parse().unwrap())
            );
        }
        assert_eq!(parse_headers("a=b==").unwrap()["a"], "b==");
        assert!(parse_headers("").unwrap().is_empty());
    }

    #[test]
    fn an_error_does_not_show_the_key() {
        for text in ["a=b,Bearer s3cret", "a=b,s3 cret=x", "a=b,c=s3cret%0A"] {
            assert_eq!(parse_headers(text).unwrap_err(), "header 2 for the collector is not NAME=VALUE", "{text}");
        }
    }
}
