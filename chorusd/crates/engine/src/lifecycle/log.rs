//! The log: `log/chorusd.log`, rotated by size, and standard error or journald in the foreground.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_redact::Redactor;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::journald::JournaldLayer;

/// A log file of this size in bytes is renamed to `chorusd.log.1`.
const ROTATE_AT_BYTES: u64 = 8 << 20;

/// The target of log lines.
#[derive(Debug, Clone)]
pub struct LogWriter(Arc<Mutex<LogState>>);

#[derive(Debug)]
struct LogState {
    path: PathBuf,
    file: File,
    size: u64,
    echo: bool,
    redactor: Arc<Redactor>,
}

/// Sets up logging for the process. Secrets that `redactor` finds are replaced in every line. With `echo`, lines also
/// go to standard error, or with their fields to journald if that is what standard error is. Fails if the log file cannot be opened.
pub fn start(home: &Path, level: Level, echo: bool, redactor: Arc<Redactor>) -> Result<LogWriter> {
    let path = home.join("log/chorusd.log");
    let (file, size) =
        open_log_file(&path).map_err(|e| Error::io(format_args!("cannot open {}", path.display()), &e))?;
    let journald = if echo { JournaldLayer::connect(redactor.clone()) } else { None };
    let echo = echo && journald.is_none();
    let log = LogWriter(Arc::new(Mutex::new(LogState { path, file, size, echo, redactor })));
    // A second daemon in one process, as tests have it, keeps the log of the first one.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        // It would report a failed write to standard error, and panic if that is on the same full disk.
        .log_internal_errors(false)
        .with_writer(log.clone())
        .finish()
        .with(filter_fn(move |line| level > Level::INFO || !is_debug_output(line)))
        .with(journald)
        .try_init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(log)
}

/// Returns true for lines at INFO that describe the inside of a library.
fn is_debug_output(line: &Metadata<'_>) -> bool {
    *line.level() == Level::INFO && line.target().starts_with("rmcp")
}

fn open_log_file(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

impl LogWriter {
    /// Returns the log file, for output that does not go through the logger.
    pub fn file(&self) -> io::Result<File> {
        self.0.lock().file.try_clone()
    }
}

/// The writer of one log line.
#[derive(Debug)]
pub struct LineWriter<'a>(&'a LogWriter);

impl io::Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.0.lock();
        let redactor = inner.redactor.clone();
        let clean = redactor.redact_bytes(line);
        if inner.echo {
            let _ = io::Write::write_all(&mut io::stderr(), &clean);
        }
        if inner.size > ROTATE_AT_BYTES {
            let _ = std::fs::rename(&inner.path, inner.path.with_extension("log.1"));
            (inner.file, inner.size) = open_log_file(&inner.path)?;
        }
        inner.file.write_all(&clean)?;
        inner.size += clean.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(self)
    }
}
