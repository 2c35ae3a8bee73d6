//! Programs that tests write and run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run. Another process writes it: a child that another thread starts meanwhile would
/// inherit the file, open for writing, and until it is gone nobody could run the program (`ETXTBSY`).
pub fn write_program(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path.as_ref())
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.stdin.take().expect("its input").write_all(text.as_ref()).expect("the program");
    assert!(shell.wait().expect("the shell").success(), "{} is not written", path.as_ref().display());
}
