//! The author of the commits that a command makes. Without one, git takes the full name of the user's account, and many
//! accounts have none. What a repository sets comes first.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Path of the settings in a command's root file system.
pub(crate) const SETTINGS_PATH: &str = "/.chorus-gitconfig";

/// Writes the settings of the author `name`, which is an agent's, into Chorus's home, unless they are there, and returns the
/// file. Other commands may use it meanwhile. Blocks.
pub(crate) fn write(home: &Path, name: &str) -> io::Result<PathBuf> {
    let (dir, text) = (home.join("run").join("git"), settings(name));
    let file = dir.join(name);
    if fs::read(&file).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(file);
    }
    fs::create_dir_all(&dir)?;
    let mut written = tempfile::NamedTempFile::new_in(&dir)?;
    written.write_all(text.as_bytes())?;
    written.persist(&file)?;
    Ok(file)
}

fn settings(name: &str) -> String {
    format!("[user]\n\tname = {name}\n\temail = {name}@chorus.localhost\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_written_once_and_again_if_it_was_damaged() {
        let home = tempfile::tempdir().unwrap();
        let file = write(home.path(), "mara").unwrap();
        let due = "[user]\n\tname = mara\n\temail = mara@chorus.localhost\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), due);
        fs::write(&file, "x").unwrap();
        assert_eq!(write(home.path(), "mara").unwrap(), file);
        assert_eq!(fs::read_to_string(&file).unwrap(), due);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}
