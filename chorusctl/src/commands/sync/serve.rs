//! The other end of a sync: standard input and output are a connection to the daemon.

use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use super::remote::GREETING;
use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};

/// Connects, starting the daemon if necessary, and passes everything on until either side closes.
pub(super) fn run(app: &App) -> Result<(), Error> {
    let client = connect::connect(app.paths()?, &app.global)?;
    let mut from_daemon = UnixStream::from(client.into_connection());
    let failed = |error: io::Error| Error::failed(format!("failed to pass messages on: {}", os_error_text(&error)));
    let mut to_daemon = from_daemon.try_clone().map_err(failed)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(GREETING).and_then(|()| stdout.flush()).map_err(failed)?;
    thread::spawn(move || {
        // At the end of the input, answers that are still due are passed on.
        let _ = io::copy(&mut io::stdin().lock(), &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let mut buffer = [0; 64 * 1024];
    loop {
        match io::Read::read(&mut from_daemon, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => stdout.write_all(&buffer[..length]).and_then(|()| stdout.flush()).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
