//! Several sessions into a directory: one file each, and the next run writes only what is new.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::{Daemon, Home};

use crate::home;

/// Every file below `folder`, with the inode that a rewrite would change.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, inode)| (format!("{name}/{below}"), inode)));
        } else {
            found.insert(name, path.metadata().expect("a file").ino());
        }
    }
    found
}

fn export(home: &Home, args: &[&str]) -> Output {
    let output = home.temp_dir().join("out");
    let mut all = vec!["session", "export", "--output", output.to_str().expect("a path")];
    all.extend_from_slice(args);
    chorusctl(home, all)
}

/// The cron line, twice in a row and then with something new.
#[test]
fn the_second_run_is_silent_and_writes_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        client.append(agent, "hello");
        client.save(agent, "first");
    }
    client.append("a", "more");
    let cron = ["--since", "1d", "--all-agents"];
    client.save("a", "second");
    let said = export(&home, &cron);
    assert_eq!((said.status, &*said.stderr), (0, ""));
    assert!(said.stdout.starts_with("exported 3 sessions to "), "{}", said.stdout);
    let out = home.temp_dir().join("out");
    let first = files(&out);
    assert_eq!(first.len(), 3);
    assert!(first.keys().all(|name| name.starts_with("a/20") || name.starts_with("b/20")), "{first:?}");
    let again = export(&home, &cron);
    assert_eq!((again.status, &*again.stdout, &*again.stderr), (0, "", ""));
    assert_eq!(files(&out), first, "no file was touched");

    let third = client.save("b", "third");
    let (name, _) = first.iter().next().expect("a file");
    fs::write(out.join(name), "cut off").expect("a damaged copy");
    let said = export(&home, &cron).expect_success();
    assert!(said.starts_with("exported 2 sessions"), "{said}");
    let now = files(&out);
    assert_eq!(now.len(), 4);
    let copy = fs::read(out.join(format!("b/{}.json", third.header.session_id))).expect("the new one");
    assert_eq!(copy, fs::read(&third.file_path).expect("its file"));
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&out), mode(&out.join(name))), (0o700, 0o600), "conversations are private");
}

#[test]
fn the_sessions_of_one_agent_lie_side_by_side() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        client.append(agent, "hello");
        client.save(agent, "kept");
        client.append(agent, "again");
        client.save(agent, "kept");
    }
    for form in ["json", "jsonl", "md"] {
        export(&home, &["--agent", "a", "--as", form]).expect_success();
    }
    let names: Vec<_> = files(&home.temp_dir().join("out")).into_keys().collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.iter().all(|name| name.contains("_kept")), "{names:?}");
    let said = export(&home, &["--agent", "a", "latest", "latest~1"]);
    assert_eq!((said.status, &*said.stdout), (0, ""), "both are there already");
    let told = export(&home, &["--agent", "b", "latest", "--json"]).expect_json();
    assert_eq!((told["written"].as_array().map(Vec::len), &told["unchanged"]), (Some(1), &0.into()));
    assert!(files(&home.temp_dir().join("out")).len() == 6, "b's has the name of a's, and took its place");
}

#[test]
fn history_numbers_stay_what_they_were() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let first = client.save("a", "first");
    chorusctl(&home, ["context", "history"]).expect_success();
    client.append("a", "more");
    client.save("a", "second");
    export(&home, &["--all-agents"]).expect_success();
    assert_eq!(client.get_session("a", "1").0.header.id, first.header.id);
}

#[test]
fn a_name_that_was_given_again_keeps_both_apart() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for text in ["old", "new"] {
        client.init("a");
        client.append("a", text);
        client.save("a", "kept");
        if text == "old" {
            let params = DestroyParams { name: "a".into(), keep_files: false, purge: false };
            client.call::<Destroy>(&params).expect("destroyed");
        }
    }
    export(&home, &["--all-agents", "--as", "md"]).expect_success();
    let names: Vec<_> = files(&home.temp_dir().join("out")).into_keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let now = names.iter().find(|name| name.starts_with("a/")).expect("the one that has the name");
    assert!(fs::read_to_string(home.temp_dir().join("out").join(now)).expect("text").contains("**You:** new\n"));
    assert!(names.iter().any(|name| name.starts_with("a_")), "{names:?}");
}

#[test]
fn a_corrupt_session_is_told_and_keeps_no_other_in() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let bad = client.save("a", "bad");
    client.save("a", "good");
    fs::write(&bad.file_path, "{").expect("damaged");
    daemon.kill9();
    daemon = Daemon::start(&home);
    let said = export(&home, &["--all-agents"]);
    assert_eq!(said.status, 1, "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains(&bad.header.session_id), "{}", said.stderr);
    assert_eq!(files(&home.temp_dir().join("out")).len(), 1);
    drop(daemon);
}
