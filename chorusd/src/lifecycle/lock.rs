//! One daemon a home, by a lock that the system gives back when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chorus_proto::ErrorKind;

use crate::failure::{Failure, Result};

/// Held while it lives.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

impl InstanceLock {
    /// Takes the lock of `home`.
    ///
    /// # Errors
    /// `already_exists` where another daemon has it.
    pub fn take(home: &Path) -> Result<Self> {
        let path = home.join("run/chorusd.lock");
        let failed = |e: &std::io::Error| Failure::io(format_args!("cannot lock {}", path.display()), e);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| failed(&e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                let pid = pid.trim();
                let who = if pid.is_empty() { String::new() } else { format!(" (pid {pid})") };
                return Err(Failure::new(
                    ErrorKind::AlreadyExists,
                    format!("a daemon{who} is running for {} already", home.display()),
                )
                .hint("use it, or stop it with `chorusctl daemon stop`"));
            }
            Err(TryLockError::Error(e)) => return Err(failed(&e)),
        }
        // The pid is for people; the lock is what counts.
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        noted.map_err(|e| failed(&e))?;
        Ok(Self { _file: file })
    }
}
