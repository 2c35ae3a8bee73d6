//! Renders the systemd user unit.

use std::path::Path;

/// First line of every unit that Chorus wrote. Units without it belong to the user and are not overwritten.
pub(super) const HEADER: &str = "# Written by `chorusctl daemon install`.";

/// Renders the unit for `program`, with the `--socket` of the command line and the environment variables of the
/// instance.
///
/// # Errors
/// A path or value contains characters that a unit cannot hold.
pub(super) fn render(program: &Path, socket: Option<&Path>, environment: &[(&str, String)]) -> Result<String, String> {
    let mut start = quote_program(path_str(program)?)?;
    if let Some(socket) = socket {
        start.push_str(" --socket ");
        start.push_str(&quote_argument(path_str(socket)?)?);
    }
    let mut variables = String::new();
    for (name, value) in environment {
        variables.push_str(&format!("Environment={}\n", quote(&format!("{name}={value}"))?));
    }
    Ok(format!(
        "\
{HEADER} Changes of your own belong beside it:
# systemctl --user edit chorusd

[Unit]
Description=Chorus, keeper of the conversations of AI agents
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={start}
{variables}Restart=on-failure
RestartSec=1
# Bad configuration, a daemon that runs already, or a refusal, as after the home or its databases were moved: another try
# would end the same way, or begin an empty home.
RestartPreventExitStatus=2 6 7
# Fed through the writer of the journal: a disk that hangs ends the daemon, and nothing acknowledged is lost.
WatchdogSec=60
TimeoutStartSec=5min
# Longer than `stop_timeout` (10s), in which every conversation is saved.
TimeoutStopSec=30
# A stop is told to the daemon alone; it ends what it started.
KillMode=mixed

# Whatever is made is for its owner only, and memory full of conversations is never dumped to a file.
UMask=0077
LimitCORE=0
LimitNOFILE=16384
TasksMax=4096
# Each command of an agent is bounded as a whole, by a control group below the daemon's.
Delegate=memory pids
# One command of an agent that eats all memory must not take the daemon with it.
OOMPolicy=continue
UnsetEnvironment=LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
# Left out on purpose: Chorus puts the commands of agents into sandboxes of its own, tighter than any of these.
#   NoNewPrivileges=, and all that implies it in a user unit (SystemCallFilter=, LockPersonality=,
#   RestrictSUIDSGID=, MemoryDenyWriteExecute=, ...): a setuid bwrap could not start.
#   RestrictNamespaces=: there would be no user namespaces to build a sandbox of.
#   ProtectSystem=, ProtectHome=, PrivateTmp=, PrivateUsers=: a user unit gets them by a user namespace, in which
#   mounts are locked and further namespaces may be refused.

[Install]
WantedBy=default.target
"
    ))
}

fn path_str(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8, which a unit must be", path.display()))
}

/// Quotes the program path of ExecStart; systemd accepts neither quotes nor backslashes in it.
fn quote_program(text: &str) -> Result<String, String> {
    match text.chars().find(|c| "\"'\\".contains(*c)) {
        Some(c) => Err(format!("{text} holds {c}, which the program of a unit cannot")),
        None => quote(text),
    }
}

/// Quotes an argument of ExecStart; escapes `$`, which would expand a variable.
fn quote_argument(text: &str) -> Result<String, String> {
    quote(&text.replace('$', "$$"))
}

/// Quotes a word if necessary; escapes `%`, which would be a specifier.
fn quote(text: &str) -> Result<String, String> {
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Err(format!("{text:?} holds {c:?}, which a unit cannot"));
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let plain = |c: char| c.is_alphanumeric() || "/._-=+:,@%$~".contains(c);
    Ok(if escaped.chars().all(plain) { escaped } else { format!("\"{escaped}\"") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_paths_are_quoted() {
        let unit = render(
            Path::new("/opt/100% new/$bin/chorusd"),
            Some(Path::new("/run/a \"$b\".sock")),
            &[("CHORUS_HOME", "/srv/$x 1".into())],
        );
        let unit = unit.unwrap_or_default();
        for line in [
            r#"ExecStart="/opt/100%% new/$bin/chorusd" --socket "/run/a \"$$b\".sock""#,
            r#"Environment="CHORUS_HOME=/srv/$x 1""#,
        ] {
            assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
        }
        assert!(render(Path::new("/a\"b"), None, &[]).is_err());
        assert!(render(Path::new("/a\nExecStartPre=/bin/evil"), None, &[]).is_err());
    }

    #[test]
    fn plain_paths_stay_plain() {
        let unit = render(Path::new("/usr/bin/chorusd"), None, &[]).unwrap_or_default();
        assert!(
            unit.starts_with(HEADER) && unit.contains("\nExecStart=/usr/bin/chorusd\nRestart=on-failure\n"),
            "{unit}"
        );
    }
}
