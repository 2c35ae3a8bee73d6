//! Settings of git that hold whatever a repository's configuration says: those by which it could name a program that a mere
//! reader of it runs.

/// Keys and values, as `git -c` would set them. What is named here is git's own default, or off.
const PINNED_SETTINGS: [(&str, &str); 10] = [
    // A folder of plain files in the workspace can be a repository that names programs to run.
    ("safe.bareRepository", "explicit"),
    // Run by a mere `git status`.
    ("core.fsmonitor", "false"),
    // A hook of the workspace may have been put there by a command.
    ("core.hooksPath", "/dev/null"),
    // Run by `git log`, if the repository shows signatures, and by formats with `%G?`.
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    // `git diff` in a submodule, with the submodule's configuration.
    ("diff.submodule", "short"),
    // Run when the references of borrowed objects are listed.
    ("core.alternateRefsCommand", "true"),
    // Else the repository's could be `ext::`, which is a command.
    ("protocol.ext.allow", "never"),
];

/// The variables that set them, and those that turn off what has no setting.
pub fn variables() -> Vec<(String, String)> {
    let mut all = vec![
        ("GIT_CONFIG_COUNT".to_owned(), PINNED_SETTINGS.len().to_string()),
        ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        // An object that is missing would be fetched by whatever the repository names.
        ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
    ];
    for (index, (key, value)) in PINNED_SETTINGS.iter().enumerate() {
        all.push((format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned()));
        all.push((format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned()));
    }
    all
}
