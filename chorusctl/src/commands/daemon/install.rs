//! `chorusctl daemon install`: writes units for the service manager of the user.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chorus_proto::error::exit;

use super::units::{self, Instance};
use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};
use crate::ui::sanitize;

/// Environment variables that select the instance; their current values are written into the unit.
const INSTANCE_VARIABLES: [&str; 3] = ["CHORUS_HOME", "CHORUS_SOCKET", "CHORUS_CONFIG"];

/// Install a user service (systemd; on macOS launchd)
///
/// Writes chorusd.service to the systemd/user directory in $XDG_CONFIG_HOME or ~/.config, with the current values of CHORUS_HOME,
/// CHORUS_SOCKET and CHORUS_CONFIG if they are set. It does not enable the service, but prints the commands for that.
///
/// On macOS it writes ~/Library/LaunchAgents/chorusd.plist.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the units instead of writing them
    #[arg(long)]
    print: bool,
    /// Also write chorusd.socket: the first connection starts the daemon
    #[arg(long)]
    socket_activation: bool,
    /// Also write a timer that exports all saved conversations each night
    #[arg(long, value_name = "DIR")]
    nightly_export: Option<PathBuf>,
    /// Write a property list for launchd, the default on macOS
    #[arg(long, conflicts_with_all = ["socket_activation", "nightly_export"])]
    launchd: bool,
}

/// A file to be written, with its content.
struct UnitFile {
    path: PathBuf,
    content: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("daemon install")?;
    let program = resolve_program(connect::daemon_program())?;
    let client = std::env::current_exe().map_err(|error| Error::failed(os_error_text(&error)))?;
    let socket = app.global.socket.as_deref().map(absolute).transpose()?;
    let mut environment = Vec::new();
    for name in INSTANCE_VARIABLES {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            environment.push((name, absolute(Path::new(&value))?.to_string_lossy().into_owned()));
        }
    }
    let instance = Instance { daemon: &program, client: &client, socket: socket.as_deref(), environment: &environment };
    let is_launchd = args.launchd || cfg!(target_os = "macos");
    let files = if is_launchd { launchd_files(&instance)? } else { systemd_files(&args, &instance, app)? };
    if args.print {
        for (at, file) in files.iter().enumerate() {
            if files.len() > 1 {
                let blank = if at == 0 { "" } else { "\n" };
                let path = file.path.display().to_string();
                app.stdout.text(&format!("{blank}# {}\n", sanitize::one_line(&path)))?;
            }
            app.stdout.text(&sanitize::multi_line(&file.content))?;
        }
        return Ok(());
    }
    for file in &files {
        refuse_foreign(&file.path)?;
    }
    for file in &files {
        let shown = file.path.display().to_string();
        write_atomically(&file.path, &file.content)
            .map_err(|error| Error::failed(format!("failed to write {shown}: {}", os_error_text(&error))))?;
        app.stdout.status_line(&format!("wrote {}", sanitize::one_line(&shown)))?;
    }
    if is_launchd {
        app.stdout.status_line("enable it with:")?;
        app.stdout.status_line("  chorusctl daemon stop                       (if one is running)")?;
        return app.stdout.status_line("  launchctl load -w ~/Library/LaunchAgents/chorusd.plist");
    }
    let mut enabled = vec![if args.socket_activation { units::SOCKET_UNIT_NAME } else { "chorusd" }];
    enabled.extend(args.nightly_export.is_some().then_some(units::EXPORT_TIMER_NAME));
    app.stdout.status_line("enable it with:")?;
    app.stdout.status_line("  chorusctl daemon stop                       (if one is running)")?;
    app.stdout.status_line("  systemctl --user daemon-reload")?;
    app.stdout.status_line(&format!("  systemctl --user enable --now {}", enabled.join(" ")))?;
    app.stdout.status_line("  loginctl enable-linger                      (to keep it running after you log out)")
}

fn systemd_files(args: &Args, instance: &Instance<'_>, app: &App) -> Result<Vec<UnitFile>, Error> {
    let directory = unit_directory()?;
    let file = |name: &str, content: Result<String, String>| {
        Ok::<_, Error>(UnitFile { path: directory.join(name), content: content.map_err(Error::failed)? })
    };
    let mut files = vec![file(units::SERVICE_NAME, units::render_service(instance))?];
    if args.socket_activation {
        let socket = absolute(&app.paths()?.socket)?;
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|dir| chorus_proto::paths::is_runtime_dir(dir));
        files.push(file(units::SOCKET_UNIT_NAME, units::render_socket(&socket, runtime.as_deref()))?);
    }
    if let Some(target) = &args.nightly_export {
        files.push(file(units::EXPORT_SERVICE_NAME, units::render_export_service(instance, &absolute(target)?))?);
        files.push(file(units::EXPORT_TIMER_NAME, Ok(units::render_export_timer()))?);
    }
    Ok(files)
}

fn launchd_files(instance: &Instance<'_>) -> Result<Vec<UnitFile>, Error> {
    let home = std::env::home_dir().ok_or_else(|| Error::usage("no home directory: set HOME"))?;
    let content = units::render_plist(instance).map_err(Error::failed)?;
    Ok(vec![UnitFile { path: home.join("Library/LaunchAgents").join(units::PLIST_NAME), content }])
}

/// Refuses to replace a file that the user wrote.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let shown = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(content) if !content.lines().take(3).any(|line| line.contains(units::HEADER.trim_start_matches("# "))) => {
            Err(Error::new(exit::CONFLICT, format!("{shown} exists and was not written by chorusctl"))
                .with_hint("move it away; to customize a unit, use: systemctl --user edit chorusd"))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::for_file(&shown, &error)),
        _ => Ok(()),
    }
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

/// Writes the file atomically: readers see the old or the new content.
fn write_atomically(path: &Path, content: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut new = tempfile::NamedTempFile::new_in(dir)?;
    new.write_all(content.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}
