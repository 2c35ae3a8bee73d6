//! A session file that something damaged while the daemon runs is not passed on as a good one.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use crate::home;

/// Saves a session of 20 messages and returns the path of its file, and its name.
fn saved(home: &Home, daemon: &Daemon) -> (String, String) {
    let mut client = daemon.client();
    client.init("a");
    for n in 0..20 {
        client.append("a", &format!("message {n}"));
    }
    let saved = client.save("a", "twenty");
    assert!(saved.file_path.starts_with(&*home.path.to_string_lossy()));
    (saved.file_path, saved.header.session_id)
}

fn without_a_message(text: &str) -> String {
    text.lines().filter(|line| !line.contains("message 7\"")).map(|line| format!("{line}\n")).collect()
}

fn with_a_broken_key(text: &str) -> String {
    text.replacen("\"content\":\"message 7\"", "\"contant\":\"message 7\"", 1)
}

fn with_a_control_byte(text: &str) -> String {
    text.replacen("message 7", "message\u{1}7", 1)
}

#[test]
fn it_is_refused_as_show_refuses_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let (path, name) = saved(&home, &daemon);
    let good = fs::read_to_string(&path).expect("the file");
    let out = home.temp_dir().join("out");
    let file = home.temp_dir().join("copy.json");
    let (out_arg, file_arg) = (out.to_str().expect("a path"), file.to_str().expect("a path"));
    fs::write(&file, "an earlier export\n").expect("written");
    for damage in [without_a_message, with_a_broken_key, with_a_control_byte] {
        let bad = damage(&good);
        assert_ne!(bad, good);
        fs::write(&path, &bad).expect("damaged");
        let show = chorusctl(&home, ["show", &name]);
        let told = show.expect_failure(1).to_owned();
        assert_eq!(told.lines().count(), 2, "{told}");
        for args in [&["export", &name][..], &["export", &name, "--output", file_arg], &["export", &name, "--as", "md"]]
        {
            let export = chorusctl(&home, args);
            assert_eq!((export.status, &*export.stdout, &*export.stderr), (show.status, "", &*told), "{args:?}");
        }
        let all = chorusctl(&home, ["export", "--all-agents", "--output", out_arg]);
        assert_eq!((all.status, &*all.stdout, &*all.stderr), (show.status, "", &*told));
        assert_eq!(fs::read_to_string(&file).expect("the earlier export"), "an earlier export\n");
        assert!(!out.join("a").join(format!("{name}.json")).exists(), "nothing was written");
    }
    fs::write(&path, without_a_message(&good)).expect("damaged");
    let told = chorusctl(&home, ["export", &name]).stderr;
    assert!(
        told.starts_with(&format!("error: the file of {name} should have 20 messages, but has 19\nhint: ")),
        "{told}"
    );
    fs::write(&path, &good).expect("repaired");
    chorusctl(&home, ["export", &name, "--output", file_arg]).expect_success();
    chorusctl(&home, ["export", "--all-agents", "--output", out_arg]).expect_success();
    assert_eq!(fs::read_to_string(&file).expect("the export"), good);
    assert_eq!(fs::read_to_string(out.join("a").join(format!("{name}.json"))).expect("the export"), good);
}
