//! Parses request bodies: JSON, or multipart with JSON and files.

use serde_json::Value;

use super::http::RecordedRequest;
use super::messages::File;

/// Builds the record of a request; `uri` is the one of the request line.
pub fn parse_request(method: &str, uri: &str, header: &dyn Fn(&str) -> Option<String>, body: &[u8]) -> RecordedRequest {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let path = path.split_once("://").map_or(path, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let kind = header("content-type").unwrap_or_default();
    let (mut json, mut files) = (Value::Null, Vec::new());
    if let Some((_, boundary)) = kind.split_once("boundary=") {
        for (name, file) in parse_multipart(body, boundary.trim_matches('"')) {
            if name == "payload_json" {
                json = serde_json::from_slice(&file.bytes).unwrap_or(Value::Null);
            } else {
                files.push((name, file));
            }
        }
    } else if kind.starts_with("application/json") {
        json = serde_json::from_slice(body).unwrap_or(Value::Null);
    }
    // In `files[n]`, `n` is the id by which the JSON refers to the file.
    let files = files.into_iter().map(|(name, mut file)| {
        file.id = name.trim_start_matches("files[").trim_end_matches(']').parse().unwrap_or(u64::MAX);
        file
    });
    RecordedRequest {
        method: method.to_owned(),
        path: path.strip_prefix("/api/v10").unwrap_or(path).to_owned(),
        query: query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect(),
        authorization: header("authorization"),
        user_agent: header("user-agent").unwrap_or_default(),
        body: json,
        files: files.collect(),
        at: std::time::Instant::now(),
    }
}

/// Parses the parts of a multipart body, with their names.
fn parse_multipart(body: &[u8], boundary: &str) -> Vec<(String, File)> {
    let line = format!("--{boundary}");
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = find_bytes(rest, line.as_bytes()) {
        rest = &rest[at + line.len()..];
        let Some(head_end) = find_bytes(rest, b"\r\n\r\n") else { break };
        let Some(end) = find_bytes(rest, format!("\r\n{line}").as_bytes()) else { break };
        if head_end + 4 > end {
            break;
        }
        let head = String::from_utf8_lossy(&rest[..head_end]).into_owned();
        let named = |key: &str| {
            let (_, from) = head.split_once(&format!("; {key}=\""))?;
            Some(from.split('"').next().unwrap_or_default().to_owned())
        };
        let kind = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_owned())
        });
        let bytes = rest[head_end + 4..end].to_vec();
        let name = named("filename").unwrap_or_default();
        found.push((named("name").unwrap_or_default(), File { id: 0, name, kind, bytes }));
        rest = &rest[end + 2..];
    }
    found
}

fn find_bytes(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
