//! The tarball: both programs with everything that belongs to them, in one directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::assets::Assets;
use super::make_directory;
use crate::error::{Error, Result};
use crate::shell::{Shell, Step};

/// Writes `chorus-VERSION-TARGET.tar.gz`, the same bytes for the same files. Returns its file name.
pub(super) fn write(
    shell: &Shell,
    programs: &[PathBuf],
    target: &str,
    assets: &Assets,
    output: &Path,
) -> Result<String> {
    let name = format!("chorus-{}-{target}", env!("CARGO_PKG_VERSION"));
    let staging = shell.root.join("target/dist/tarball");
    let directory = staging.join(&name);
    if !shell.dry_run {
        if staging.exists() {
            fs::remove_dir_all(&staging).map_err(|error| Error::file("remove", &staging, &error))?;
        }
        for program in programs {
            copy(program, &directory.join("bin"))?;
        }
        copy(&assets.notices, &directory)?;
        copy_all(&assets.man, &directory.join("share/man/man1"))?;
        copy_all(&assets.units, &directory.join("share/systemd/user"))?;
        copy_all(&shell.root.join("completions"), &directory.join("share/completions"))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&shell.root.join(file), &directory)?;
        }
    }
    let archive = format!("{name}.tar.gz");
    let options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    let step = Step::new("tar").args(options).args(["--use-compress-program", "gzip -9n", "--create", "--file"]);
    let step = step.arg(output.join(&archive).to_string_lossy());
    shell.run(&step.arg("--directory").arg(staging.to_string_lossy()).arg(name))?;
    Ok(archive)
}

/// Copies the files of a directory.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).map_err(|error| Error::file("read", from, &error))? {
        let entry = entry.map_err(|error| Error::file("read", from, &error))?;
        copy(&entry.path(), to)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    make_directory(to)?;
    let target = to.join(from.file_name().unwrap_or_default());
    fs::copy(from, &target).map(drop).map_err(|error| Error::file("copy", from, &error))
}
