//! What an import as a whole promises, and the command line around it.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::import::ImportFormat;
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;

use crate::home;

#[test]
fn nothing_readable_is_an_error_and_no_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for (from, text) in [
        (ImportFormat::Auto, ""),
        (ImportFormat::Auto, "\n\n"),
        (ImportFormat::Auto, "nonsense"),
        (ImportFormat::Auto, "[]"),
        (ImportFormat::Auto, "{}"),
        (ImportFormat::Openai, "[{\"role\":\"robot\"}]"),
        (ImportFormat::Chorus, "{\"schema\":2}"),
        (ImportFormat::ClaudeCode, "{\"type\":\"summary\",\"summary\":\"x\"}"),
        (ImportFormat::Auto, "[[[[[["),
        // White space of ASCII, and none of JSON.
        (ImportFormat::Chatgpt, "\u{c}\n{\"mapping\":{}}\n\u{c}"),
    ] {
        let kind = expect_error_kind(import_transcript(&mut client, "a", from, text, 7));
        assert!(![ErrorKind::Internal, ErrorKind::Unknown].contains(&kind), "{text}: {kind:?}");
    }
    assert_eq!(client.history("a"), []);
    assert_eq!(fs::read_dir(home.sessions_dir("a")).expect("sessions/").count(), 0, "no files left behind");
}

#[test]
fn an_import_leaves_the_live_context_alone_and_can_be_restored() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "live");
    let text = "{\"role\":\"user\",\"content\":\"imported\"}\n{\"role\":\"assistant\",\"content\":\"yes\"}";
    import_transcript(&mut client, "a", ImportFormat::Auto, text, 10).expect("imported");
    assert_eq!(client.message_texts("a"), ["live"]);
    client.restore("a", "latest");
    assert_eq!(client.message_texts("a"), ["imported", "yes"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["imported", "yes"]);
}

#[test]
fn the_command_line_takes_several_files_and_says_what_it_skipped() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, two) = (home.temp_dir().join("one.json"), home.temp_dir().join("two.jsonl"));
    fs::write(&one, r#"[{"role":"user","content":"from one"}]"#).expect("a file");
    fs::write(&two, "{\"role\":\"user\",\"content\":\"from two\"}\nbroken line\n").expect("a file");
    let both = [one.to_str().expect("a path"), two.to_str().expect("a path")];
    let said = chorusctl(&home, ["--agent", "a", "--json", "session", "import", both[0], both[1]]).expect_json();
    assert_eq!(said["sessions"].as_array().map(Vec::len), Some(2), "{said}");
    assert_eq!(said["skipped"][0]["line"], 2);
    let text = chorusctl(&home, ["--agent", "a", "session", "import", both[1]]);
    assert_eq!(text.status, 0);
    assert!(format!("{}{}", text.stdout, text.stderr).contains("line 2"), "{text:?}");
    assert!(text.stdout.contains("1 conversation up to date; 1 line skipped"), "{text:?}");
    assert_eq!(client.history("a").len(), 2);
    let missing = home.temp_dir().join("missing.json");
    chorusctl(&home, ["session", "import", missing.to_str().expect("a path")]).expect_failure(3);
    fs::write(&two, "nothing\nto\nread\n").expect("a file");
    let refused = chorusctl(&home, ["session", "import", both[1]]);
    assert_ne!(refused.status, 0);
    let refused = chorusctl(&home, ["session", "import", "--from", "openai", both[1]]);
    let hint = refused.expect_failure_with_hint(2);
    assert!(hint.contains("line 1: not a JSON object; line 2: "), "{hint}");
    chorusctl(&home, ["session", "import", "--from", "telepathy", both[0]]).expect_failure(2);
}

/// A body of a request in which little is understood: what came in is a part, and that must not pass for the whole.
#[test]
fn a_file_of_which_much_is_skipped_is_said_so_loudly() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let file = home.temp_dir().join("odd.jsonl");
    let path = file.to_str().expect("a path");
    let whole = "{\"role\":\"user\",\"content\":\"x\"}\n";
    let odd = "{\"role\":\"user\",\"words\":\"x\"}\n";
    for (odd_ones, loud) in [(1, false), (2, true)] {
        fs::write(&file, whole.repeat(9) + &odd.repeat(odd_ones)).expect("a file");
        let said = chorusctl(&home, ["--json", "session", "import", path]);
        assert_eq!(said.stderr.contains("warning: "), loud, "{}", said.stderr);
        let result = said.expect_json();
        assert_eq!(result["skipped_total"], odd_ones);
        assert_eq!(result["warning"].as_str().is_some_and(|text| text.contains("2 of 11")), loud, "{result}");
        let both = chorusctl(&home, ["--json", "session", "import", path, path]);
        assert_eq!(both.stderr.matches("warning: ").count(), if loud { 2 } else { 0 }, "{}", both.stderr);
        assert_eq!(both.expect_json()["warnings"].as_array().map_or(0, Vec::len), if loud { 2 } else { 0 });
        let text = chorusctl(&home, ["session", "import", path]);
        assert_eq!((text.status, text.stderr.contains("skipped 2 of 11 entries")), (0, loud), "{}", text.stderr);
    }
}
