//! What no file tool does: each refusal names the reason, and nothing is changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Bench, names_below};

fn crowded() -> Bench {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("key"), "secret").expect("a file");
    symlink(&outside, bench.path("out")).expect("a link");
    symlink("../outside/key", bench.path("key")).expect("a link");
    symlink("file", bench.path("inner")).expect("a link");
    symlink("nowhere", bench.path("dangling")).expect("a link");
    symlink("/proc/self/root", bench.path("magic")).expect("a link");
    bench.put("file", "text");
    bench.put("folder/a", "a");
    bench.put(".git/config", "[core]");
    bench.put("bare/HEAD", "ref: refs/heads/main\n");
    bench.put("bare/objects/x", "");
    bench.put("bare/refs/heads/main", "");
    bench.put("bare/config", "[core]");
    bench.put("fixed", "text");
    fs::set_permissions(bench.path("fixed"), fs::Permissions::from_mode(0o444)).expect("a mode");
    mknodat(CWD, bench.path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    drop(UnixListener::bind(bench.path("socket")).expect("a socket"));
    bench
}

/// A path, and what is said of it: to one who looks, and to one who writes.
const REFUSED: [(&str, Option<&str>, Option<&str>); 24] = [
    ("out", Some("out is a symbolic link to"), Some("out is a symbolic link to")),
    ("out/key", Some("out is a symbolic link"), Some("out is a symbolic link")),
    ("key", Some("key is a symbolic link to \"../outside/key\""), Some("symbolic link")),
    ("inner", Some("symbolic link to \"file\""), Some("symbolic link to \"file\"")),
    ("dangling", Some("symbolic link"), Some("symbolic link")),
    ("magic/etc/passwd", Some("magic is a symbolic link"), Some("magic is a symbolic link")),
    ("../outside/key", Some("is outside the workspace"), Some("is outside the workspace")),
    ("/etc/passwd", Some("outside the workspace"), Some("outside the workspace")),
    ("pipe", Some("is a pipe"), Some("is a pipe")),
    ("socket", Some("is a socket"), Some("is a socket")),
    (".git/config", Some("git's own"), Some("git's own")),
    ("folder/.GIT/config", Some("git's own"), Some("git's own")),
    ("folder", None, Some("folder is a folder")),
    ("folder/", None, Some("folder is a folder")),
    (".", None, Some(". is a folder")),
    ("file/x", Some("file is not a folder"), Some("file is not a folder")),
    ("missing/x", Some("missing does not exist"), None),
    ("flie", Some("flie does not exist; did you mean \"file\"?"), None),
    ("fixed", None, Some("fixed is read-only (mode 444)")),
    ("new/HEAD", Some("new does not exist"), Some("a git repository")),
    ("folder/head", Some("folder/head does not exist"), Some("a git repository")),
    ("bare/config", None, Some("bare is a bare git repository")),
    ("bare/hooks/post-update", Some("bare/hooks does not exist"), Some("bare is a bare git repository")),
    ("bare/objects/info/x", Some("bare/objects/info does not exist"), Some("bare is a bare git repository")),
];

#[test]
fn what_is_refused_is_told_why_and_nothing_is_changed() {
    let bench = crowded();
    let before = (bench.names(), names_below(&bench.folder.path().join("outside")));
    for (path, looks, writes) in REFUSED {
        let said = |result: Result<String, String>, due: Option<&str>| match due {
            Some(due) => {
                let wrong = result.expect_err(path);
                assert!(wrong.contains(due), "{path}: {wrong}");
            }
            None => drop(result),
        };
        said(bench.view(path), looks);
        if writes.is_some() {
            said(bench.create(path, "new"), writes);
            said(bench.append(path, "new"), writes);
            assert!(bench.replace(path, "t", "new").is_err(), "{path}");
        }
    }
    assert_eq!((bench.names(), names_below(&bench.folder.path().join("outside"))), before);
    assert_eq!(fs::read_to_string(bench.folder.path().join("outside/key")).expect("the key"), "secret");
    assert_eq!(bench.text(".git/config") + &bench.text("bare/config"), "[core][core]");
}

#[test]
fn names_that_no_file_system_takes_are_told() {
    let bench = Bench::new();
    assert!(bench.create(&"n".repeat(256), "").unwrap_err().contains("a name is too long"));
    assert!(bench.create(&format!("made/{}", "n".repeat(256)), "").unwrap_err().contains("too long"));
    assert!(bench.create("a\tb", "").unwrap_err().contains("control characters"));
    assert!(bench.names().is_empty(), "folders that were made are taken away again: {:?}", bench.names());
    bench.create("ü 語\u{301}.txt", "fine").unwrap();
    let deep = (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join("/");
    bench.create(&deep, "deep").unwrap();
    assert_eq!(bench.text(&deep), "deep");
}

#[test]
fn a_file_too_large_to_be_held_is_left_to_commands() {
    let bench = Bench::new();
    bench.put("large", "x".repeat((16 << 20) + 1));
    assert!(bench.append("large", "x").unwrap_err().contains("16777217 bytes"));
    assert!(bench.replace("large", "xyz", "x").unwrap_err().contains("the limit for file tools"));
    bench.create("large", "small").unwrap();
    assert_eq!(bench.text("large"), "small");
}
