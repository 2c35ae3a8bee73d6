//! Converts a transcript of another program (Claude Code, Codex, ChatGPT, …) to Markdown on standard output:
//!
//! ```text
//! cargo run -p chorus-session --example convert_transcript -- ~/.claude/projects/x/y.jsonl
//! ```

use std::fs::File;
use std::io::{self, BufReader, Write as _};

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: convert_transcript FILE")?;
    let mut source = BufReader::new(File::open(path)?);
    let mut sink = MarkdownSink { out: io::stdout().lock(), skipped: 0 };
    // Some transcripts have no ids; these count up.
    let mut last_id = 0;
    let mut new_id = || {
        last_id += 1;
        format!("m{last_id}")
    };
    import(&mut source, ImportFormat::Auto, Timestamp::now(), &mut new_id, &mut sink)?;
    if sink.skipped > 0 {
        writeln!(io::stderr(), "{} entries were not understood", sink.skipped)?;
    }
    Ok(())
}
