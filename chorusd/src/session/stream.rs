//! The messages of a session file one by one, so that no more of it is in memory than the one that is looked at.

use std::io::{self, BufRead};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::file::FormatError;
use crate::message::Stored;

/// The line behind the header, and the one behind the last message.
const OPEN: &[u8] = b"  \"messages\": [";
const CLOSE: &[u8] = b"  ]";

/// The longest header: what has a longer one is read as a whole.
const HEADER: usize = 16 << 20;

/// Messages of a file that has one of them on each line.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    /// The first line, which was looked at.
    ahead: Option<Vec<u8>>,
    /// Messages read.
    count: usize,
    /// Messages there are, by the header.
    said: u64,
}

#[derive(Deserialize)]
struct Header {
    schema: u32,
    message_count: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the header; `None` where the file has another layout or schema.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(mut source: R) -> io::Result<Option<Self>> {
        let (mut header, mut line) = (Vec::new(), Vec::new());
        while header.len() < HEADER {
            line.clear();
            if source.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if line.strip_suffix(b"\n") == Some(OPEN) {
                header.extend_from_slice(b"\"messages\":[]}");
                let read: Option<Header> = serde_json::from_slice(&header).ok();
                let ours = read.filter(|header| header.schema == chorus_proto::session::SESSION_SCHEMA);
                line.clear();
                source.read_until(b'\n', &mut line)?;
                // Indented by a formatter, it has a field on each line.
                let ours = ours.filter(|_| line != b"    {\n");
                return Ok(ours.map(|header| Self { source, ahead: Some(line), count: 0, said: header.message_count }));
            }
            header.extend_from_slice(&line);
        }
        Ok(None)
    }

    /// The next message; `None` at the end of a file that is whole.
    ///
    /// # Errors
    /// What is wrong with the file, or what the disk says.
    pub fn read(&mut self) -> io::Result<Result<Option<Stored>, FormatError>> {
        let line = match self.ahead.take() {
            Some(line) => line,
            None => {
                let mut line = Vec::new();
                self.source.read_until(b'\n', &mut line)?;
                line
            }
        };
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if line == CLOSE {
            let found = self.count as u64;
            return Ok(if found == self.said { Ok(None) } else { Err(FormatError::Count { said: self.said, found }) });
        }
        let json = line.strip_prefix(b"    ").map(|json| json.strip_suffix(b",").unwrap_or(json));
        let Some(json) = json else {
            return Ok(Err(FormatError::Json("it ends in the middle of its messages".into())));
        };
        self.count += 1;
        let message = Stored::parse(Bytes::copy_from_slice(json));
        Ok(message.map(Some).map_err(|e| FormatError::Message { number: self.count, reason: e.to_string() }))
    }
}

/// What a message says, without what an import gives it anew: ids and times.
#[derive(Deserialize, PartialEq)]
struct Says {
    content: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    params: Box<RawValue>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params.get() == other.params.get()
    }
}

#[derive(Deserialize, PartialEq)]
struct Attachment {
    name: String,
    #[serde(default)]
    size: Option<u64>,
}

/// Whether two messages say the same: role, text, calls, attachments. Their ids may differ.
#[must_use]
pub fn say_the_same(a: &Stored, b: &Stored) -> bool {
    let says = |message: &Stored| serde_json::from_slice::<Says>(message.json()).ok();
    let same = || says(a).is_some_and(|said| Some(said) == says(b));
    a.json() == b.json() || (a.role() == b.role() && a.chars() == b.chars() && same())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(json: &str) -> Stored {
        Stored::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    const ONE: &str = r#"{"id":"1","role":"user","content":"a","timestamp":"2026-02-12T09:00:00Z"}"#;

    fn read(text: &str) -> Option<Result<usize, FormatError>> {
        let mut lines = Lines::open(text.as_bytes()).unwrap()?;
        loop {
            match lines.read().unwrap() {
                Ok(Some(_)) => {}
                Ok(None) => return Some(Ok(lines.count)),
                Err(e) => return Some(Err(e)),
            }
        }
    }

    #[test]
    fn lines_are_read_to_the_end_and_what_is_missing_is_said() {
        let whole = format!(
            "{{\n  \"schema\": 2,\n  \"message_count\": 2,\n  \"messages\": [\n    {ONE},\n    {ONE}\n  ]\n}}\n"
        );
        assert_eq!(read(&whole), Some(Ok(2)));
        assert!(matches!(read(&whole[..whole.len() - 12]), Some(Err(_))), "cut off");
        assert!(matches!(
            read(&whole.replace("\"user\"", "\"robot\"")),
            Some(Err(FormatError::Message { number: 1, .. }))
        ));
        assert!(matches!(read(&whole.replace(": 2,\n  \"messages", ": 3,\n  \"messages")), Some(Err(_))), "too few");
        assert_eq!(read(&whole.replace("\"schema\": 2", "\"schema\": 1")), None);
        assert_eq!(read("{}"), None);
        assert_eq!(read(&whole.replace("{\"id\"", "{\n      \"id\"")), None, "a formatter's");
    }

    #[test]
    fn what_an_import_gives_anew_makes_no_difference() {
        let other = ONE.replace("\"1\"", "\"2\"").replace("09:00", "10:30");
        assert!(say_the_same(&stored(ONE), &stored(&other)));
        assert!(!say_the_same(&stored(ONE), &stored(&ONE.replace("user", "assistant"))));
        assert!(!say_the_same(&stored(ONE), &stored(&ONE.replace("\"a\"", "\"b\""))));
        let call = |id: &str, params: &str| {
            let calls = format!("\"tool_calls\":[{{\"id\":\"{id}\",\"name\":\"view\",\"params\":{params}}}]}}");
            stored(&ONE.replace("user", "assistant").replace('}', &format!(",{calls}")))
        };
        assert!(say_the_same(&call("c", "{}"), &call("d", "{}")));
        assert!(!say_the_same(&call("c", "[1]"), &call("c", "[2]")));
    }
}
