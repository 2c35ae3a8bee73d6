//! Links the client so that it starts quickly, since it is started again and again (docs/PERFORMANCE.md, Status):
//!
//! - at a fixed address: a program that can be loaded anywhere has 12,000 addresses to be corrected at each start, a twentieth
//!   of `chorusctl status`. A static program (`-C target-feature=+crt-static`) has it with `-C relocation-model=static`;
//! - with the part of GCC's library that unwinds the stack, which would otherwise be another file to find and map.

use std::env;
use std::path::Path;
use std::process::Command;

/// The static library that unwinds the stack.
const UNWINDER: &str = "gcc_eh";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Other C libraries have start files of their own, which expect what rustc passes.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // Of a static program rustc says where it is loaded; the linker would take the start files of a dynamic one as well.
        if !env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default().split(',').any(|feature| feature == "crt-static") {
            println!("cargo::rustc-link-arg-bins=-no-pie");
        }
        if has_unwinder() {
            println!("cargo::rustc-link-lib=static:-bundle={UNWINDER}");
        }
    }
}

/// Returns true if the C compiler that links has the static library. It prints the path of a file that it has, and the name
/// as it is of another one.
fn has_unwinder() -> bool {
    let compiler = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let asked = Command::new(compiler).arg(format!("-print-file-name=lib{UNWINDER}.a")).output();
    asked.is_ok_and(|answer| Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_absolute())
}
