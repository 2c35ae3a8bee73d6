//! `chorusctl daemon logs`.

use std::path::PathBuf;
use std::time::Duration;

use chorus_proto::error::exit;
use chorus_proto::methods::daemon::{Hello, HelloParams};

use super::tail::Tail;
use crate::app::App;
use crate::connect;
use crate::error::{Failure, plain};
use crate::ui::safe;

/// Lines shown of what is there already.
const LINES: usize = 100;
const LOOK: Duration = Duration::from_millis(200);

/// Show what the daemon logged
///
/// Works without a daemon, too.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what comes
    #[arg(long, short)]
    follow: bool,
}

/// Shows the log.
///
/// # Errors
/// Why there is none.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let path = home(app)?.join("log").join("chorusd.log");
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(exit::NOT_FOUND, format!("no log at {} yet", path.display()))
            .hint("the daemon writes it: chorusctl daemon start"),
        _ => Failure::file(&path.display().to_string(), &error),
    };
    let (mut tail, last) = Tail::open(&path, LINES).map_err(failed)?;
    write(app, &last)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        app.out.flush()?;
        std::thread::sleep(LOOK);
        let more =
            tail.more().map_err(|error| Failure::failed(format!("failed to read the log: {}", plain(&error))))?;
        write(app, &more)?;
    }
}

fn write(app: &mut App, bytes: &[u8]) -> Result<(), Failure> {
    app.out.text(&safe::clean(&String::from_utf8_lossy(bytes)))
}

/// The home of the daemon that runs, else of the one that would.
fn home(app: &mut App) -> Result<PathBuf, Failure> {
    let running = connect::reach(app.places()?, &app.global).ok().flatten();
    if let Some(client) = running {
        app.connected(client);
        if let Ok(hello) = app.call::<Hello>(&HelloParams::default()) {
            app.disconnect();
            return Ok(hello.home.into());
        }
        app.disconnect();
    }
    Ok(app.places()?.home.clone())
}
