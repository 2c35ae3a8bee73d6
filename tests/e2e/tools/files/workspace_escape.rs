//! P19: whatever is linked and renamed while file tools work, they never leave the workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chorus_tests::rng::Rng;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Bench, names_below};

const OPERATIONS: u64 = 20_000;
const SECRET: &str = "the API key of the safe";

/// Two names trade places, at once.
fn swap(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("both names are there");
}

#[test]
fn threads_that_swap_links_lead_no_operation_out() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    fs::create_dir_all(outside.join("deep")).expect("a folder");
    for name in ["f", "deep/f", "x"] {
        fs::write(outside.join(name), SECRET).expect("a secret");
    }
    bench.put("a/deep/f", "inside");
    bench.put("a/f", "inside");
    bench.put("f", "inside");
    symlink(&outside, bench.path("out")).expect("a link");
    symlink("../../outside/deep", bench.path("a/out")).expect("a link");
    symlink("../outside/f", bench.path("link")).expect("a link");
    let a = fs::File::open(bench.path("a")).expect("a folder");
    let (done, refused, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for (one, other) in [("a", "out"), ("f", "link")] {
            let (one, other) = (bench.path(one), bench.path(other));
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    swap(&one, &other);
                }
            });
        }
        // By a handle: two paths in one call could be walked on both sides of a swap, and the test itself would lead out.
        let over_deep = &over;
        let a = &a;
        scope.spawn(move || {
            while !over_deep.load(Ordering::Relaxed) {
                renameat_with(a, "deep", a, "out", RenameFlags::EXCHANGE).expect("both names are there");
            }
        });
        let workers: Vec<_> = (0..4)
            .map(|seed| {
                let (bench, done, refused) = (&bench, &done, &refused);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for n in 0..OPERATIONS / 4 {
                        let folder = ["a", "out", "a/deep", "a/out", "out/deep", "."][rng.below(6) as usize];
                        let file = ["f", "x", "link"][rng.below(3) as usize];
                        let path = format!("{folder}/{file}");
                        let told = match rng.below(4) {
                            0 => bench.create(&path, &format!("made {n}")),
                            1 => bench.append(&path, "more"),
                            2 => bench.replace(&path, "made ", "made  "),
                            _ => bench.view(&path),
                        };
                        if let Ok(text) = &told {
                            assert!(!text.contains(SECRET), "{path}: {text}");
                        }
                        (if told.is_ok() { done } else { refused }).fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "something was read outside");
    });
    assert_eq!(names_below(&outside), ["deep", "deep/f", "f", "x"], "something was made outside");
    for name in ["f", "deep/f", "x"] {
        assert_eq!(fs::read_to_string(outside.join(name)).expect("a secret"), SECRET);
    }
    let (done, refused) = (done.into_inner(), refused.into_inner());
    assert_eq!(done + refused, OPERATIONS);
    assert!(done > OPERATIONS / 20 && refused > OPERATIONS / 20, "{done} done, {refused} refused");
}
