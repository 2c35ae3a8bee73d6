//! The ways to name a session.

use std::collections::BTreeMap;

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, Client, ErrorKind, Session, SessionHeader};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, InteractiveCommand};

use crate::home;

fn get(client: &mut Client, selector: &str) -> Result<Session, CallError> {
    let params = GetParams { agent: Some("a".into()), session: selector.into(), limit: Some(0), ..Default::default() };
    client.call::<Get>(&params).map(|found| found.session)
}

/// Saves `count` sessions of agent `a`, newest first.
fn saved(client: &mut Client, count: usize) -> Vec<Session> {
    client.init("a");
    client.append("a", "one");
    let mut sessions: Vec<_> = (0..count).map(|n| client.save("a", &format!("save {n}"))).collect();
    sessions.reverse();
    sessions
}

#[test]
fn each_way_finds_its_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 12);
    let newest = &sessions[0].header;
    let uuid = newest.id.to_string();
    let selectors = ["latest", "latest~0", &newest.session_id, &uuid, &sessions[0].short_id, &uuid[..20]];
    for selector in selectors.into_iter().chain([uuid.to_uppercase().as_str()]) {
        assert_eq!(get(&mut client, selector).expect(selector).header.id, newest.id, "{selector}");
    }
    assert_eq!(get(&mut client, "latest~11").expect("the oldest").header.id, sessions[11].header.id);
    for nothing in ["latest~12", "latest~", "latest~-1", "latest~x", "yesterday", "0000000000", "", "..", "/etc/passwd"]
    {
        let kind = expect_error_kind(get(&mut client, nothing));
        assert_eq!(kind, ErrorKind::SessionNotFound, "{nothing:?}");
    }
}

#[test]
fn a_prefix_must_be_unique_and_an_ambiguous_one_lists_its_candidates() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 3);
    let date = &sessions[0].header.session_id[..10];
    match get(&mut client, date) {
        Err(CallError::Rpc(error)) => {
            assert_eq!(error.kind(), ErrorKind::Ambiguous);
            let said = format!("{} {:?}", error.message, error.data);
            let listed = sessions
                .iter()
                .filter(|session| said.contains(&session.header.session_id) || said.contains(&session.short_id));
            assert_eq!(listed.count(), 3, "{said}");
        }
        other => panic!("an ambiguous prefix gave {other:?}"),
    }
    chorusctl(&home, ["session", "show", date]).expect_failure_with_hint(7);
    assert!(get(&mut client, &sessions[1].header.session_id[..3]).is_err(), "three characters are too few");
    // `…_save-1` is also the beginning of nothing else here; an exact match wins over being a prefix.
    client.save("a", "save 1");
    let exact = get(&mut client, &sessions[1].header.session_id).expect("exact");
    assert_eq!(exact.header.id, sessions[1].header.id);
}

#[test]
fn slugs_words_and_tags_name_a_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let crypto = client.save("a", "Crypto baseline for the shop").header;
    let rate = client.save("a", "Rate limiter of the gateway").header;
    let limits = client.save("a", "Limits of the shop").header;
    chorusctl(&home, ["session", "tag", &rate.session_id, "billing"]).expect_success();
    for (selector, id) in [
        ("crypto-baseline", crypto.id),
        ("crypto-baseline-for-the-shop", crypto.id),
        ("limiter", rate.id),
        ("rate LIMITER", rate.id),
        ("tag:billing", rate.id),
        ("#billing", rate.id),
        ("limits", limits.id),
        ("@", limits.id),
        ("-", rate.id),
    ] {
        assert_eq!(get(&mut client, selector).expect(selector).header.id, id, "{selector}");
    }
    for nothing in ["limit of", "rypto", "tag:nothing", "#", "ga"] {
        assert_eq!(expect_error_kind(get(&mut client, nothing)), ErrorKind::SessionNotFound, "{nothing}");
    }
    // The words of two titles: both are listed, each on a line with its date and title.
    let output = chorusctl(&home, ["show", "shop"]);
    assert_eq!(output.status, 7, "{output:?}");
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines[0], "error: \"shop\" matches 2 sessions");
    let id = |header: &SessionHeader| format!("  {}  20", &header.id.to_string()[..8]);
    assert!(lines[2].starts_with(&id(&limits)) && lines[2].ends_with("  Limits of the shop"), "{output:?}");
    assert!(lines[3].starts_with(&id(&crypto)) && lines[3].ends_with("  Crypto baseline for the shop"), "{output:?}");
    client.restore("a", &crypto.session_id);
    assert_eq!(get(&mut client, "@").expect("the live one").header.id, crypto.id);
    let long = chorusctl(&home, ["history", "--long"]).expect_success();
    assert!(long.contains("Rate limiter of the gateway #billing"), "{long}");
}

/// A part of a title is a word of it where its script has no spaces.
#[test]
fn titles_in_any_script_are_found_by_their_words() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let moved = client.save("a", "数据库迁移计划").header;
    client.append("a", "two");
    let cafe = client.save("a", "Größe des Cafés").header;
    for (selector, id) in
        [("迁移", moved.id), ("数据库", moved.id), ("数据库迁移计划", moved.id), ("cafés", cafe.id), ("GRÖßE", cafe.id)]
    {
        assert_eq!(get(&mut client, selector).expect(selector).header.id, id, "{selector}");
    }
    for part in ["größ", "库计"] {
        assert_eq!(expect_error_kind(get(&mut client, part)), ErrorKind::SessionNotFound, "{part}");
    }
}

/// Cron saves with the same description each time, with or without something new.
#[test]
fn a_name_of_several_saves_lists_them_and_never_means_the_oldest() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let save = || chorusctl(&home, ["save", "nightly", "--no-wait"]).expect_success();
    assert!(!save().contains("unchanged"));
    let first = get(&mut client, "nightly").expect("the only one");
    let said = save();
    let unchanged =
        format!("\nunchanged since {} ({}); this is a copy of it\n", first.header.session_id, first.short_id);
    assert!(said.contains("_nightly-2 (") && said.contains(&unchanged), "{said}");
    let shown = chorusctl(&home, ["show", "nightly"]);
    assert_eq!(shown.status, 7, "{shown:?}");
    let lines: Vec<&str> = shown.stderr.lines().collect();
    assert_eq!(lines[0], "error: \"nightly\" matches 2 sessions");
    assert!(!lines[2].contains(&first.short_id) && lines[3].contains(&first.short_id), "{shown:?}");
    // The whole name, and one that somebody gave with its number, are exact.
    assert_eq!(get(&mut client, &first.header.session_id).expect("exact").header.id, first.header.id);
    let given = client.save("a", "weekly 2").header;
    let weekly = client.save("a", "weekly").header;
    assert_eq!(get(&mut client, "weekly").expect("exact").header.id, weekly.id);
    assert_eq!(get(&mut client, "weekly-2").expect("exact").header.id, given.id);
    // Something new, and nothing is said to be unchanged.
    client.append("a", "two");
    assert!(!save().contains("unchanged"));
}

#[test]
fn a_name_of_two_agents_is_said_to_be_of_both() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut save = |agent: &str| {
        client.init(agent);
        client.append(agent, "the same beginning");
        let saved = chorusctl(&home, ["--agent", agent, "--json", "save", "--no-wait"]).expect_json();
        saved["session"].clone()
    };
    let (a, b) = (save("a"), save("b"));
    let name = a["session_id"].as_str().expect("a name");
    assert_eq!(a["session_id"], b["session_id"]);
    let short = |session: &serde_json::Value| session["short_id"].as_str().expect("a short id").to_owned();
    // Neither belongs to the agent that is meant: both are listed.
    daemon.client().init("c");
    chorusctl(&home, ["agent", "use", "c"]).expect_success();
    let shown = chorusctl(&home, ["show", name]);
    assert_eq!(shown.status, 7, "{shown:?}");
    for (session, agent) in [(&a, "  a"), (&b, "  b")] {
        let line = shown.stderr.lines().find(|line| line.contains(&short(session))).expect("a candidate");
        assert!(line.contains(agent), "{line}");
    }
    // One does: it is shown, and the other is named. With --agent there is nothing to say.
    chorusctl(&home, ["agent", "use", "a"]).expect_success();
    let shown = chorusctl(&home, ["show", name]);
    assert_eq!(shown.status, 0);
    assert!(shown.stdout.contains(a["id"].as_str().expect("an id")), "{shown:?}");
    assert!(shown.stderr.contains(&format!("b ({})", short(&b))), "{shown:?}");
    let restored = chorusctl(&home, ["restore", name]);
    assert!(restored.status == 0 && restored.stderr.contains(&format!("b ({})", short(&b))), "{restored:?}");
    let shown = chorusctl(&home, ["--agent", "b", "show", name]);
    assert!(shown.stdout.contains(b["id"].as_str().expect("an id")) && shown.stderr.is_empty(), "{shown:?}");
}

#[test]
fn history_numbers_mean_what_the_last_history_showed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 12);
    let show = |selector: &str| chorusctl(&home, ["--json", "session", "show", selector]);
    chorusctl(&home, ["context", "history"]).expect_success();
    let by_number: BTreeMap<usize, String> = (1..=10)
        .map(|n| (n, show(&n.to_string()).expect_json()["session"]["id"].as_str().expect("an id").to_owned()))
        .collect();
    for (n, id) in &by_number {
        assert_eq!(*id, sessions[n - 1].header.id.to_string(), "number {n}");
    }
    client.save("a", "one more");
    assert_eq!(show("1").expect_json()["session"]["id"], by_number[&1], "still what was shown");
    chorusctl(&home, ["context", "history", "--page", "2"]).expect_success();
    assert_eq!(
        show("11").expect_json()["session"]["id"],
        sessions[9].header.id.to_string(),
        "numbers go on over pages"
    );
    assert_eq!(show("2").expect_json()["session"]["id"], by_number[&2], "and those before hold");
    show("9999").expect_failure(3);
}

/// `models add`, for example, restarts the daemon between a list and the command that uses it.
#[test]
fn history_numbers_stay_over_a_restart_but_not_over_a_crash() {
    let home = home();
    let daemon = Daemon::start(&home);
    let sessions = saved(&mut daemon.client(), 2);
    let show = || chorusctl(&home, ["--json", "show", "2"]);
    chorusctl(&home, ["history"]).expect_success();
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_eq!(show().expect_json()["session"]["id"], sessions[1].header.id.to_string());
    // An older list than the one that was shown last must not select anything.
    daemon.kill9();
    let daemon = Daemon::start(&home);
    show().expect_failure(3);
    assert!(daemon.terminate().success());
    let file = home.path.join("run/history_numbers.json");
    assert!(!file.exists(), "no list was shown");
    std::fs::write(&file, "damaged").expect("a file");
    let _daemon = Daemon::start(&home);
    show().expect_failure(3);
    assert!(!file.exists());
}

/// Otherwise `rm 1` would delete a conversation that is not on the screen.
#[test]
fn numbers_mean_the_list_on_the_screen_whichever_agent_it_is_of() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    saved(&mut client, 2);
    client.init("b");
    client.append("b", "of b");
    let b = client.save("b", "only one of b");
    chorusctl(&home, ["agent", "use", "a"]).expect_success();
    chorusctl(&home, ["history"]).expect_success();
    chorusctl(&home, ["history", "b"]).expect_success();
    let shown = || chorusctl(&home, ["--json", "show", "1"]).expect_json()["session"]["id"].clone();
    assert_eq!(shown(), b.header.id.to_string());
    // A list that nobody is shown, such as a completion, does not count.
    let unseen = HistoryParams { agent: Some("a".into()), keep_numbers: true, ..HistoryParams::default() };
    assert_eq!(client.call::<History>(&unseen).expect("listed").sessions.len(), 2);
    assert_eq!(shown(), b.header.id.to_string());
    let words = chorusctl(&home, ["history", "nosuchword"]);
    assert_eq!(words.status, 3, "{words:?}");
    assert_eq!(shown(), b.header.id.to_string());
    // Every command that only reads takes it.
    let exported = chorusctl(&home, ["export", "1", "--as", "md"]).expect_success();
    assert!(exported.contains("of b") && exported.contains("**Agent:** b"), "{exported}");
    let diff = chorusctl(&home, ["--json", "session", "diff", "1", "latest"]).expect_json();
    assert_eq!((&diff["a"]["agent_name"], &diff["b"]["agent_name"]), (&"b".into(), &"a".into()));
    // What changes something takes it only with --agent, and the hint is a command that does so.
    for command in ["restore", "rm"] {
        let refused = chorusctl(&home, [command, "1"]);
        let hint = format!("chorusctl --agent b {command} {}", b.header.session_id);
        assert!(refused.expect_failure_with_hint(6).contains(&hint), "{refused:?}");
    }
    chorusctl(&home, ["rm", "2"]).expect_failure(3);
}

#[test]
fn many_candidates_are_cut_to_the_terminal_and_the_rest_is_counted() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    for n in 1..=7 {
        client.save("a", &format!("Flight {n} of the long way around the world, by night"));
    }
    let output = chorusctl(&home, ["show", "flight"]);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!((lines[0], lines.len()), ("error: \"flight\" matches 7 sessions", 8), "{output:?}");
    assert!(lines[2].ends_with("Flight 7 of the long way around the world, by night"), "{output:?}");
    assert_eq!(lines[7], "  … and 2 more: chorusctl history flight");
    // On a terminal of sixty columns, no line is wrapped.
    let mut command = home.command(home.bins.chorusctl);
    command.args(["show", "flight"]);
    let (_, shown, _) = InteractiveCommand::on_terminal_of(&command, 60, 24).wait_for_exit();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 8, "{shown}");
    assert!(lines.iter().all(|line| line.chars().count() <= 60) && lines[2].ends_with('…'), "{shown}");
}

/// An ID that `search` prints says all that reading needs.
#[test]
fn one_session_of_all_agents_is_read_without_naming_its_agent() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        client.append(agent, &format!("words of {agent}"));
    }
    let (of_a, of_b) = (client.save("a", "both"), client.save("b", "both"));
    client.append("b", "more");
    let only = client.save("b", "only").header;
    let prefix = of_a.header.id.to_string();
    for (id, agent) in [(&*of_a.short_id, "a"), (&prefix, "a"), (&of_b.short_id, "b"), (&only.session_id, "b")] {
        let words = format!("words of {agent}");
        for args in [
            &["show", id][..],
            &["show", id, "--last", "9"],
            &["show", "--format", "jsonl", id],
            &["export", id],
            &["export", id, "--as", "md"],
            &["session", "show", id],
        ] {
            let shown = chorusctl(&home, args).expect_success();
            assert!(shown.contains(&words), "{args:?}: {shown}");
        }
    }
    // What is not unique, or says nothing of the agent, still asks for it; so does everything that changes something.
    for args in [
        &["show", &of_a.header.session_id][..],
        &["show", "latest"],
        &["show", "nothing-like-it"],
        &["show"],
        &["history"],
        &["restore", &of_a.short_id],
        &["rm", &of_a.short_id],
    ] {
        let told = chorusctl(&home, args);
        assert!(told.expect_failure(3).contains("several agents (a, b): which one?"), "{args:?}: {told:?}");
    }
}

#[test]
fn the_hint_about_a_message_number_names_the_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 1);
    let id = &*sessions[0].short_id;
    for (args, command) in [
        (&["show", id, "--at", "300"][..], format!("chorusctl show {id}")),
        (&["show", "latest", "--around", "300"], "chorusctl show latest".to_owned()),
        (&["show", "@main", "--at", "300"], "chorusctl show @main".to_owned()),
        (&["show", "--at", "300"], "chorusctl show".to_owned()),
    ] {
        let told = chorusctl(&home, args);
        let hint = format!("hint: list the messages with their numbers: {command}\n");
        assert!(told.expect_failure(3).ends_with(&hint), "{args:?}: {told:?}");
    }
}
