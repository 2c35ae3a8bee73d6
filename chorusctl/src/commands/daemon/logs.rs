//! `chorusctl daemon logs`: prints the daemon's log file.

use std::path::PathBuf;
use std::time::Duration;

use chorus_proto::error::exit;
use chorus_proto::methods::daemon::{Hello, HelloParams};

use super::tail::Tail;
use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};
use crate::ui::sanitize;

/// Number of existing lines that are printed.
const TAIL_LINES: usize = 100;
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show the daemon's log
///
/// Also works if no daemon is running.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("daemon logs")?;
    let path = resolve_home(app)?.join("log").join("chorusd.log");
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(exit::NOT_FOUND, format!("no log at {} yet", path.display()))
            .with_hint("start the daemon: chorusctl daemon start"),
        _ => Error::for_file(&path.display().to_string(), &error),
    };
    let (mut tail, last) = Tail::open(&path, TAIL_LINES).map_err(failed)?;
    print_lines(app, &last)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        app.stdout.flush()?;
        std::thread::sleep(POLL_INTERVAL);
        let more = tail
            .read_new_lines()
            .map_err(|error| Error::failed(format!("failed to read the log: {}", os_error_text(&error))))?;
        print_lines(app, &more)?;
    }
}

fn print_lines(app: &mut App, bytes: &[u8]) -> Result<(), Error> {
    app.stdout.text(&sanitize::multi_line(&String::from_utf8_lossy(bytes)))
}

/// Returns the home of the running daemon, or of the one that would be started.
fn resolve_home(app: &mut App) -> Result<PathBuf, Error> {
    let running = connect::connect_if_running(app.paths()?, &app.global).ok().flatten();
    if let Some(client) = running {
        app.set_client(client);
        if let Ok(hello) = app.call::<Hello>(&HelloParams::default()) {
            app.disconnect();
            return Ok(hello.home.into());
        }
        app.disconnect();
    }
    Ok(app.paths()?.home.clone())
}
