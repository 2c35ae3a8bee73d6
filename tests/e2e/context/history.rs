//! `context history`: newest first, page by page.

use chorus_proto::methods::context::{History, HistoryParams, HistoryResult, Save, SaveParams};
use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::InteractiveCommand;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;

use crate::home;

fn history(client: &mut Client, params: HistoryParams) -> HistoryResult {
    client.call::<History>(&params).expect("the history")
}

fn of_a() -> HistoryParams {
    HistoryParams { agent: Some("a".into()), ..Default::default() }
}

fn names(result: &HistoryResult) -> Vec<&str> {
    result.sessions.iter().filter_map(|session| session.header.description.as_deref()).collect()
}

#[test]
fn ten_to_a_page_newest_first() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    for n in 1..=23 {
        client.save("a", &format!("save {n}"));
    }
    let first = history(&mut client, of_a());
    assert_eq!((first.total, first.page, first.pages, first.sessions.len()), (23, 1, 3, 10));
    assert_eq!(names(&first)[..2], ["save 23", "save 22"]);
    let last = history(&mut client, HistoryParams { page: Some(3), ..of_a() });
    assert_eq!(names(&last), ["save 3", "save 2", "save 1"]);
    let beyond = history(&mut client, HistoryParams { page: Some(4), ..of_a() });
    assert_eq!((beyond.sessions.len(), beyond.total), (0, 23));
    let five = history(&mut client, HistoryParams { page: Some(2), limit: Some(5), ..of_a() });
    assert_eq!((names(&five)[0], five.pages), ("save 18", 5));
    let whole = history(&mut client, HistoryParams { limit: Some(1000), ..of_a() });
    for limit in [1, 4, 11, 22] {
        let page = |n| history(&mut client, HistoryParams { page: Some(n), limit: Some(limit), ..of_a() });
        let pages: Vec<_> = (1..=23_u64.div_ceil(limit)).map(page).collect();
        let walked: Vec<&str> = pages.iter().flat_map(names).collect();
        assert_eq!(walked, names(&whole), "{limit} to a page");
    }
    for wrong in [HistoryParams { page: Some(0), ..of_a() }, HistoryParams { limit: Some(0), ..of_a() }] {
        assert_eq!(expect_error_kind(client.call::<History>(&wrong)), ErrorKind::InvalidParams);
    }
}

#[test]
fn it_can_be_narrowed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for (agent, tag) in [("a", "red"), ("a", "blue"), ("b", "red")] {
        if agent == "b" || tag == "red" {
            client.init(agent);
        }
        client.append(agent, "one");
        let (agent, description) = (Some(agent.into()), Some(format!("{agent} {tag}")));
        client
            .call::<Save>(&SaveParams { conversation: None, agent, description, tag: vec![tag.into()], clear: false })
            .expect("saved");
    }
    let tagged = history(&mut client, HistoryParams { tag: Some("red".into()), ..of_a() });
    assert_eq!(names(&tagged), ["a red"]);
    let everywhere = HistoryParams { agent: None, all_agents: true, ..Default::default() };
    assert_eq!(names(&history(&mut client, everywhere.clone())), ["b red", "a blue", "a red"]);
    let red = HistoryParams { tag: Some("red".into()), ..everywhere };
    assert_eq!(names(&history(&mut client, red)), ["b red", "a red"]);
    for since in ["1h", "7d", "1h30m", "2020-01-01"] {
        let recent = HistoryParams { since: Some(since.into()), ..of_a() };
        assert_eq!(history(&mut client, recent).total, 2, "{since}");
    }
    let future = HistoryParams { since: Some("2999-01-01".into()), ..of_a() };
    assert_eq!(history(&mut client, future).total, 0);
    let wrong = HistoryParams { since: Some("whenever".into()), ..of_a() };
    assert_eq!(expect_error_kind(client.call::<History>(&wrong)), ErrorKind::InvalidParams);
}

#[test]
fn the_command_line_lists_what_a_person_needs_to_restore() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let empty = chorusctl(&home, ["--json", "context", "history"]).expect_json();
    assert_eq!(empty["total"], 0);
    client.append("a", "one");
    let session = client.save("a", "What it was about");
    let text = chorusctl(&home, ["context", "history"]).expect_success();
    assert!(text.contains(&session.short_id) && text.contains("What it was about"), "{text}");
    let json = chorusctl(&home, ["context", "history", "a", "--json"]).expect_json();
    assert_eq!(json["sessions"][0]["id"], session.header.id.to_string());
    let all = chorusctl(&home, ["context", "history", "--all-agents"]).expect_success();
    assert!(all.contains(&session.short_id), "{all}");
}

#[test]
fn json_lists_are_whole_unless_a_limit_is_given() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    for _ in 0..12 {
        client.save("a", "again");
    }
    let count = |args: &[&str]| {
        let all = [&["--json", "context", "history"], args].concat();
        chorusctl(&home, all).expect_json()["sessions"].as_array().map(Vec::len)
    };
    assert_eq!(count(&[]), Some(12));
    assert_eq!(count(&["--limit", "5"]), Some(5));
}

#[test]
fn the_marked_beginning_of_an_id_is_enough_to_name_its_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    for n in 1..=40 {
        client.save("a", &format!("save {n}"));
    }
    let all = history(&mut client, HistoryParams { limit: Some(100), ..of_a() });
    for session in &all.sessions {
        let prefix = session.unique_prefix.clone().expect("a prefix");
        assert!(session.short_id.starts_with(&prefix) && (4..=8).contains(&prefix.len()), "{prefix}");
        assert_eq!(client.get_session("a", &prefix).0.header.id, session.header.id, "{prefix}");
    }
    let newest = &all.sessions[0];
    let prefix = newest.unique_prefix.clone().expect("a prefix");
    let colored = chorusctl(&home, ["--color", "always", "history"]).expect_success();
    assert!(colored.contains(&format!("\u{1b}[1;4;36m{prefix}\u{1b}[0m")), "{colored}");
    let plain = chorusctl(&home, ["history"]).expect_success();
    assert!(plain.contains(&format!(" {} ", newest.short_id)) && !plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn words_find_titles_names_and_tags() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "flight"] {
        client.init(agent);
        client.append(agent, "one");
    }
    let crypto = client.save("a", "Crypto baseline for the shop").header;
    client.save("a", "Rate limiter of the gateway");
    client.save("flight", "Another one");
    chorusctl(&home, ["agent", "use", "a"]).expect_success();
    chorusctl(&home, ["session", "tag", &crypto.session_id, "Billing"]).expect_success();
    for (words, found) in [
        (&["CRYPTO"][..], 1),
        (&["shop", "crypto"], 1),
        (&["crypto baseline"], 1),
        (&["shop", "gateway"], 0),
        (&["the"], 2),
        (&["billing"], 1),
        (&["crypto-base"], 1),
    ] {
        let said = chorusctl(&home, ["history", "--json"].iter().chain(words)).expect_json();
        assert_eq!(
            (&said["total"], said["sessions"].as_array().map(Vec::len)),
            (&found.into(), Some(found)),
            "{words:?}"
        );
    }
    // A single word that nothing matches may be a mistyped name.
    let unknown = chorusctl(&home, ["history", "100%_"]);
    assert!(
        unknown.expect_failure_with_hint(3).contains("and no session has it in its title, name or tags"),
        "{unknown:?}"
    );
    // The name of an agent means that agent, and words may follow it.
    assert!(chorusctl(&home, ["history", "flight"]).expect_success().contains("Another one"));
    assert_eq!(chorusctl(&home, ["history", "flight", "crypto"]).stderr, "no sessions match\n");
    assert!(chorusctl(&home, ["history", "-n", "1"]).expect_success().contains("page 1 of 2 · 2 sessions"));
}

#[test]
fn words_are_found_in_any_script_and_case_and_with_escaped_characters_in_all_agents() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for (agent, title) in [("a", "Größe der \"Änderung\" in C:\\temp"), ("b", "ПРИВЕТ été")] {
        client.init(agent);
        client.append(agent, "x");
        client.save(agent, title);
    }
    // Two agents and no default: words are looked for in all of them.
    for (word, title) in [
        ("GRÖßE", "Größe der \"Änderung\" in C:\\temp"),
        ("\"änderung\"", "Größe der \"Änderung\" in C:\\temp"),
        ("c:\\TEMP", "Größe der \"Änderung\" in C:\\temp"),
        ("привет", "ПРИВЕТ été"),
        ("ÉTÉ", "ПРИВЕТ été"),
    ] {
        let found = chorusctl(&home, ["history", "--json", word]).expect_json();
        assert_eq!((&found["total"], &found["sessions"][0]["description"]), (&1.into(), &title.into()), "{word}");
    }
    // The numbers mean this list.
    assert!(chorusctl(&home, ["history", "привет"]).expect_success().contains("ПРИВЕТ"));
    assert!(chorusctl(&home, ["--agent", "b", "show", "1"]).expect_success().contains('x'));
    // A command that takes a session finds it by these words, too.
    for word in ["\"änderung\"", "GRÖßE", "c:\\TEMP"] {
        chorusctl(&home, ["--agent", "a", "session", "show", word]).expect_success();
    }
    // Without words, it matters whose conversations are meant.
    chorusctl(&home, ["history"]).expect_failure_with_hint(3);
}

#[test]
fn the_time_of_an_imported_conversation_is_its_own() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "x");
    client.save("a", "saved now");
    let line = |at: &str| format!("{{\"role\":\"user\",\"content\":\"from {at}\",\"timestamp\":\"{at}\"}}\n");
    let now = jiff::Timestamp::now().to_string();
    for at in ["2020-01-02T03:04:05Z", &*now] {
        import_transcript(&mut client, "a", ImportFormat::Openai, &line(at), 100).expect("imported");
    }
    for (since, total) in [("2019-01-01", 3), ("yesterday", 2), ("today", 2), ("1h", 2)] {
        let recent = HistoryParams { since: Some(since.into()), ..of_a() };
        assert_eq!(history(&mut client, recent).total, total, "{since}");
    }
}

#[test]
fn a_page_names_the_command_for_the_next_one() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    for n in 1..=3 {
        client.save(
            "a",
            &format!("it's save {n} with a title of many words that fills more than one line of a terminal"),
        );
    }
    let list = ["history", "-n", "2", "--since", "1h", "it's", "save", "--long"];
    let first = chorusctl(&home, list).expect_success();
    let next = r"next page: `chorusctl history --limit 2 --since 1h --long 'it'\''s' save --page 2`";
    assert!(first.ends_with(&format!("page 1 of 2 · 3 sessions\n{next}\n")), "{first}");
    let last = chorusctl(&home, list.iter().chain(&["--page", "2"])).expect_success();
    assert!(last.ends_with("page 2 of 2 · 3 sessions\n"), "{last}");
    // Lines break at words.
    let mut command = home.command(home.bins.chorusctl);
    command.args(["history", "--long"]);
    let (_, shown, _) = InteractiveCommand::on_terminal_of(&command, 60, 200).wait_for_exit();
    let words: Vec<_> = shown.split_whitespace().collect();
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    assert_eq!(words.iter().filter(|word| **word == "terminal").count(), 3, "{shown}");
    assert!(shown.lines().filter(|line| line.starts_with("             ")).count() >= 3, "{shown}");
}

#[test]
fn a_number_that_is_wrong_is_said_in_plain_words() {
    let home = home();
    for (args, what) in [
        (&["history", "--page", "0"][..], "--page must be at least 1"),
        (&["history", "-n", "x"], "not a number: x"),
        (&["undo", "abc"], "not a number: abc"),
    ] {
        let said = chorusctl(&home, args);
        assert!(said.expect_failure_with_hint(2).starts_with(&format!("error: {what}\nhint: ")), "{said:?}");
    }
}
