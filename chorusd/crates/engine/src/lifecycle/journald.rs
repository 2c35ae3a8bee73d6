//! Log lines for journald: with their level and their fields, so that `journalctl CHORUS_AGENT=api` finds those of one agent.

use std::borrow::Cow;
use std::fmt::{Debug, Write as _};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use chorus_redact::Redactor;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The socket of the native protocol, a datagram for each entry (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL>).
const SOCKET: &str = "/run/systemd/journal/socket";

/// The longest name of a field that journald takes.
const MAX_NAME: usize = 64;

/// Sends log lines to journald instead of standard error.
#[derive(Debug)]
pub(super) struct JournaldLayer {
    socket: UnixDatagram,
    redactor: Arc<Redactor>,
}

impl JournaldLayer {
    /// Returns one if standard error goes to journald, which `$JOURNAL_STREAM` states (systemd.exec(5)).
    pub(super) fn connect(redactor: Arc<Redactor>) -> Option<Self> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let (device, inode) = stream.split_once(':')?;
        let stderr = std::fs::File::from(io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        // The variable is inherited; a process of ours may have been started with another standard error.
        if (device.parse(), inode.parse()) != (Ok(stderr.dev()), Ok(stderr.ino())) {
            return None;
        }
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(SOCKET).ok()?;
        // A journald that does not read must not block the daemon.
        socket.set_nonblocking(true).ok()?;
        Some(Self { socket, redactor })
    }
}

impl<S: Subscriber> Layer<S> for JournaldLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let priority = priority(metadata.level());
        let entry = line.encode(priority, (metadata.file(), metadata.line()), &self.redactor);
        if self.socket.send(&entry).is_err() {
            // Too long, or journald restarts. The prefix is the level (sd-daemon(3)); journald reads the stream when it can.
            let text = line.text();
            let text = self.redactor.redact_bytes(text.as_bytes());
            let text = String::from_utf8_lossy(&text).replace('\n', "\\n");
            let _ = writeln!(io::stderr(), "<{priority}>{text}");
        }
    }
}

/// Returns the level as syslog has it.
fn priority(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// The parts of a log line.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.push(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value.to_owned());
    }
}

impl Line {
    fn push(&mut self, name: &'static str, value: String) {
        if name == "message" {
            self.message = value;
        } else {
            self.fields.push((name, value));
        }
    }

    /// Returns the line as the log file has it, without time and level.
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let separator = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{separator}{name}={value}");
        }
        text
    }

    /// Returns the entry in journald's format.
    fn encode(&self, priority: u8, (file, line): (Option<&str>, Option<u32>), redactor: &Redactor) -> Vec<u8> {
        let mut entry = Vec::with_capacity(512);
        push_field(&mut entry, "MESSAGE", &redactor.redact_bytes(self.text().as_bytes()));
        push_field(&mut entry, "PRIORITY", priority.to_string().as_bytes());
        push_field(&mut entry, "SYSLOG_IDENTIFIER", b"chorusd");
        if let (Some(file), Some(line)) = (file, line) {
            push_field(&mut entry, "CODE_FILE", file.as_bytes());
            push_field(&mut entry, "CODE_LINE", line.to_string().as_bytes());
        }
        for (name, value) in &self.fields {
            // A name may be what tells that the value is a secret.
            let start = format!("{name}=");
            let both = format!("{start}{value}");
            let clean = redactor.redact_bytes(both.as_bytes());
            let value: Cow<'_, [u8]> = match clean.strip_prefix(start.as_bytes()) {
                Some(value) => value.into(),
                None => clean,
            };
            push_field(&mut entry, &field_name(name), &value);
        }
        entry
    }
}

/// Returns a name as journald takes it: `CHORUS_` and capitals, digits and underscores.
fn field_name(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    "CHORUS_".chars().chain(letters).take(MAX_NAME).collect()
}

/// Appends a field: a value of several lines has its length before it.
fn push_field(entry: &mut Vec<u8>, name: &str, value: &[u8]) {
    entry.extend(name.as_bytes());
    if value.contains(&b'\n') {
        entry.push(b'\n');
        entry.extend((value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend(value);
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(|| [7; 32])
    }

    fn encode(message: &str, fields: &[(&'static str, &str)], redactor: &Redactor) -> String {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let line = Line { message: message.to_owned(), fields };
        String::from_utf8_lossy(&line.encode(4, (Some("a.rs"), Some(7)), redactor)).into_owned()
    }

    #[test]
    fn a_line_has_its_fields() {
        let entry = encode("cannot save", &[("agent", "api"), ("disk.free", "0")], &redactor());
        let due = "MESSAGE=cannot save agent=api disk.free=0\nPRIORITY=4\nSYSLOG_IDENTIFIER=chorusd\nCODE_FILE=a.rs\nCODE_LINE=7\n\
                   CHORUS_AGENT=api\nCHORUS_DISK_FREE=0\n";
        assert_eq!(entry, due);
    }

    #[test]
    fn values_of_several_lines_make_no_fields() {
        let entry = encode("failed", &[("failure", "one\nPRIORITY=0")], &redactor());
        assert!(entry.contains("\nCHORUS_FAILURE\n\u{e}\0\0\0\0\0\0\0one\nPRIORITY=0\n"), "{entry:?}");
        assert!(entry.starts_with("MESSAGE\n"), "{entry:?}");
    }

    #[test]
    fn secrets_are_replaced_in_the_text_and_in_the_fields() {
        let key = concat!("sk-ant-", "api03-0123456789abcdefghijABCDEFGHIJ0123456789");
        let entry = encode(&format!("refused {key}"), &[("key", key)], &redactor());
        assert!(!entry.contains("0123456789abcdef"), "{entry}");
        assert!(entry.contains("\nCHORUS_KEY="), "{entry}");
    }
}
