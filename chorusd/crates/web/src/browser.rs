//! Opens the user's browser.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use chorus_base::private_fs::{create_private, write_private};
use maud::{DOCTYPE, html};

use crate::app::App;

/// How opening the browser went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Started,
    /// There is none here, or it would open on another machine than the user's.
    NoBrowser,
    Failed,
}

/// Returns true if the user works over ssh.
pub(crate) fn is_remote() -> bool {
    is_set("SSH_CONNECTION")
}

/// Returns the name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Opens `link` in the browser. Everybody on the machine can read the arguments of a program: the browser gets the name of a private
/// file that leads it to the link.
pub(crate) fn open(app: &App, link: &str) -> Opening {
    let Some(program) = browser_program() else { return Opening::NoBrowser };
    let Ok(file) = write_file(app, link) else { return Opening::Failed };
    app.login.remember_file(file.clone());
    let mut command = Command::new(program);
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // It may run as long as the browser.
            drop(chorus_runtime::spawn_blocking(move || child.wait()));
            Opening::Started
        }
        Err(_) => {
            app.login.forget_file();
            Opening::Failed
        }
    }
}

/// Returns the program that opens files; `None` without a display, or over ssh.
fn browser_program() -> Option<OsString> {
    if let Some(named) = std::env::var_os("BROWSER").filter(|named| !named.is_empty()) {
        // A list like a path; the first one counts.
        return std::env::split_paths(&named).next().map(PathBuf::into_os_string);
    }
    if is_remote() {
        return None;
    }
    if cfg!(target_os = "macos") {
        return Some("open".into());
    }
    (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")).then(|| "xdg-open".into())
}

/// Writes the file, with mode 0600, into the directory of the daemon's socket in the home.
fn write_file(app: &App, link: &str) -> std::io::Result<PathBuf> {
    let dir = app.places.home.join("run");
    create_private(&dir)?;
    let file = fs::canonicalize(dir)?.join(format!("web-{}.html", app.port));
    let page = html! {
        (DOCTYPE)
        meta charset="utf-8";
        meta http-equiv="refresh" content=(format!("0;url={link}"));
        title { "Chorus" }
        p { a href=(link) { "Chorus" } }
    };
    write_private(&file, page.into_string().as_bytes())?;
    Ok(file)
}
