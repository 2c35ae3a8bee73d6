//! Names of sessions: the slug of any description is a safe file name, and never that of another session.

use std::collections::BTreeSet;
use std::fs;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use sha2::{Digest as _, Sha256};

use crate::home;

/// Descriptions and the slugs they must get; `None`: the first 6 hex digits of the first message's SHA-256.
fn descriptions() -> Vec<(String, Option<String>)> {
    let fixed = |text: &str, slug: &str| (text.to_owned(), Some(slug.to_owned()));
    vec![
        fixed("Why the import FAILS", "why-the-import-fails"),
        fixed("../../x", "x"),
        fixed("/etc/passwd", "etcpasswd"),
        fixed("first\nsecond\r\nthird", "first-second-third"),
        fixed("nul\0inside", "nulinside"),
        fixed("a  -  b -- c", "a-b-c"),
        fixed("\u{202e}gnp.exe\u{202c} right to left", "gnpexe-right-to-left"),
        fixed("na\u{ef}ve caf\u{e9}", "nave-caf"),
        (("long ".repeat(2048)), Some("long-long-long-long-long-long-long-long-".to_owned())),
        ("\u{1f3b6}\u{1f680}".to_owned(), None),
        ("\u{4e2d}\u{6587}".to_owned(), None),
        ("...".to_owned(), None),
        (String::new(), None),
    ]
}

#[test]
fn any_description_makes_a_safe_name_and_is_kept_as_it_is() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "the first message");
    let digest = Sha256::digest("the first message");
    let hash: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    let before = everything(&home);
    let mut taken = BTreeSet::new();
    for (description, slug) in descriptions() {
        let session = client.save("a", &description);
        let name = session.header.session_id.clone();
        assert!(taken.insert(name.clone()), "{name} twice");
        let (date, found) = name.split_once('_').expect("a date and a slug");
        assert_eq!(date, &session.header.saved_at.to_string()[..10], "the date is the UTC date of the save");
        let wanted = slug.unwrap_or_else(|| hash.clone());
        // No hyphen at either end, not where it was cut either; a taken slug gets a number.
        let base = wanted.trim_matches('-');
        let rest = found.strip_prefix(base).unwrap_or_else(|| panic!("{description:?}: {found}, not {wanted}"));
        let number = rest.strip_prefix('-').map(|number| number.parse::<u32>().ok());
        assert!(rest.is_empty() || number.flatten().is_some_and(|number| number > 1), "{description:?}: {found}");
        assert!(found.len() <= 43, "{found}");
        let kept = session.header.description.unwrap_or_default();
        // Where none is given, one is made.
        assert!(kept == description || description.is_empty(), "{kept:?}, not {description:?}");
        let path = fs::canonicalize(&session.file_path).expect("the file");
        assert_eq!(path.parent(), Some(&*fs::canonicalize(home.sessions_dir("a")).expect("sessions/")));
    }
    let new: Vec<_> = everything(&home).difference(&before).cloned().collect();
    assert!(new.iter().all(|path| path.contains("/agents/a/sessions/")), "written outside: {new:?}");
}

/// Every file in and around the home, but for the databases and the search index.
fn everything(home: &chorus_tests::Home) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![home.temp_dir().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.starts_with(home.path.join("db")) && !path.starts_with(home.path.join("index")) {
                found.insert(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn fifty_saves_with_one_description_get_fifty_names() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let names: Vec<_> = (0..50).map(|_| client.save("a", "same again").header.session_id).collect();
    let date = &names[0][..10];
    for (n, name) in names.iter().enumerate() {
        // At midnight the numbers begin again.
        if name.starts_with(date) {
            let number = if n == 0 { String::new() } else { format!("-{}", n + 1) };
            assert_eq!(*name, format!("{date}_same-again{number}"));
        }
    }
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), 50);
    assert_eq!(fs::read_dir(home.sessions_dir("a")).expect("sessions/").count(), 50);
}

#[test]
fn clients_that_save_the_same_at_once_get_names_of_their_own() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    let names: BTreeSet<String> = std::thread::scope(|scope| {
        let saving = |_| {
            let mut client = daemon.client();
            scope.spawn(move || (0..10).map(|_| client.save("a", "same").header.session_id).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..5).map(saving).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    });
    assert_eq!(names.len(), 50);
}
