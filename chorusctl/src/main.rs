//! The program; what it does is in the library. With glibc it starts without Rust's runtime, see [`chorusctl::c_main`].

#![cfg_attr(all(target_os = "linux", target_env = "gnu", not(test)), no_main)]

#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
#[expect(unsafe_code, reason = "the symbol is the one that the C library calls")]
// SAFETY: no other object has this symbol, and the C library accepts a function that takes no arguments.
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    chorusctl::c_main::run()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(test))))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(chorusctl::main())
}
