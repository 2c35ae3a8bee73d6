//! The configuration file: where it is, and whether the daemon uses what it says.

use chorus_config::changed_keys;
use chorus_proto::methods::doctor::{Check, Verdict};

use super::{check, check_with, join_some};
use crate::ops::settings::EffectiveConfig;

const NAME: &str = "configuration";

/// Reports the path of the file, an error in it, changes that were not read, and keys that apply after a restart.
pub(super) async fn check_file(config: &EffectiveConfig) -> Check {
    let base = config.base();
    let path = base.file.path.display();
    let new = match config.read_again().await {
        Ok(new) => new,
        Err(failure) => {
            let text = format!("the next start would fail: {}", failure.message);
            return check_with(NAME, Verdict::Fail, text, "fix it: chorusctl config edit");
        }
    };
    let unread = changed_keys(&base, &base.with_live_values(&new));
    if !unread.is_empty() {
        let text = format!("{path} was changed: {}", join_some(&unread));
        return check_with(NAME, Verdict::Warn, text, "apply it: chorusctl config reload");
    }
    let pending = changed_keys(&base, &new);
    if !pending.is_empty() {
        let text = format!("{path} has changes that need a restart: {}", join_some(&pending));
        return check_with(NAME, Verdict::Warn, text, "apply them: chorusctl daemon restart");
    }
    let text = if base.file.exists { path.to_string() } else { format!("{path} (no such file; the defaults apply)") };
    check(NAME, Verdict::Ok, text)
}
