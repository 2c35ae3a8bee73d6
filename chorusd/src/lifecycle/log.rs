//! The log: `log/chorusd.log`, turned over by size, and standard error in the foreground.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use crate::failure::{Failure, Result};
use crate::redact::Redactor;

/// A log file of this size becomes `chorusd.log.1`.
const TURN_OVER: u64 = 8 << 20;

/// Where log lines go.
#[derive(Debug, Clone)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    size: u64,
    echo: bool,
    redactor: Arc<Redactor>,
}

/// Sets logging up for the process; lines are without what `redactor` finds. `echo`: they go to standard error, too.
///
/// # Errors
/// A log file that cannot be opened.
pub fn start(home: &Path, level: tracing::Level, echo: bool, redactor: Arc<Redactor>) -> Result<Log> {
    let path = home.join("log/chorusd.log");
    let (file, size) = open(&path).map_err(|e| Failure::io(format_args!("cannot open {}", path.display()), &e))?;
    let log = Log(Arc::new(Mutex::new(Inner { path, file, size, echo, redactor })));
    // A second daemon in one process, as tests have it, keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .with_writer(log.clone())
        .try_init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(log)
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

impl Log {
    /// The file, for what is printed past the log.
    ///
    /// # Errors
    /// What the system says.
    pub fn file(&self) -> io::Result<File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.try_clone()
    }
}

/// One line on its way.
#[derive(Debug)]
pub struct Line<'a>(&'a Log);

impl io::Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let redactor = inner.redactor.clone();
        let clean = redactor.line(line);
        if inner.echo {
            let _ = io::Write::write_all(&mut io::stderr(), &clean);
        }
        if inner.size > TURN_OVER {
            let _ = std::fs::rename(&inner.path, inner.path.with_extension("log.1"));
            (inner.file, inner.size) = open(&inner.path)?;
        }
        inner.file.write_all(&clean)?;
        inner.size += clean.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}
