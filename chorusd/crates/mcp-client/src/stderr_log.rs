//! The standard error of a server: written to the log, within bounds.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

/// Limit on the bytes of a line.
const MAX_LINE_BYTES: usize = 500;
/// Limit on the lines that are logged in a period; the rest is counted.
const MAX_LINES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// The last line that a server wrote, which usually says why it ended.
pub(crate) type LastLine = Arc<Mutex<String>>;

/// Logs what a server writes until it closes its standard error.
pub(crate) async fn run(server: String, mut errors: impl AsyncRead + Unpin, last: LastLine) {
    let (mut buffer, mut lines) = (vec![0; READ_BUFFER_BYTES], LineLog::new(server, last));
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        lines.push(&buffer[..count]);
    }
    lines.finish();
}

struct LineLog {
    server: String,
    last: LastLine,
    line: Vec<u8>,
    began: Instant,
    /// Lines in this period.
    count: u32,
}

impl LineLog {
    fn new(server: String, last: LastLine) -> Self {
        Self { server, last, line: Vec::new(), began: Instant::now(), count: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend(piece.iter().take(room).filter(|byte| **byte != b'\n'));
            if piece.ends_with(b"\n") {
                self.finish_line();
            }
        }
    }

    fn finish(&mut self) {
        self.finish_line();
        self.report_omitted();
    }

    fn finish_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.trim().to_owned();
        self.line.clear();
        if text.is_empty() {
            return;
        }
        if self.began.elapsed() >= PERIOD {
            self.report_omitted();
            (self.began, self.count) = (Instant::now(), 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count <= MAX_LINES {
            tracing::info!(server = %self.server, "MCP server: {text}");
        }
        *self.last.lock() = text;
    }

    fn report_omitted(&self) {
        if let Some(omitted @ 1..) = self.count.checked_sub(MAX_LINES) {
            tracing::info!(server = %self.server, omitted, "further lines of the MCP server are not logged");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_the_last_one_is_known() {
        let last = LastLine::default();
        let text = format!("one\n{}\n\n\u{1b}[31mlast {}", "x".repeat(100_000), "é".repeat(400));
        run("s".into(), text.as_bytes(), last.clone()).await;
        let last = last.lock().clone();
        assert!(last.starts_with("[31mlast é") && last.len() <= MAX_LINE_BYTES + 2, "{last}");
    }
}
