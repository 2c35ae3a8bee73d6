//! `chorusctl daemon install`: writes a systemd user unit.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chorus_proto::error::exit;

use super::unit;
use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};
use crate::ui::sanitize;

const UNIT_NAME: &str = "chorusd.service";

/// Environment variables that select the instance; their current values are written into the unit.
const INSTANCE_VARIABLES: [&str; 3] = ["CHORUS_HOME", "CHORUS_SOCKET", "CHORUS_CONFIG"];

/// Install a systemd user service
///
/// Writes chorusd.service to the systemd/user directory in $XDG_CONFIG_HOME or ~/.config, with the current values of CHORUS_HOME,
/// CHORUS_SOCKET and CHORUS_CONFIG if they are set. It does not enable the service, but prints the commands for that.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the unit instead of writing it
    #[arg(long)]
    print: bool,
}

pub fn run(Args { print }: Args, app: &mut App) -> Result<(), Error> {
    let program = resolve_program(connect::daemon_program())?;
    let socket = app.global.socket.as_deref().map(absolute).transpose()?;
    let mut environment = Vec::new();
    for name in INSTANCE_VARIABLES {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            environment.push((name, absolute(Path::new(&value))?.to_string_lossy().into_owned()));
        }
    }
    let unit = unit::render(&program, socket.as_deref(), &environment).map_err(Error::failed)?;
    if print {
        return app.stdout.text(&sanitize::multi_line(&unit));
    }
    let path = unit_directory()?.join(UNIT_NAME);
    let shown = path.display().to_string();
    match fs::read_to_string(&path) {
        Ok(there) if !there.starts_with(unit::HEADER) => {
            return Err(Error::new(exit::CONFLICT, format!("{shown} exists and was not written by chorusctl"))
                .with_hint("move it away; to customize the unit, use: systemctl --user edit chorusd"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::for_file(&shown, &error)),
        _ => {}
    }
    write_atomically(&path, &unit)
        .map_err(|error| Error::failed(format!("failed to write {shown}: {}", os_error_text(&error))))?;
    app.stdout.status_line(&format!("wrote {}", sanitize::one_line(&shown)))?;
    app.stdout.status_line("enable it with:")?;
    app.stdout.status_line("  chorusctl daemon stop                       (if one is running)")?;
    app.stdout.status_line("  systemctl --user daemon-reload")?;
    app.stdout.status_line("  systemctl --user enable --now chorusd")?;
    app.stdout.status_line("  loginctl enable-linger                      (to keep it running after you log out)")
}

/// Returns the directory of user units.
fn unit_directory() -> Result<PathBuf, Error> {
    // Relative paths are invalid here (XDG Base Directory Specification).
    let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = given.or_else(|| Some(std::env::home_dir()?.join(".config")));
    let config = config.ok_or_else(|| Error::usage("no home directory: set HOME"))?;
    Ok(config.join("systemd/user"))
}

/// Returns the absolute path of the program. A service manager does not search the user's PATH.
fn resolve_program(program: PathBuf) -> Result<PathBuf, Error> {
    if program.components().count() > 1 {
        return absolute(&program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(&program)).find(|file| file.is_file());
    let found = found.ok_or_else(|| {
        Error::new(exit::NOT_FOUND, format!("{} not found", program.display()))
            .with_hint("install chorusd next to chorusctl or in PATH, or set CHORUSD")
    })?;
    absolute(&found)
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::failed(os_error_text(&error)))
}

/// Writes the unit atomically: readers see the old or the new content.
fn write_atomically(path: &Path, unit: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut new = tempfile::NamedTempFile::new_in(dir)?;
    new.write_all(unit.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}
