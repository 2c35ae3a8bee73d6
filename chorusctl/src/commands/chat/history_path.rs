//! Location of the chat history, a file that belongs to the user and not to an agent.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "chat_history";

/// Returns the path of the history file: in CHORUS_HOME if that is set, otherwise in the XDG state directory. `None` if
/// no home directory is known.
#[must_use]
pub(super) fn file_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = path("CHORUS_HOME") {
        return Some(home.join(FILE_NAME));
    }
    let state = path("XDG_STATE_HOME").filter(|state| state.is_absolute());
    let state = state.or_else(|| path("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("chorus").join(FILE_NAME))
}

/// Creates the directory of `file` with mode 0700.
pub(super) fn create_parent_dir(file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_in_the_state_directory_or_with_its_instance() {
        let of = |set: &[(&str, &str)]| {
            file_path(|name| set.iter().find(|(of, _)| *of == name).map(|(_, value)| value.into()))
                .map(|file| file.display().to_string())
        };
        assert_eq!(of(&[("HOME", "/u")]).as_deref(), Some("/u/.local/state/chorus/chat_history"));
        assert_eq!(of(&[("HOME", "/u"), ("XDG_STATE_HOME", "/s")]).as_deref(), Some("/s/chorus/chat_history"));
        assert_eq!(
            of(&[("HOME", "/u"), ("XDG_STATE_HOME", "s")]).as_deref(),
            Some("/u/.local/state/chorus/chat_history")
        );
        assert_eq!(of(&[("HOME", "/u"), ("CHORUS_HOME", "/c")]).as_deref(), Some("/c/chat_history"));
        assert_eq!(of(&[]), None);
    }
}
