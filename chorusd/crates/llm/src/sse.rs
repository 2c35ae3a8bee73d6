//! Parser of event streams (`text/event-stream`). Chunks of the stream may end anywhere, even inside a character.

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty if the stream does not name the event.
    pub name: String,
    /// The `data` lines, joined by newlines.
    pub data: String,
}

/// An event is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub struct EventTooLong(pub usize);

/// Incremental parser.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    bytes: Vec<u8>,
    /// Start of the first line that is not parsed yet.
    start: usize,
    /// The bytes before this offset have no line end.
    searched: usize,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    /// Whether nothing was parsed yet, so that a byte order mark may follow.
    first: bool,
    event: Event,
    has_data: bool,
}

impl SseParser {
    /// Creates a parser for events of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            first: true,
            event: Event::default(),
            has_data: false,
        }
    }

    /// Appends a chunk of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next complete event, if there is one.
    ///
    /// # Errors
    /// [`EventTooLong`]; the stream is unusable after that.
    pub fn next_event(&mut self) -> Result<Option<Event>, EventTooLong> {
        while let Some(end) = self.find_line_end() {
            let (from, looked) = (self.start, end + 1);
            self.after_cr = self.bytes[end] == b'\r';
            (self.start, self.searched) = (looked, looked);
            if from == end {
                if let Some(event) = self.take_event() {
                    return Ok(Some(event));
                }
            } else {
                self.parse_line(from, end)?;
            }
        }
        if self.bytes.len() - self.start + self.event.data.len() > self.limit {
            return Err(EventTooLong(self.limit));
        }
        Ok(None)
    }

    /// Returns the last event at the end of the stream, because some servers omit the final empty line.
    #[must_use]
    pub fn finish(mut self) -> Option<Event> {
        let (from, end) = (self.start, self.bytes.len());
        if from < end {
            self.parse_line(from, end).ok()?;
        }
        self.take_event()
    }

    /// Offset of the end of the line that begins at `start`.
    fn find_line_end(&mut self) -> Option<usize> {
        if self.after_cr && self.bytes.get(self.start) == Some(&b'\n') {
            self.start += 1;
            self.searched = self.searched.max(self.start);
            self.after_cr = false;
        }
        let found = memchr::memchr2(b'\n', b'\r', &self.bytes[self.searched..]);
        match found {
            Some(at) => Some(self.searched + at),
            None => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }

    fn parse_line(&mut self, from: usize, end: usize) -> Result<(), EventTooLong> {
        let mut line = &self.bytes[from..end];
        if std::mem::take(&mut self.first) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.event.data.len() + value.len() > self.limit {
                    return Err(EventTooLong(self.limit));
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            // Comments have an empty field name; `id` and `retry` are for browsers.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `bytes` in chunks of `step` bytes.
    fn cut(bytes: &[u8], step: usize) -> Vec<(String, String)> {
        let mut cutter = SseParser::new(1 << 20);
        let mut found = Vec::new();
        for piece in bytes.chunks(step) {
            cutter.push(piece);
            while let Some(event) = cutter.next_event().unwrap() {
                found.push((event.name, event.data));
            }
        }
        found.extend(cutter.finish().map(|event| (event.name, event.data)));
        found
    }

    #[test]
    fn events_come_out_the_same_however_the_bytes_arrive() {
        let stream = "\u{feff}event: a\ndata: gr\u{fc}n \u{1f389}\n\n: comment\r\ndata:1\r\ndata: 2\r\n\r\nid: 7\rdata\r\
                      \r\n\nevent: lost\n\ndata: {\"x\": \"a: b\"}\n\ndata: last";
        let due: Vec<(String, String)> =
            [("a", "gr\u{fc}n \u{1f389}"), ("", "1\n2"), ("", ""), ("", "{\"x\": \"a: b\"}"), ("", "last")]
                .map(|(name, data)| (name.to_owned(), data.to_owned()))
                .into();
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(cut(stream.as_bytes(), step), due, "in pieces of {step}");
        }
    }

    #[test]
    fn what_is_no_utf8_is_replaced() {
        assert_eq!(cut(b"data: a\xffb\n\n", 1), [(String::new(), "a\u{fffd}b".to_owned())]);
    }

    #[test]
    fn an_event_may_be_long_but_not_endless() {
        let mut cutter = SseParser::new(100);
        cutter.push(format!("data: {}\n\n", "x".repeat(90)).as_bytes());
        assert_eq!(cutter.next_event().unwrap().unwrap().data.len(), 90);
        cutter.push("y".repeat(101).as_bytes());
        assert_eq!(cutter.next_event(), Err(EventTooLong(100)));
        let mut cutter = SseParser::new(100);
        for _ in 0..3 {
            cutter.push(format!("data: {}\n", "z".repeat(40)).as_bytes());
        }
        assert_eq!(cutter.next_event(), Err(EventTooLong(100)));
    }

    #[test]
    fn ten_megabytes_take_no_time() {
        let mut cutter = SseParser::new(16 << 20);
        let piece = vec![b'x'; 16 << 10];
        cutter.push(b"data: ");
        for _ in 0..640 {
            cutter.push(&piece);
            assert_eq!(cutter.next_event(), Ok(None));
        }
        cutter.push(b"\n\n");
        assert_eq!(cutter.next_event().unwrap().unwrap().data.len(), 10 << 20);
    }
}
