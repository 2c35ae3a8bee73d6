//! What is shown of files and folders.

use std::os::unix::fs::symlink;

use super::Bench;

#[test]
fn a_file_is_shown_with_the_numbers_of_its_lines() {
    let bench = Bench::new();
    bench.put("a.txt", "one\n\nthree\r\nfour");
    assert_eq!(bench.view("a.txt").unwrap(), "     1\tone\n     2\t\n     3\tthree\n     4\tfour\n");
    assert_eq!(bench.lines("a.txt", Some(2), Some(3)).unwrap(), "     2\t\n     3\tthree\n[lines 2 to 3 of 4]\n");
    assert_eq!(bench.lines("a.txt", Some(4), Some(99)).unwrap(), "     4\tfour\n[lines 4 to 4 of 4]\n");
    for (start, end, why) in
        [(0, 1, "must be at least 1"), (3, 2, "is before"), (5, 9, "has 4 lines, so line 5 does not exist")]
    {
        let wrong = bench.lines("a.txt", Some(start), Some(end)).unwrap_err();
        assert!(wrong.contains(why), "{wrong}");
    }
    bench.put("empty", "");
    assert_eq!(bench.view("empty").unwrap(), "empty is empty");
    bench.put("latin", b"gr\xfc\xdfe\n");
    assert!(bench.view("latin").unwrap().contains("gr\u{fffd}\u{fffd}e\n[not UTF-8"));
    bench.put("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    assert!(bench.view("image.png").unwrap_err().contains("is not a text file: 16 bytes"));
}

#[test]
fn a_long_file_comes_in_parts_that_make_the_whole() {
    let bench = Bench::new();
    let text: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
    bench.put("long", &text);
    let (mut seen, mut next) = (String::new(), 1);
    loop {
        let part = bench.lines("long", Some(next), None).unwrap();
        let shown = part.lines().filter(|line| !line.starts_with('['));
        shown.for_each(|line| seen = format!("{seen}{}\n", line.split_once('\t').expect("a number").1));
        let Some((_, more)) = part.split_once("continue with start_line ") else { break };
        next = more.trim_end().trim_end_matches(']').parse().expect("a number");
    }
    assert_eq!((seen, next), (text, 2001));
    bench.put("wide", "w".repeat(1 << 20) + "\nnext\n");
    let wide = bench.view("wide").unwrap();
    assert!(wide.len() < 3000 && wide.contains("[1046576 more bytes in this line]\n     2\tnext\n"), "{}", wide.len());
    bench.put("rows", ("r".repeat(1000) + "\n").repeat(100));
    assert!(bench.view("rows").unwrap().len() < 36_000);
}

#[test]
fn a_folder_is_listed_without_what_belongs_to_git() {
    let bench = Bench::new();
    assert_eq!(bench.view(".").unwrap(), "./ is empty");
    bench.put(".git/config", "[core]");
    bench.put("b.txt", "12");
    bench.put("a/x", "");
    bench.put("odd\nname", "1");
    symlink("/etc/passwd", bench.path("link")).expect("a link");
    let due = "./ has 4 names:\na/\nb.txt  2 bytes\nlink -> /etc/passwd\n\"odd\\nname\"  1 byte\n";
    assert_eq!(bench.view("").err().as_deref(), Some("the path is empty; use `.` for the workspace itself"));
    assert_eq!(bench.view(".").unwrap(), due);
    assert_eq!(bench.view("a/").unwrap(), "a/ has 1 name:\nx  0 bytes\n");
    (0..600).for_each(|n| bench.put(&format!("many/{n:03}"), ""));
    let many = bench.view("many").unwrap();
    assert!(many.starts_with("many/ has 600 names:\n000  0 bytes\n") && many.ends_with("499  0 bytes\n[100 more]\n"));
}
