//! Quotes paths and values for systemd units (systemd.syntax(7), systemd.service(5)).

use std::path::Path;

/// Returns the path as text.
pub(super) fn path_str(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8, which a systemd unit requires", path.display()))
}

/// Quotes the program path of ExecStart; systemd accepts neither quotes nor backslashes in it.
pub(super) fn program(path: &Path) -> Result<String, String> {
    let text = path_str(path)?;
    match text.chars().find(|c| "\"'\\".contains(*c)) {
        Some(c) => Err(format!("{text} contains {c}, which ExecStart= does not allow in the program path")),
        None => word(text),
    }
}

/// Quotes an argument of ExecStart; escapes `$`, which would expand a variable.
pub(super) fn argument(text: &str) -> Result<String, String> {
    word(&text.replace('$', "$$"))
}

/// Escapes a value that is no list of words, such as the path of `ListenStream=`: `%` would be a specifier.
pub(super) fn value(text: &str) -> Result<String, String> {
    refuse_control(text)?;
    Ok(text.replace('%', "%%"))
}

/// Quotes a word if necessary; escapes `%`, which would be a specifier.
pub(super) fn word(text: &str) -> Result<String, String> {
    refuse_control(text)?;
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let plain = |c: char| c.is_alphanumeric() || "/._-=+:,@%$~".contains(c);
    Ok(if escaped.chars().all(plain) { escaped } else { format!("\"{escaped}\"") })
}

fn refuse_control(text: &str) -> Result<(), String> {
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("{text:?} contains {c:?}, which a systemd unit does not allow")),
        None => Ok(()),
    }
}
