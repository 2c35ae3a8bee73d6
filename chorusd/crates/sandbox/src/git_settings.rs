//! Git settings that override the repository's configuration: those with which it could name a program that git runs
//! even for read-only commands.

/// Keys and values as for `git -c`. Each value is git's default or turns the feature off.
const PINNED_SETTINGS: [(&str, &str); 10] = [
    // A directory of plain files in the workspace can be a repository that names programs.
    ("safe.bareRepository", "explicit"),
    // Run even by `git status`.
    ("core.fsmonitor", "false"),
    // A hook in the workspace may have been written by a command.
    ("core.hooksPath", "/dev/null"),
    // Run by `git log` if the repository shows signatures, and by formats with `%G?`.
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    // `git diff` in a submodule uses the submodule's configuration.
    ("diff.submodule", "short"),
    // Run when the references of alternate object stores are listed.
    ("core.alternateRefsCommand", "true"),
    // Otherwise a remote of the repository could be an `ext::` command.
    ("protocol.ext.allow", "never"),
];

/// Returns the environment variables that pin these settings, and those that turn off features without a setting.
pub(crate) fn variables() -> Vec<(String, String)> {
    let mut all = vec![
        ("GIT_CONFIG_COUNT".to_owned(), PINNED_SETTINGS.len().to_string()),
        ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        // Git would fetch a missing object by means that the repository names.
        ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
    ];
    for (index, (key, value)) in PINNED_SETTINGS.iter().enumerate() {
        all.push((format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned()));
        all.push((format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned()));
    }
    all
}
