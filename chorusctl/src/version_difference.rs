//! Explains an error by the versions of `chorusctl` and of the daemon, which an update leaves different until the daemon is restarted.

use std::cmp::Ordering;
use std::time::Duration;

use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::{Client, Method as _};

use crate::app::App;
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;

/// Version of this program.
const OWN: &str = env!("CARGO_PKG_VERSION");
/// How long the daemon may take to say its version, after an error that the version may explain.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Adds to an error that another version of the daemon may have caused which versions there are and what to do.
pub(crate) fn explain(error: Error, app: &mut App) -> Error {
    if !error.may_be_of_version() {
        return error;
    }
    let host = app.host().ok().flatten().map(|host| host.name.clone());
    let Some(daemon) = app.take_running_client().and_then(daemon_version) else { return error };
    match hint(OWN, &daemon, host.as_deref()) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn daemon_version(mut client: Client) -> Option<String> {
    client.set_timeout(Some(TIMEOUT)).ok()?;
    let hello = client.call_raw(Hello::NAME, &HelloParams::default(), &mut |_| ()).ok()?;
    let hello: chorus_proto::methods::daemon::HelloResult = serde_json::from_str(hello.get()).ok()?;
    Some(sanitize::one_line(&hello.version))
}

/// Returns what to do about a daemon of another version, `None` if it is the same. `host` is the machine of the daemon, unless it is this one.
pub(crate) fn hint(own: &str, daemon: &str, host: Option<&str>) -> Option<String> {
    let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
    match (compare(daemon, own), host) {
        (Ordering::Equal, _) => None,
        (Ordering::Less, None) => Some(format!(
            "the daemon is still chorusd {daemon}, chorusctl is {own}; restart the daemon: chorusctl daemon restart"
        )),
        (Ordering::Less, Some(_)) => Some(format!(
            "the daemon{place} is chorusd {daemon}, chorusctl is {own}; update Chorus there and restart its daemon"
        )),
        (Ordering::Greater, _) => {
            Some(format!("the daemon{place} is chorusd {daemon}, chorusctl only {own}; update chorusctl"))
        }
    }
}

/// Warns on standard error if the daemon that answered is of another version.
pub(crate) fn warn(daemon: &str, app: &App) {
    let host = app.host().ok().flatten().map(|host| host.name.clone());
    if let Some(hint) = hint(OWN, &sanitize::one_line(daemon), host.as_deref()) {
        app.stderr.hint(&hint);
    }
}

/// Warns on standard error if the daemon that was just started is of another version: its program is.
pub(crate) fn warn_of_program(daemon: &str, app: &App) {
    let daemon = sanitize::one_line(daemon);
    if compare(&daemon, OWN) != Ordering::Equal {
        let program = connect::daemon_program();
        let program = program.display();
        app.stderr.warning(&format!(
            "{program} is of version {daemon}, chorusctl of {OWN}; install the same version of both"
        ));
    }
}

/// Compares versions as Semantic Versioning does, but for the order of two pre-releases of one version, which is that of their texts.
fn compare(one: &str, other: &str) -> Ordering {
    let parts = |version: &str| -> (Vec<u64>, bool, String) {
        let version = version.split('+').next().unwrap_or_default();
        let (numbers, suffix) = version.split_once('-').unwrap_or((version, ""));
        (numbers.split('.').map_while(|part| part.parse().ok()).collect(), suffix.is_empty(), suffix.to_owned())
    };
    parts(one).cmp(&parts(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert_eq!(compare("0.9.0", "0.10.0"), Ordering::Less);
        assert_eq!(compare("0.10.0", "0.10.0"), Ordering::Equal);
        assert_eq!(compare("1.0.0", "0.10.0"), Ordering::Greater);
        assert_eq!(compare("1.0.0-rc1", "1.0.0"), Ordering::Less);
        assert_eq!(compare("1.0.0-rc1", "1.0.0-rc2"), Ordering::Less);
        assert_eq!(compare("1.0.0+a", "1.0.0"), Ordering::Equal);
    }

    #[test]
    fn the_older_one_is_to_be_replaced() {
        let hint = |own, daemon, host| hint(own, daemon, host).unwrap_or_default();
        assert_eq!(hint("0.2.0", "0.2.0", None), "");
        assert!(hint("0.2.0", "0.1.0", None).ends_with("restart the daemon: chorusctl daemon restart"));
        assert!(hint("0.2.0", "0.1.0", Some("box")).contains("on box is chorusd 0.1.0"));
        assert!(hint("0.1.0", "0.2.0", None).ends_with("chorusctl only 0.1.0; update chorusctl"));
    }
}
