//! What is installed besides the programs: manual pages, units, licences and what Debian wants. The completions are in the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HOST, make_directory, manual, notices};
use crate::error::{Error, Result};
use crate::shell::{Shell, Step};

/// As in chorusd/Cargo.toml.
const MAINTAINER: &str = "The Chorus developers <chorus@invalid>";
/// Stands for the user's home in the units that chorusctl prints; systemd's `%h` replaces it.
const HOME: &str = "/home-of-the-user";

/// The file of a Debian package about the licence, but for the text of MIT.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Chorus

Files: *
Copyright: 2026 The Chorus maintainers
License: Expat or Apache-2.0
Comment: The programs contain libraries with licences of their authors, see THIRD-PARTY-LICENSES.gz in this directory.

License: Apache-2.0
 See /usr/share/common-licenses/Apache-2.0.

License: Expat
";

/// Where they are.
#[derive(Debug)]
pub(super) struct Assets {
    pub(super) man: PathBuf,
    pub(super) units: PathBuf,
    /// The licences of all libraries, compressed.
    pub(super) notices: PathBuf,
}

/// Writes them below target/dist/assets with these programs. cargo-deb takes them from there.
pub(super) fn write(shell: &Shell, chorusctl: &Path, chorusd: &Path, deb_version: &str) -> Result<Assets> {
    let directory = shell.root.join("target/dist/assets");
    let (man, units) = (directory.join("man"), directory.join("units"));
    let assets = Assets { man, units, notices: directory.join("THIRD-PARTY-LICENSES.gz") };
    if shell.dry_run {
        return Ok(assets);
    }
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|error| Error::file("remove", &directory, &error))?;
    }
    make_directory(&assets.units)?;
    let program = chorusctl.to_string_lossy();
    shell.run(&Step::new(&*program).args(["man", "--output"]).arg(assets.man.to_string_lossy()))?;
    let help = shell.output(&Step::new(chorusd.to_string_lossy()).arg("--help"))?;
    save(&assets.man.join("chorusd.1"), &manual::page(&help, env!("CARGO_PKG_VERSION")))?;
    write_units(chorusctl, &assets.units)?;
    save(&assets.notices.with_extension(""), &notices::text(shell, HOST)?)?;
    save(&directory.join("copyright"), &copyright(&shell.root)?)?;
    save(&directory.join("changelog"), &changelog(shell, deb_version))?;
    let compress = "gzip -9n \"$1\"/man/*.1 \"$1\"/THIRD-PARTY-LICENSES";
    shell.run(&Step::new("sh").args(["-c", compress, "sh"]).arg(directory.to_string_lossy()))?;
    Ok(assets)
}

fn save(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::file("write", path, &error))
}

fn copyright(root: &Path) -> Result<String> {
    let path = root.join("LICENSE-MIT");
    let license = fs::read_to_string(&path).map_err(|error| Error::file("read", &path, &error))?;
    let line = |line: &str| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") };
    Ok(license.lines().map(line).fold(COPYRIGHT.to_owned(), |text, line| text + &line))
}

/// Debian's changelog of the package. Its date is that of the commit, so that the same tree makes the same package.
fn changelog(shell: &Shell, version: &str) -> String {
    // Whoever packs may be another user than the owner of the checkout.
    let log = Step::new("git").args(["-c", "safe.directory=*", "log", "-1", "--format=%aD"]);
    let date = shell.output(&log).unwrap_or_else(|_| "Thu, 01 Jan 1970 00:00:00 +0000".to_owned());
    format!(
        "chorus ({version}) stable; urgency=medium\n\n  * The changes are in CHANGELOG.md.\n\n -- {MAINTAINER}  {}\n",
        date.trim()
    )
}

/// Writes the units of each user's service manager, for programs in /usr/bin.
fn write_units(chorusctl: &Path, directory: &Path) -> Result<()> {
    let mut command = Command::new(chorusctl);
    command.args(["daemon", "install", "--print", "--socket-activation"]).env_clear();
    command.env("HOME", HOME).env("CHORUSD", "/usr/bin/chorusd");
    let printed = command.output().map_err(|error| Error::file("run", chorusctl, &error))?;
    if !printed.status.success() {
        return Err(Error::new(String::from_utf8_lossy(&printed.stderr).trim().to_owned())
            .hint("`chorusctl daemon install --print` must work"));
    }
    let text = String::from_utf8_lossy(&printed.stdout).replace(HOME, "%h");
    for (name, content) in split_units(&text) {
        let path = directory.join(name);
        save(&path, &content)?;
    }
    Ok(())
}

/// Splits what `daemon install --print` prints into files: each follows a line with its path.
fn split_units(text: &str) -> Vec<(&str, String)> {
    let mut units: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        let name = line.strip_prefix("# %h/").and_then(|path| path.rsplit('/').next());
        match (name, units.last_mut()) {
            (Some(name), _) => units.push((name, String::new())),
            (None, Some((_, content))) => {
                content.push_str(line);
                content.push('\n');
            }
            (None, None) => {}
        }
    }
    for (_, content) in &mut units {
        *content = content.trim_end().to_owned() + "\n";
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_follows_its_path() {
        let text = "# %h/.config/systemd/user/a.service\n# Written\n[Unit]\n\n# %h/.config/systemd/user/a.socket\n[Socket]\nListenStream=%h/x\n";
        let units = split_units(text);
        assert_eq!(units[0], ("a.service", "# Written\n[Unit]\n".to_owned()));
        assert_eq!(units[1], ("a.socket", "[Socket]\nListenStream=%h/x\n".to_owned()));
        assert_eq!(units.len(), 2);
    }
}
