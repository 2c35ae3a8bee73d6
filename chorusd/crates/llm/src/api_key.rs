//! Reads the key of a provider, and refuses keys that cannot be sent.

use std::path::Path;

use chorus_base::Secret;
use chorus_config::{KeySource, Provider};

use super::error::{CallError, ErrorClass};

/// Limit of a key file in bytes; a larger file is certainly not a key.
const MAX_KEY_FILE_BYTES: u64 = 16 << 10;

/// Availability and source of a provider's key, without the key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyStatus {
    pub provider: String,
    /// Describes the source of the key, and the URL that it is sent to.
    pub place: String,
    pub found: Result<(), CallError>,
}

/// Describes the source of the key of `provider`; `None` if it has none.
#[must_use]
pub(crate) fn describe_source(provider: &Provider) -> Option<String> {
    match &provider.key {
        KeySource::None => None,
        KeySource::Env { variable, .. } => Some(variable.clone()),
        KeySource::File(path) => Some(path.display().to_string()),
        KeySource::Credential { name, .. } => Some(format!("credential {name}")),
    }
}

/// Checks the key of `provider`. Reads a file: blocks.
#[must_use]
pub(crate) fn check_key(provider: &Provider) -> KeyStatus {
    let key = describe_source(provider).map_or_else(|| "no key".to_owned(), |source| format!("key in {source}"));
    let place = format!("{key} sent to {}", provider.base_url);
    KeyStatus { provider: provider.name.clone(), place, found: read_key(provider).map(|_| ()) }
}

/// Returns the key of `provider`, if it has one. Reads a file: blocks.
///
/// # Errors
/// `Auth` if the key is missing or cannot be sent. The message does not contain the key.
pub(crate) fn read_key(provider: &Provider) -> Result<Option<Secret>, CallError> {
    let missing = |what: String, hint: String| CallError::new(ErrorClass::Auth, what).hint(hint);
    let name = &provider.name;
    let (text, place) = match &provider.key {
        KeySource::None => return Ok(None),
        KeySource::Env { variable, value: Some(value) } => (value.expose().to_owned(), format!("variable {variable}")),
        KeySource::Env { variable, value: None } => {
            return Err(missing(
                format!("no API key for {name}: {variable} is not set in the daemon's environment"),
                format!("export {variable}, then `chorusctl daemon restart`; or set `api_key_file` in config.toml"),
            ));
        }
        KeySource::Credential { name: credential, path: None } => {
            return Err(missing(
                format!("no API key for {name}: the service manager passed no credentials"),
                format!("add LoadCredential={credential}:PATH to the unit, or set `api_key_file` in config.toml"),
            ));
        }
        KeySource::File(path) | KeySource::Credential { path: Some(path), .. } => {
            let text = read_key_file(path).map_err(|e| {
                missing(
                    format!("cannot read the API key of {name} from {}: {e}", path.display()),
                    "make it readable for chorusd".into(),
                )
            })?;
            (text, path.display().to_string())
        }
    };
    let wrong = if text.is_empty() {
        "is empty"
    } else if text.contains(['\n', '\r']) {
        "has a line break in it"
    } else if !text.chars().all(|c| c.is_ascii_graphic()) {
        "contains a space or an invalid character"
    } else {
        return Ok(Some(Secret::new(text)));
    };
    Err(missing(format!("the API key of {name} {wrong}"), format!("check {place}: it must contain only the key")))
}

/// Reads a key file, without the line end that editors append.
fn read_key_file(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    // Reading a pipe could block for ever.
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    if metadata.len() > MAX_KEY_FILE_BYTES {
        return Err(std::io::Error::other("it is too large for an API key"));
    }
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use chorus_config::{CallLimits, ProviderKind};

    use super::*;

    fn with(key: KeySource) -> Result<Option<Secret>, CallError> {
        let limits = CallLimits::default();
        read_key(&Provider {
            name: "p".into(),
            kind: ProviderKind::Openai,
            base_url: "http://a".into(),
            key,
            limits,
            max_output_tokens: None,
        })
    }

    fn env(value: &str) -> KeySource {
        KeySource::Env { variable: "P_KEY".into(), value: Some(Secret::new(value.into())) }
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_refused_and_not_said() {
        assert_eq!(with(env("sk-good")).unwrap().unwrap().expose(), "sk-good");
        assert_eq!(with(KeySource::None), Ok(None));
        for bad in ["sk-bad\n", "sk\nbad", "sk-b\u{e4}d", "sk bad", "sk\0bad"] {
            let error = with(env(bad)).unwrap_err();
            let said = format!("{error:?}");
            assert!(error.class == ErrorClass::Auth && said.contains("P_KEY") && !said.contains("bad"), "{said}");
        }
        let error = with(KeySource::Env { variable: "P_KEY".into(), value: None }).unwrap_err();
        assert!(error.message.contains("P_KEY is not set"), "{error}");
        assert!(with(KeySource::Credential { name: "c".into(), path: None }).is_err());
    }

    #[test]
    fn a_file_is_read_anew_and_may_end_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let key = KeySource::File(path.clone());
        assert!(with(key.clone()).unwrap_err().message.contains("cannot read"));
        for (text, due) in [("one\n", "one"), ("two\r\n", "two"), ("three", "three")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(with(key.clone()).unwrap().unwrap().expose(), due);
        }
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(with(KeySource::File(pipe)).unwrap_err().message.contains("not a file"));
        for bad in ["", "\n", "a\n\n", "a\nb"] {
            std::fs::write(&path, bad).unwrap();
            assert!(with(key.clone()).is_err(), "{bad:?}");
        }
    }
}
