//! Converts a transcript of another program (Claude Code, Codex, ChatGPT, …) to Markdown on standard output:
//!
//! ```text
//! cargo run -p chorus-session --example convert_transcript -- ~/.claude/projects/x/y.jsonl
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write as _};

use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Message, Role};
use chorus_session::import::{ImportSink, ImportedMetadata, import};
use jiff::Timestamp;

/// Writes each message as it comes; no transcript is held in memory.
struct MarkdownSink<W> {
    out: W,
    skipped: u64,
}

impl<W: io::Write> ImportSink for MarkdownSink<W> {
    fn begin_session(&mut self) -> io::Result<()> {
        writeln!(self.out, "# Conversation\n")
    }

    fn add_message(&mut self, message: &Message, _json: &[u8]) -> io::Result<()> {
        let who = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::System => "System",
            Role::ToolResult => "Tool result",
        };
        writeln!(self.out, "## {who}, {}\n\n{}\n", message.timestamp, message.content)
    }

    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        if let Some(model) = about.model {
            writeln!(self.out, "Model: {model}\n")?;
        }
        Ok(())
    }

    fn report_skipped(&mut self, _line: u64, _reason: String) {
        self.skipped += 1;
    }
}

/// Converts a transcript. Returns how many entries were not understood.
fn convert(source: &mut (impl BufRead + Seek), out: impl io::Write) -> Result<u64, Box<dyn std::error::Error>> {
    let mut sink = MarkdownSink { out, skipped: 0 };
    // Some transcripts have no ids; these count up.
    let mut last_id = 0;
    let mut new_id = || {
        last_id += 1;
        format!("m{last_id}")
    };
    import(source, ImportFormat::Auto, Timestamp::now(), &mut new_id, &mut sink)?;
    Ok(sink.skipped)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: convert_transcript FILE")?;
    let skipped = convert(&mut BufReader::new(File::open(path)?), io::stdout().lock())?;
    if skipped > 0 {
        writeln!(io::stderr(), "{skipped} entries were not understood")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::convert;

    #[test]
    fn a_transcript_becomes_markdown() {
        let transcript = include_bytes!("../../../../tests/fixtures/transcripts/goose.jsonl");
        let mut output = Vec::new();
        assert_eq!(convert(&mut Cursor::new(transcript), &mut output).unwrap(), 0);
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<_> = output.lines().filter(|line| !line.is_empty()).collect();
        let expected = [
            "# Conversation",
            "## User, 2026-01-01T00:00:00Z",
            "How many cups are in cups.txt?",
            "## Assistant, 2026-01-01T00:00:01Z",
            "Let me count.",
            "## Tool result, 2026-01-01T00:00:02Z",
            "12 cups.txt",
            "## Assistant, 2026-01-01T00:00:03Z",
            "Twelve.",
        ];
        assert_eq!(lines, expected);
    }
}
