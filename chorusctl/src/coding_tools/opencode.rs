//! Conversations of opencode, which are in its database. Its own import takes them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

use crate::error::Error;

const BASE_62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes the id of a conversation: its time, so that later ones sort before it, and random digits.
pub(super) fn conversation_id(millis: u64, random: &[u8]) -> String {
    let time = !millis.wrapping_mul(0x1000) & 0xffff_ffff_ffff;
    let digits = random.iter().take(14).map(|byte| char::from(BASE_62[usize::from(*byte) % BASE_62.len()]));
    format!("ses_{time:012x}{}", digits.collect::<String>())
}

/// Has opencode import a file, for the project in `directory`. Importing it again changes nothing.
pub(super) fn import(program: &Path, directory: &Path, file: &Path) -> Result<(), Error> {
    let failed = |error| Error::for_file(&program.to_string_lossy(), &error);
    let output = Command::new(program)
        .arg("import")
        .arg(file)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing").to_owned();
    Err(Error::failed(format!("opencode did not import the conversation: {last}")))
}

/// Returns the model to continue with: the one of the arguments, or the one that is configured.
pub(super) fn find_model(arguments: &[OsString]) -> Option<String> {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    for (at, word) in words.iter().enumerate() {
        if matches!(&**word, "-m" | "--model") {
            return words.get(at + 1).map(ToString::to_string);
        }
        if let Some(model) = word.strip_prefix("--model=") {
            return Some(model.to_owned());
        }
    }
    let text = fs::read(config_path()?).ok()?;
    let config: Value = serde_json::from_slice(&text).ok()?;
    config["model"].as_str().map(String::from)
}

fn config_path() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("OPENCODE_CONFIG").or_else(|| {
        let dir = variable("XDG_CONFIG_HOME").or_else(|| Some(env::home_dir()?.join(".config")))?;
        Some(dir.join("opencode/opencode.json"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_conversations_sort_first() {
        let ids = [1, 2].map(|millis| conversation_id(millis, &[7; 16]));
        assert!(ids[1] < ids[0] && ids[0].len() == 30, "{ids:?}");
    }

    #[test]
    fn the_model_of_the_arguments_counts() {
        let model = |words: &[&str]| find_model(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(model(&["-m", "a/b"]).as_deref(), Some("a/b"));
        assert_eq!(model(&["--print", "--model=c/d"]).as_deref(), Some("c/d"));
    }
}
