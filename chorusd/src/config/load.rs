//! Reading config.toml and the environment.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use chorus_proto::ErrorKind;
use toml::de::{DeTable, DeValue};

use super::keys::KEYS;
use super::value::Given;
use super::{Config, nearest};
use crate::failure::{Failure, Result};

/// The configuration: defaults, then the file (it need not exist), then the environment (`CHORUS_` and the key in
/// capitals).
///
/// # Errors
/// A file that cannot be read, an unknown key or a value that does not fit; the place is named.
pub fn load(path: &Path, env: impl Fn(&str) -> Option<OsString>) -> Result<Config> {
    let mut config = Config::default();
    match std::fs::read_to_string(path) {
        Ok(text) => from_toml(&mut config, &text, path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => {
            return Err(Failure::new(ErrorKind::InvalidConfig, format!("cannot read {}: {e}", path.display()))
                .hint("make it readable, or name another file in CHORUS_CONFIG"));
        }
    }
    for key in KEYS {
        let name = format!("CHORUS_{}", key.name.to_uppercase());
        let Some(value) = env(&name).filter(|value| !value.is_empty()) else { continue };
        (key.set)(&mut config, &Given::Text(value.to_string_lossy().into_owned())).map_err(|e| {
            Failure::new(ErrorKind::InvalidConfig, format!("the environment variable {name} {e}"))
                .hint("correct or unset it")
        })?;
    }
    Ok(config)
}

fn from_toml(config: &mut Config, text: &str, path: &Path) -> Result<()> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let wrong = |at: usize, what: String, hint: String| {
        Failure::new(ErrorKind::InvalidConfig, format!("{}, line {}: {what}", path.display(), line(at))).hint(hint)
    };
    let document = DeTable::parse(text)
        .map_err(|e| wrong(e.span().map_or(0, |s| s.start), e.message().to_owned(), "correct the line".into()))?;
    let mut pairs = Vec::new();
    for (name, value) in document.get_ref() {
        let tables = KEYS.iter().any(|key| key.table == name.get_ref().as_ref());
        match value.get_ref() {
            DeValue::Table(inner) if tables => {
                pairs.extend(
                    inner.iter().map(|(inner_name, inner_value)| (name.get_ref().as_ref(), inner_name, inner_value)),
                );
            }
            _ => pairs.push(("", name, value)),
        }
    }
    for (table, name, value) in pairs {
        let given = name.get_ref().as_ref();
        let at = name.span().start;
        let Some(key) = KEYS.iter().find(|key| key.table == table && key.name == given) else {
            return Err(wrong(at, format!("unknown key `{}`", dotted(table, given)), meant(table, given)));
        };
        (key.set)(config, &Given::from_toml(value.get_ref()))
            .map_err(|e| wrong(at, format!("`{}` {e}", dotted(table, given)), "correct the value".into()))?;
    }
    Ok(())
}

fn dotted(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

/// What to do about an unknown key: the nearest one of its table, else of any.
fn meant(table: &str, given: &str) -> String {
    let here = KEYS.iter().filter(|key| key.table == table).map(|key| key.name);
    let found = nearest(given, here).map(|name| dotted(table, name)).or_else(|| {
        let name = nearest(given, KEYS.iter().map(|key| key.name))?;
        KEYS.iter().find(|key| key.name == name).map(|key| dotted(key.table, key.name))
    });
    match found {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known keys: {}", KEYS.iter().map(|k| dotted(k.table, k.name)).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<Config> {
        let mut config = Config::default();
        from_toml(&mut config, text, Path::new("config.toml")).map(|()| config)
    }

    #[test]
    fn keys_are_set() {
        let config =
            read("default_model = \"local/small\"\nmax_frame = \"1MiB\"\n[defaults]\nidle_timeout = \"5m\"\n").unwrap();
        assert_eq!(config.default_model.as_deref(), Some("local/small"));
        assert_eq!(config.max_frame, 1 << 20);
        assert_eq!(config.defaults.idle_timeout, Some(Duration::from_secs(300)));
    }

    #[test]
    fn a_wrong_key_is_named_with_line_and_neighbour() {
        let failure = read("durability = \"always\"\n\n[defaults]\nidel_timeout = \"5m\"\n").unwrap_err();
        assert_eq!(failure.message, "config.toml, line 4: unknown key `defaults.idel_timeout`");
        assert_eq!(failure.hint.as_deref(), Some("did you mean `defaults.idle_timeout`?"));
        let failure = read("idle_timeout = \"5m\"\n").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `defaults.idle_timeout`?"));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let failure = read("resume_on_start = \"perhaps\"").unwrap_err();
        assert_eq!(failure.message, "config.toml, line 1: `resume_on_start` must be true or false");
        assert!(read("= 1").unwrap_err().message.starts_with("config.toml, line 1: "));
        assert!(read("[defaults]\npermissions = \"opne\"").unwrap_err().message.contains("did you mean `open`?"));
    }

    #[test]
    fn the_environment_wins() {
        let config =
            load(Path::new("/nonexistent/config.toml"), |name| (name == "CHORUS_IDLE_TIMEOUT").then(|| "0".into()));
        assert_eq!(config.unwrap().defaults.idle_timeout, None);
    }
}
