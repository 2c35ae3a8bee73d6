//! Paths of an instance of Chorus. `chorusd` and `chorusctl` must agree on them, so they are resolved here.
//!
//! If `CHORUS_HOME` is set, the whole instance is isolated: its socket and configuration are inside the home. An empty
//! variable counts as unset.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Socket path relative to the home: for an isolated instance, and for a daemon that cannot listen on its usual socket.
pub const HOME_SOCKET: &str = "run/chorusd.sock";

/// The paths of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancePaths {
    pub home: PathBuf,
    pub socket: PathBuf,
    pub config: PathBuf,
    /// True if `--socket` or `CHORUS_SOCKET` names the socket.
    pub socket_is_explicit: bool,
}

/// Error: neither `CHORUS_HOME` nor a home directory of the user is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoHomeError;

impl std::fmt::Display for NoHomeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no home directory: set CHORUS_HOME")
    }
}

impl std::error::Error for NoHomeError {}

/// Resolves the paths. `env` looks up a variable, `home_dir` is the user's home, `config_dir` the platform's directory
/// for configuration (`home_dir/.config` if unknown). `is_runtime_dir` checks whether the directory of
/// `XDG_RUNTIME_DIR` can be used; see [`is_runtime_dir`].
pub fn resolve(
    socket_flag: Option<&Path>,
    env: impl Fn(&str) -> Option<OsString>,
    home_dir: Option<&Path>,
    config_dir: Option<&Path>,
    is_runtime_dir: impl Fn(&Path) -> bool,
) -> Result<InstancePaths, NoHomeError> {
    let path = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chorus_home = path("CHORUS_HOME");
    let home = match (&chorus_home, home_dir) {
        (Some(home), _) => home.clone(),
        (None, Some(user)) => user.join(".chorus-agents"),
        (None, None) => return Err(NoHomeError),
    };
    // Relative runtime directories are invalid (XDG Base Directory Specification).
    let runtime = || path("XDG_RUNTIME_DIR").filter(|dir| dir.is_absolute() && is_runtime_dir(dir));
    let named = socket_flag.map(Path::to_path_buf).or_else(|| path("CHORUS_SOCKET"));
    let socket_is_named = named.is_some();
    let socket = if let Some(named) = named {
        named
    } else if let (None, Some(runtime)) = (&chorus_home, runtime()) {
        runtime.join("chorus/chorusd.sock")
    } else {
        home.join(HOME_SOCKET)
    };
    let config = if let Some(given) = path("CHORUS_CONFIG") {
        given
    } else if let Some(home) = &chorus_home {
        home.join("config.toml")
    } else if let Some(dir) = config_dir {
        dir.join("chorus/config.toml")
    } else {
        home_dir.ok_or(NoHomeError)?.join(".config/chorus/config.toml")
    };
    Ok(InstancePaths { home, socket, config, socket_is_explicit: socket_is_named })
}

/// Returns true if a socket may be created below `dir`: the directory belongs to this user, or it belongs to root and
/// is world-writable and sticky, so that others cannot delete files in it. After a session has ended, `XDG_RUNTIME_DIR`
/// may name a directory that no longer exists, and after `su` that of another user; neither is accepted.
#[cfg(unix)]
#[must_use]
pub fn is_runtime_dir(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let us = rustix::process::geteuid().as_raw();
    let shared = |mode: u32| mode & 0o1002 == 0o1002;
    let found = match dir.symlink_metadata() {
        // The owner of a symbolic link can point it elsewhere.
        Ok(link) if link.is_symlink() && link.uid() != us && link.uid() != 0 => return false,
        Ok(link) if link.is_symlink() => dir.metadata(),
        found => found,
    };
    found.is_ok_and(|found| found.is_dir() && (found.uid() == us || (found.uid() == 0 && shared(found.mode()))))
}

impl InstancePaths {
    /// Makes all paths absolute, so that they are valid in any working directory.
    pub fn absolute(self) -> io::Result<Self> {
        Ok(Self {
            home: std::path::absolute(self.home)?,
            socket: std::path::absolute(self.socket)?,
            config: std::path::absolute(self.config)?,
            socket_is_explicit: self.socket_is_explicit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(flag: Option<&str>, vars: &[(&str, &str)], home: Option<&str>) -> Result<[String; 3], NoHomeError> {
        let env = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        let there = |dir: &Path| !dir.starts_with("/gone");
        let places = resolve(flag.map(Path::new), env, home.map(Path::new), Some(Path::new("/u/.config")), there)?;
        Ok([places.home, places.socket, places.config].map(|path| path.display().to_string()))
    }

    fn known(paths: [&str; 3]) -> Result<[String; 3], NoHomeError> {
        Ok(paths.map(str::to_owned))
    }

    #[test]
    fn without_variables_everything_is_under_the_users_home() {
        assert_eq!(
            find(None, &[], Some("/u")),
            known(["/u/.chorus-agents", "/u/.chorus-agents/run/chorusd.sock", "/u/.config/chorus/config.toml"])
        );
        assert_eq!(find(None, &[], None), Err(NoHomeError));
    }

    #[test]
    fn chorus_home_isolates_the_instance() {
        let vars = [("CHORUS_HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        assert_eq!(find(None, &vars, Some("/u")), known(["/h", "/h/run/chorusd.sock", "/h/config.toml"]));
        assert_eq!(find(None, &vars, None), known(["/h", "/h/run/chorusd.sock", "/h/config.toml"]));
    }

    #[test]
    fn the_runtime_directory_holds_the_socket_of_the_default_instance() {
        let places = |dir| find(None, &[("XDG_RUNTIME_DIR", dir)], Some("/u")).map(|found| found[1].clone());
        assert_eq!(places("/run/user/7").as_deref(), Ok("/run/user/7/chorus/chorusd.sock"));
        assert_eq!(places("run/user/7").as_deref(), Ok("/u/.chorus-agents/run/chorusd.sock"));
        assert_eq!(places("").as_deref(), Ok("/u/.chorus-agents/run/chorusd.sock"));
        assert_eq!(places("/gone/7").as_deref(), Ok("/u/.chorus-agents/run/chorusd.sock"), "the session has ended");
    }

    #[test]
    fn only_the_flag_and_the_variable_name_a_socket() {
        let named = |flag: Option<&str>, name: &str| {
            let env = |asked: &str| (asked == name).then(|| OsString::from("/s.sock"));
            resolve(flag.map(Path::new), env, Some(Path::new("/u")), None, |_| true)
                .map(|places| places.socket_is_explicit)
        };
        assert_eq!((named(Some("/f"), ""), named(None, "CHORUS_SOCKET")), (Ok(true), Ok(true)));
        assert_eq!((named(None, "XDG_RUNTIME_DIR"), named(None, "CHORUS_HOME")), (Ok(false), Ok(false)));
    }

    #[test]
    fn the_flag_wins_over_the_variable_and_that_over_the_home() {
        let vars = [("CHORUS_HOME", "/h"), ("CHORUS_SOCKET", "/s.sock"), ("CHORUS_CONFIG", "/c.toml")];
        assert_eq!(find(Some("/f.sock"), &vars, None), known(["/h", "/f.sock", "/c.toml"]));
        assert_eq!(find(None, &vars, None), known(["/h", "/s.sock", "/c.toml"]));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let vars = [("CHORUS_HOME", ""), ("CHORUS_SOCKET", ""), ("CHORUS_CONFIG", ""), ("XDG_RUNTIME_DIR", "/r")];
        assert_eq!(
            find(None, &vars, Some("/u")),
            known(["/u/.chorus-agents", "/r/chorus/chorusd.sock", "/u/.config/chorus/config.toml"])
        );
    }

    #[test]
    fn without_a_platform_directory_configuration_is_in_dot_config() {
        let found = resolve(None, |_| None, Some(Path::new("/u")), None, |_| true).map(|places| places.config);
        assert_eq!(found, Ok(PathBuf::from("/u/.config/chorus/config.toml")));
    }
}
