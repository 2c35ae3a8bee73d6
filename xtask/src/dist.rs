//! `cargo xtask dist`: builds what people install.

mod assets;
mod manual;
mod notices;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};

/// The target of this machine.
const HOST: &str = if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };
/// The static target; without it the tarball has the programs of this machine's target.
const STATIC_TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };
/// Debian's word for the architecture.
const DEBIAN_ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
/// Compiles SQLite and the cryptography for the static target.
const STATIC_COMPILER: &str = "musl-gcc";
/// Makes chorusctl static with glibc, too: it asks for no names of hosts and users.
const STATIC_FLAGS: &str = "-C target-feature=+crt-static -C relocation-model=static";
/// Names of the programs, and of their packages.
const PROGRAMS: [&str; 2] = ["chorusctl", "chorusd"];

/// Build the packages: a Debian package, a tarball and their checksums
///
/// Needs cargo-deb (`cargo install cargo-deb`) for the Debian package, and for static programs in the tarball the target
/// x86_64-unknown-linux-musl (`rustup target add`) and musl-gcc (Debian: musl-tools).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the packages
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    output: PathBuf,
    /// Take the programs that are built already
    #[arg(long)]
    no_build: bool,
    /// Profile of cargo
    #[arg(long, default_value = "release")]
    profile: String,
    /// Version of the Debian package [default: that of the workspace, with -1]
    #[arg(long, value_name = "VERSION")]
    deb_version: Option<String>,
    /// Features of chorusd besides the default ones
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
    /// Only this package
    #[arg(long, value_enum)]
    only: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Deb,
    Tarball,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let wants = |kind| args.only.is_none_or(|only| only == kind);
    let output = shell.root.join(&args.output);
    if !args.no_build {
        shell.run(&build_step(shell, args, &PROGRAMS, None))?;
    }
    let [chorusctl, chorusd] = PROGRAMS.map(|name| program(shell, args, None, name));
    let assets = assets::write(shell, &chorusctl, &chorusd, deb_version(args))?;
    make_directory(&output)?;
    let mut packages = Vec::new();
    if wants(Kind::Deb) {
        packages.push(build_deb(args, shell, &output)?);
    }
    if wants(Kind::Tarball) {
        let (target, programs) = tarball_programs(args, shell)?;
        packages.push(tarball::write(shell, &programs, target, &assets, &output)?);
    }
    write_checksums(shell, &packages, &output)
}

/// Returns the programs of the tarball, and their target: both static if this machine can build them so, otherwise chorusctl alone.
fn tarball_programs(args: &Args, shell: &Shell) -> Result<(&'static str, [PathBuf; 2])> {
    let static_target = static_target(shell);
    if !args.no_build {
        let step = match static_target {
            Some(target) => build_step(shell, args, &PROGRAMS, Some(target)),
            None => build_step(shell, args, &PROGRAMS[..1], Some(HOST)).env("RUSTFLAGS", STATIC_FLAGS),
        };
        shell.run(&step)?;
    }
    let of = |target| PROGRAMS.map(|name| program(shell, args, target, name));
    if let Some(target) = static_target
        && (shell.dry_run || of(Some(target)).iter().all(|path| path.exists()))
    {
        return Ok((target, of(Some(target))));
    }
    let ([mut chorusctl, chorusd], [alone, _]) = (of(None), of(Some(HOST)));
    if shell.dry_run || alone.exists() {
        chorusctl = alone;
    }
    Ok((HOST, [chorusctl, chorusd]))
}

/// The step that builds programs.
fn build_step(shell: &Shell, args: &Args, programs: &[&str], target: Option<&str>) -> Step {
    let step = shell.cargo().args(["build", "--locked", "--profile", &args.profile]);
    let step = step.args(programs.iter().flat_map(|name| ["--package", name]));
    let features = args.features.iter().filter(|_| programs.contains(&"chorusd"));
    let features = features.flat_map(|features| features.split([',', ' ']));
    let step = features.fold(step, |step, feature| step.args(["--features", &format!("chorusd/{feature}")]));
    match target {
        Some(target) => step.args(["--target", target]),
        None => step,
    }
}

/// Returns the path of a program that was built.
fn program(shell: &Shell, args: &Args, target: Option<&str>, name: &str) -> PathBuf {
    let directory = if args.profile == "dev" { "debug" } else { &args.profile };
    let mut path = shell.root.join("target");
    path.extend(target);
    path.join(directory).join(name)
}

/// Returns the static target if this machine can build for it.
fn static_target(shell: &Shell) -> Option<&'static str> {
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", STATIC_TARGET]).output();
    let has_target = libraries.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir());
    let has_compiler = shell.succeeds(&Step::new(STATIC_COMPILER).arg("--version"));
    if has_target && has_compiler {
        return Some(STATIC_TARGET);
    }
    shell.say(&format!(
        "{STATIC_TARGET} or {STATIC_COMPILER} is not installed: only chorusctl is static, chorusd is that of {HOST}"
    ));
    None
}

fn deb_version(args: &Args) -> &str {
    args.deb_version.as_deref().unwrap_or(concat!(env!("CARGO_PKG_VERSION"), "-1"))
}

/// Runs cargo-deb, which reads `[package.metadata.deb]` of chorusd/Cargo.toml. Returns the package's file name.
fn build_deb(args: &Args, shell: &Shell, output: &Path) -> Result<String> {
    let version = deb_version(args);
    let name = format!("chorus_{version}_{DEBIAN_ARCHITECTURE}.deb");
    let step = shell.cargo().args(["deb", "--no-build", "--package", "chorusd", "--profile", &args.profile]);
    let step = step.args(["--deb-version", version, "--output"]);
    shell.run(&step.arg(output.join(&name).to_string_lossy()))?;
    Ok(name)
}

/// Writes SHA256SUMS of the packages, which `sha256sum --check` reads.
fn write_checksums(shell: &Shell, packages: &[String], output: &Path) -> Result<()> {
    let sum = "cd \"$1\" && shift && sha256sum -- \"$@\" >SHA256SUMS";
    let step = Step::new("sh").args(["-c", sum, "sh"]).arg(output.to_string_lossy());
    shell.run(&step.args(packages.iter().map(String::as_str)))
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::file("create", path, &error))
}
