//! The environment of commands, built from an allowlist of the daemon's variables.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use chorus_base::locale_check;

use super::git_settings;

/// Variables inherited from the daemon if they are set there.
const INHERITED_VARIABLES: [&str; 16] = [
    "PATH",
    "TERM",
    "TZ",
    "USER",
    "LOGNAME",
    "COLORTERM",
    "NO_COLOR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NIX_PATH",
];

/// Builds the whole environment: inherited variables of `daemon`, fixed ones, and `more`, which overrides both.
/// `git_settings` is the file of settings that git reads before those of the repository.
pub fn build_environment(
    daemon: impl Iterator<Item = (OsString, OsString)>,
    home: &Path,
    git_settings: Option<&Path>,
    more: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &OsStr, value: &OsStr| match env.iter_mut().find(|(known, _)| known == name) {
        Some((_, there)) => value.clone_into(there),
        None => env.push((name.to_owned(), value.to_owned())),
    };
    for (name, value) in [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb")] {
        set(name.as_ref(), value.as_ref());
    }
    for (name, value) in daemon.filter(|(name, value)| is_inherited(name, value)) {
        if name == "PATH" {
            set(&name, &absolute_path_entries(&value));
        } else {
            set(&name, &value);
        }
    }
    let ours: [(&str, &OsStr); 4] = [
        ("HOME", home.as_os_str()),
        ("SHELL", "/bin/bash".as_ref()),
        ("TMPDIR", "/tmp".as_ref()),
        ("GIT_TERMINAL_PROMPT", "0".as_ref()),
    ];
    for (name, value) in ours {
        set(name.as_ref(), value);
    }
    for (name, value) in git_settings::variables() {
        set(name.as_ref(), value.as_ref());
    }
    if let Some(file) = git_settings {
        set("GIT_CONFIG_GLOBAL".as_ref(), file.as_os_str());
    }
    for (name, value) in more {
        set(name, value);
    }
    env
}

/// Returns true if a variable of the daemon is inherited. Locales with a character set other than UTF-8 are not: in
/// GBK, for example, bash reads a command differently from the permission engine.
fn is_inherited(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    match name {
        "LANGUAGE" => value.to_str().is_some_and(locale_check::is_language_list),
        _ if name == "LANG" || name.starts_with("LC_") => value.to_str().is_some_and(locale_check::is_ascii_compatible),
        _ => INHERITED_VARIABLES.contains(&name),
    }
}

/// Removes relative entries from a PATH: they would refer to the workspace, where a file may have the name of a
/// program.
fn absolute_path_entries(path: &OsStr) -> OsString {
    let places = std::env::split_paths(path).filter(|place| place.is_absolute());
    std::env::join_paths(places).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_the_list_is_taken_over() {
        let pair = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let daemon = [
            ("PATH", ":/opt/bin:.:bin"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("HOME", "/home/mara"),
            ("GIT_CONFIG_COUNT", "7"),
        ];
        let env =
            build_environment(daemon.map(pair).into_iter(), Path::new("/inside"), None, &[pair(("TERM", "xterm"))]);
        let value = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(value("PATH"), Some("/opt/bin"));
        assert_eq!(value("LC_ALL"), Some("de_DE.UTF-8"));
        assert_eq!((value("HOME"), value("TERM")), (Some("/inside"), Some("xterm")));
        assert_eq!((value("GIT_CONFIG_COUNT"), value("GIT_CONFIG_VALUE_0")), (Some("10"), Some("explicit")));
        assert_eq!((value("GIT_CONFIG_GLOBAL"), value("GIT_CONFIG_NOSYSTEM")), (Some("/dev/null"), Some("1")));
        assert_eq!((value("ANTHROPIC_API_KEY"), value("SSH_AUTH_SOCK")), (None, None));
    }

    #[cfg(unix)]
    #[test]
    fn a_locale_is_taken_over_if_bash_reads_commands_in_it_as_they_were_judged() {
        use std::os::unix::ffi::OsStringExt as _;
        for (name, given, wanted) in [
            ("LANG", &b"de_DE.UTF-8"[..], Some("de_DE.UTF-8")),
            ("LANG", b"zh_CN.gbk", Some("C.UTF-8")),
            ("LANG", b"zh_CN", Some("C.UTF-8")),
            ("LANG", b"zh_CN.gbk\xff", Some("C.UTF-8")),
            ("LANG", b"", Some("C.UTF-8")),
            ("LC_ALL", b"C", Some("C")),
            ("LC_ALL", b"zh_TW.BIG5", None),
            ("LC_ALL", b"ja_JP.SJIS.UTF-8", None),
            ("LC_CTYPE", b"zh_CN.GB18030", None),
            ("LC_CTYPE", b"en_US.utf8", Some("en_US.utf8")),
            ("LANGUAGE", b"de_AT:de", Some("de_AT:de")),
            ("LANGUAGE", b"../../tmp", None),
            ("LOCPATH", b"/tmp", None),
            ("POSIXLY_CORRECT", b"1", None),
            ("SHELLOPTS", b"posix", None),
            ("BASHOPTS", b"extglob", None),
            ("BASH_ENV", b"x", None),
            ("BASH_FUNC_ls%%", b"() { rm x; }", None),
        ] {
            let daemon = std::iter::once((OsString::from(name), OsString::from_vec(given.to_vec())));
            let env = build_environment(daemon, Path::new("/inside"), None, &[]);
            let value = env.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
            assert_eq!(value, wanted, "{name}={given:?}");
        }
    }
}
