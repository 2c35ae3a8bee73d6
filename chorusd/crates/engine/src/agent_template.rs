//! The template of an agent's directory: the built-in one, or `template/` of the home instead.

use std::fs;
use std::io;
use std::path::Path;

use chorus_base::private_fs::{create_private, write_private};
use chorus_config::agent::AGENT_FILE;

/// The built-in template: paths and contents.
const FILES: [(&str, &str); 3] = [
    (AGENT_FILE, include_str!("../../../../template/agent.json")),
    ("docs/README.md", include_str!("../../../../template/docs/README.md")),
    ("workspace/.gitkeep", include_str!("../../../../template/workspace/.gitkeep")),
];

/// Directories that every agent has, whatever the template.
const DIRS: [&str; 3] = ["docs", "sessions", "workspace"];

/// Fills the empty directory `dir` from `<home>/template`, or from the built-in template if that does not exist.
/// Returns the text of agent.json, which the caller adapts and writes. Blocks.
pub fn fill_agent_dir(dir: &Path, home: &Path) -> io::Result<String> {
    let own = home.join("template");
    let mut config = FILES[0].1.to_owned();
    if own.is_dir() {
        copy_dir(&own, dir)?;
        match fs::read_to_string(own.join(AGENT_FILE)) {
            Ok(text) => config = text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    } else {
        for (path, text) in &FILES[1..] {
            let target = dir.join(path);
            if let Some(parent) = target.parent() {
                create_private(parent)?;
            }
            write_private(&target, text.as_bytes())?;
        }
    }
    for name in DIRS {
        create_private(&dir.join(name))?;
    }
    Ok(config)
}

/// Copies files and directories. Skips symbolic links.
fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    create_private(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
