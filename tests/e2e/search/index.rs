//! The index is disposable: a start finds what it lacks, and rebuilds it if it cannot be used.

use std::fs;

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::search::Search;
use chorus_proto::{CallError, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, wait_until};

use super::{find, index_state, query, search, wait_until_complete};
use crate::home;

#[test]
fn a_home_of_before_is_indexed_at_its_next_start() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    for n in 0..20 {
        client.append("api", &format!("the meeting number{n} about sailing"));
        client.save("api", &format!("meeting {n}"));
    }
    find(&mut client, "number19");
    assert!(daemon.terminate().success());
    fs::remove_dir_all(home.path.join("index")).expect("removed");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let state = wait_until_complete(&mut client);
    assert_eq!((state.indexed, state.total, state.messages), (21, 21, 20), "the sessions and the live conversation");
    assert_eq!(find(&mut client, "number7").len(), 1);
}

#[test]
fn the_first_search_of_a_daemon_waits_until_the_index_is_open() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "a needle in the hay");
    find(&mut client, "needle");
    assert!(daemon.terminate().success());
    // The command starts the daemon.
    for _ in 0..5 {
        let found = chorusctl(&home, ["search", "needle"]);
        assert_eq!((found.status, found.stdout.lines().count()), (0, 2), "{found:?}");
        assert!(!found.stderr.contains("indexed"), "{found:?}");
        chorusctl(&home, ["daemon", "stop"]).expect_success();
    }
}

#[test]
fn an_index_that_was_opened_again_is_followed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "a needle in the hay");
    find(&mut client, "needle");
    // Once nothing was written for ten seconds, the writer goes, and the index is opened again.
    let is_written = || home.path.join("index/writing").exists();
    wait_until("the writer to go", DEADLINE * 2, || (!is_written()).then_some(()));
    client.append("api", "and a thimble");
    assert_eq!(find(&mut client, "thimble")[0].message, Some(2));
    client.append("api", "and a button");
    assert_eq!(find(&mut client, "button")[0].message, Some(3));
    assert_eq!(find(&mut client, "needle")[0].message, Some(1));
}

#[test]
fn what_a_crash_left_out_is_indexed_at_the_next_start() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "before the crash");
    find(&mut client, "crash");
    client.append("api", "and a walrus");
    client.save("api", "a walrus too");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let hits = find(&mut client, "walrus");
    assert!(hits.iter().any(|hit| hit.message == Some(2)), "{hits:?}");
    wait_until_complete(&mut client);
    assert_eq!(index_state(&mut client).messages, 2);
}

#[test]
fn a_damaged_index_is_built_anew() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "a needle in the hay");
    client.save("api", "hay");
    find(&mut client, "needle");
    assert!(daemon.terminate().success());
    for damage in ["meta.json", "all"] {
        let files: Vec<_> =
            fs::read_dir(home.path.join("index")).expect("files").flatten().map(|entry| entry.path()).collect();
        for file in files.iter().filter(|file| damage == "all" || file.ends_with(damage)) {
            if file.is_file() {
                let length = fs::metadata(file).expect("a file").len();
                fs::write(file, vec![0x55; usize::try_from(length / 2).expect("small")]).expect("damaged");
            }
        }
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        wait_until_complete(&mut client);
        assert_eq!(find(&mut client, "needle").len(), 1, "{damage}");
        assert!(daemon.terminate().success());
    }
}

#[test]
fn flipped_bits_are_noticed_when_they_are_read() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "a needle in the hay");
    client.save("api", "hay");
    find(&mut client, "needle");
    assert!(daemon.terminate().success());
    let mut flipped = 0;
    for file in fs::read_dir(home.path.join("index")).expect("files").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "store") {
            let mut bytes = fs::read(file.path()).expect("read");
            bytes.iter_mut().take(40).for_each(|byte| *byte ^= 0x41);
            fs::write(file.path(), bytes).expect("written");
            flipped += 1;
        }
    }
    assert!(flipped > 0);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let hits = wait_until("the needle", DEADLINE, || {
        let found = client.call::<Search>(&query("needle"));
        if let Err(error) = &found {
            assert!(matches!(error, CallError::Rpc(_)), "{error:?}");
        }
        found.ok().map(|found| found.hits).filter(|hits| !hits.is_empty())
    });
    assert_eq!((hits.len(), &*hits[0].snippet), (1, "a needle in the hay"));
}

#[test]
fn any_text_is_a_query() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the café serves naïve résumés in 東京都 by foo_bar(baz)");
    for text in [
        "cafe",
        "Résumé",
        "東京",
        "foo_bar",
        "\"naïve résumés\"",
        "\"unbalanced cafe",
        "cafe AND (",
        "title:cafe^2~",
        "cafe*",
        "CAF*",
    ] {
        assert!(!find(&mut client, text).is_empty(), "{text}");
    }
    for text in ["***", "\"\"", "()", "-", "\u{0}", "zzz -cafe"] {
        assert_eq!(search(&mut client, &query(text)).hits, [], "{text}");
    }
    for text in ["-cafe", " ", ""] {
        let error = client.call::<Search>(&query(text)).expect_err("nothing to search for");
        assert!(matches!(&error, CallError::Rpc(error) if error.kind() == ErrorKind::InvalidParams), "{error:?}");
    }
    assert_eq!(search(&mut client, &query("naive -tokyo")).hits.len(), 1);
    assert_eq!(search(&mut client, &query("naive -cafe")).hits, []);
}

#[test]
fn it_can_be_turned_off() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "a needle in the hay");
    find(&mut client, "needle");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start_with(&home, "[search]\nindex = false\n");
    let mut client = daemon.client();
    let error = wait_until("it to be off", DEADLINE, || match client.call::<Search>(&query("needle")) {
        Err(CallError::Rpc(error)) if error.kind() != ErrorKind::Busy => Some(error),
        Err(_) => None,
        Ok(found) => panic!("{found:?}"),
    });
    assert_eq!(error.message, "the search index is off");
    wait_until("it to be deleted", DEADLINE, || (!home.path.join("index").exists()).then_some(()));
    assert_eq!(client.call::<Status>(&StatusParams::default()).expect("status").search, None);
}

#[test]
fn a_session_file_that_is_edited_is_indexed_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the password is xylophone");
    let file = client.save("api", "music").file_path;
    chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    find(&mut client, "xylophone");
    assert!(daemon.terminate().success());
    let text = fs::read_to_string(&file).expect("the file");
    fs::write(&file, text.replace("xylophone", "marimba")).expect("edited");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(find(&mut client, "marimba").len(), 1);
    super::find_nothing(&mut client, "xylophone");
}
