//! Files that are made and changed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::thread;

use chorus_engine::tools::{Workspace, WorkspacePath};

use super::Bench;

fn mode(bench: &Bench, name: &str) -> u32 {
    fs::metadata(bench.path(name)).expect("a file").mode() & 0o7777
}

#[test]
fn a_file_is_made_with_its_folders_and_replaced_with_its_mode() {
    let bench = Bench::new();
    assert_eq!(bench.create("src/deep/a.rs", "fn a() {}\n").unwrap(), "created src/deep/a.rs (1 line, 10 bytes)");
    assert_eq!((mode(&bench, "src/deep/a.rs"), mode(&bench, "src/deep"), mode(&bench, "src")), (0o644, 0o755, 0o755));
    bench.put("run.sh", "#!/bin/sh\n");
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o4750)).expect("a mode");
    let told = bench.create("./run.sh", "#!/bin/sh\ntrue").unwrap();
    assert_eq!(told, "replaced run.sh (now 2 lines, 14 bytes; before 10 bytes)");
    assert_eq!((mode(&bench, "run.sh"), bench.text("run.sh").as_str()), (0o750, "#!/bin/sh\ntrue"));
    assert_eq!(bench.create("empty", "").unwrap(), "created empty (0 lines, 0 bytes)");
    assert_eq!(bench.names(), ["empty", "run.sh", "src", "src/deep", "src/deep/a.rs"], "nothing is left beside them");
}

#[test]
fn what_a_crash_left_of_a_write_goes_with_the_next_one() {
    let bench = Bench::new();
    let left = ".0123456789abcdef0123456789abcdef.chorus";
    let others = [".0123456789abcdef.chorus", ".0123456789ABCDEF0123456789abcdef.chorus", "sub/x"];
    for name in others.iter().chain([&left]) {
        bench.put(name, "half");
    }
    // A folder of that name was made by nobody here; one elsewhere is for a write there.
    let folder = ".1123456789abcdef0123456789abcdef.chorus";
    fs::create_dir(bench.path(folder)).expect("a folder");
    bench.put(&format!("sub/{left}"), "half");
    bench.create("a", "").unwrap();
    let mut names = vec!["a", "sub", folder, "sub/.0123456789abcdef0123456789abcdef.chorus"];
    names.extend(others);
    names.sort_unstable();
    assert_eq!(bench.names(), names);
    bench.append("sub/x", "").unwrap();
    assert!(!bench.path("sub").join(left).exists());
}

#[test]
fn another_name_of_a_file_keeps_what_it_had() {
    let bench = Bench::new();
    fs::write(bench.folder.path().join("outside"), "mine").expect("a file");
    fs::hard_link(bench.folder.path().join("outside"), bench.path("inside")).expect("a hard link");
    bench.append("inside", " and yours").unwrap();
    assert_eq!(bench.text("inside"), "mine and yours");
    assert_eq!(fs::read_to_string(bench.folder.path().join("outside")).expect("a file"), "mine");
}

#[test]
fn what_is_appended_stands_at_the_end_as_it_is() {
    let bench = Bench::new();
    assert_eq!(bench.append("log", "one").unwrap(), "created log: added 3 bytes, now 1 line, 3 bytes");
    assert_eq!(bench.append("log", "\ntwo\n").unwrap(), "appended to log: added 5 bytes, now 2 lines, 8 bytes");
    assert_eq!(bench.text("log"), "one\ntwo\n");
    bench.put("binary", [0, 255, 10]);
    bench.append("binary", "x").unwrap();
    assert_eq!(fs::read(bench.path("binary")).expect("bytes"), [0, 255, 10, b'x']);
}

#[test]
fn a_piece_is_replaced_where_it_is_found_once() {
    let bench = Bench::new();
    bench.put("a.txt", "one\ntwo\nthree\ntwo\nfive\nsix\nseven\neight\n");
    let told = bench.replace("a.txt", "three\ntwo", "3\n4").unwrap();
    assert_eq!(
        told,
        "changed a.txt at line 3:\n     1\tone\n     2\ttwo\n     3\t3\n     4\t4\n     5\tfive\n     6\tsix\n     7\tseven\n"
    );
    assert_eq!(bench.text("a.txt"), "one\ntwo\n3\n4\nfive\nsix\nseven\neight\n");
    bench.replace("a.txt", "eight\n", "").unwrap();
    assert!(bench.text("a.txt").ends_with("seven\n"));
    let long = bench.replace("a.txt", "six\n", &"6\n".repeat(100)).unwrap();
    assert!(long.lines().count() < 40 && long.contains("more changed lines]"), "{long}");
    // Bytes that are no text stay what they are.
    bench.put("mixed", [b"a\xFFb ".as_slice(), b"old", b"\x00\xFE"].concat());
    bench.replace("mixed", "old", "new").unwrap();
    assert_eq!(fs::read(bench.path("mixed")).expect("bytes"), b"a\xFFb new\x00\xFE");
}

#[test]
fn what_is_not_found_once_is_told_with_its_lines() {
    let bench = Bench::new();
    bench.put("a.txt", "x\n  indented\nx\ntab\tx\n");
    bench.put("dos.txt", "one\r\ntwo\r\n");
    bench.put("many", "x\n".repeat(100));
    for (path, old, why) in [
        ("a.txt", "x", "occurs 3 times in a.txt, at lines 1, 3, 4;"),
        (
            "many",
            "x",
            "occurs 100 times in many, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, …;",
        ),
        ("a.txt", "y", "not found in a.txt; nothing"),
        ("a.txt", "indented\n  x", "only differs in spaces at the ends of lines at line 2"),
        ("dos.txt", "one\ntwo", "\\r\\n line endings, and with them it matches at line 1"),
        ("a.txt", "", "old_str is empty"),
        ("b.txt", "x", "b.txt does not exist; did you mean \"a.txt\"?"),
    ] {
        let wrong = bench.replace(path, old, "new").expect_err(old);
        assert!(wrong.contains(why), "{wrong}");
    }
    assert!(bench.replace("a.txt", "tab", "tab").unwrap_err().contains("the same"));
    assert_eq!((bench.text("a.txt").len(), bench.names().len()), (21, 3));
}

#[test]
fn writers_of_one_file_wait_for_each_other_whatever_way_they_come() {
    let bench = Bench::new();
    bench.put("count", (0..8).map(|n| format!("{n}: 0.\n")).collect::<String>());
    // Another agent whose workspace is a link to this one.
    symlink(bench.root(), bench.folder.path().join("other")).expect("a link");
    let other = Workspace::open(&bench.folder.path().join("other")).expect("the same workspace");
    let place = WorkspacePath::parse("count", &bench.root()).expect("a place");
    thread::scope(|scope| {
        for n in 0..8 {
            let (workspace, place, locks) = (if n % 2 == 0 { &bench.workspace } else { &other }, &place, &bench.locks);
            scope.spawn(move || {
                for m in 0..50 {
                    let (old, new) = (format!("{n}: {m}."), format!("{n}: {}.", m + 1));
                    workspace.str_replace(place, (&old, &new), locks).expect("its own line");
                    workspace.append_file(place, &format!("{n}-{m}\n"), locks).expect("appended");
                }
            });
        }
    });
    let text = bench.text("count");
    assert!((0..8).all(|n| text.contains(&format!("{n}: 50.\n"))), "{text}");
    assert_eq!((text.lines().count(), bench.names()), (408, vec!["count".to_owned()]));
}
