//! `chorusctl daemon dial-stdio`: standard input and output become a connection to the daemon. `--host` and `sync` run it on the other
//! machine.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};

/// The first line that it writes. The other end skips what comes before it, for example from a login script.
const GREETING: &[u8] = b"chorusctl daemon dial-stdio\n";

/// Connect standard input and output to the daemon
///
/// The other end of `chorusctl --host`. After a line with its name, it passes on what the daemon and its client say, as it is.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.use_this_machine("daemon dial-stdio")?;
    dial(app, GREETING)
}

/// Connects, starting the daemon if necessary, writes the greeting, and passes everything on until either side closes.
pub(crate) fn dial(app: &App, greeting: &[u8]) -> Result<(), Error> {
    let client = connect::connect(app.paths()?, &app.global)?;
    // A connection may be silent for hours.
    client.set_timeout(None).map_err(|error| Error::failed(os_error_text(&error)))?;
    let mut from_daemon = UnixStream::from(client.into_connection());
    let failed = |error: io::Error| Error::failed(format!("failed to pass messages on: {}", os_error_text(&error)));
    let mut to_daemon = from_daemon.try_clone().map_err(failed)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(greeting).and_then(|()| stdout.flush()).map_err(failed)?;
    thread::spawn(move || {
        // At the end of the input, answers that are still due are passed on.
        let _ = io::copy(&mut io::stdin().lock(), &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let mut buffer = [0; 64 * 1024];
    loop {
        match from_daemon.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => stdout.write_all(&buffer[..length]).and_then(|()| stdout.flush()).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
