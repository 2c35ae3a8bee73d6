//! Links the client at a fixed address. It is started again and again, and a program that can be loaded anywhere has 12,000
//! addresses to be corrected at each start: a twentieth of `chorusctl status` (docs/PERFORMANCE.md, Status).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Other C libraries have start files of their own, which expect what rustc passes.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
