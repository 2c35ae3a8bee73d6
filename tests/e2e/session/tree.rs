//! `session tree`: what hangs from what, drawn from the catalog alone.

use std::fs;

use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::methods::session_branching::{BranchParams, Tree, TreeParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use serde_json::{Value, json};

use super::{branch, parted, say, tree};
use crate::home;

#[test]
fn branches_and_the_live_context_hang_from_where_they_began() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    say(&mut client, &["And then?"]);
    let found = tree(&mut client, "a");
    let base = found.roots[0];
    let shown: Vec<_> = found.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
    assert_eq!(shown, [(base, None), (one.header.id, Some(base)), (other.header.id, Some(base))]);
    let live = found.live.expect("a live context");
    assert_eq!((live.hangs_from, live.messages, live.unsaved), (Some(other.header.id), 4, 1));
    assert_eq!((found.roots.len(), found.gaps.len(), found.total, found.next), (1, 0, 3, None));

    let drawn = chorusctl(&home, ["session", "tree"]).expect_success();
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(
        lines[0].starts_with("* ") && lines[0].contains("the beginning") && lines[0].contains("2 messages"),
        "{drawn}"
    );
    assert!(lines[1].starts_with(&format!("|-o {}  one line", one.short_id)), "{drawn}");
    assert!(lines[2].starts_with(&format!("o {}  the other line", other.short_id)), "{drawn}");
    assert!(!drawn.contains("from message"), "both begin behind the last message: {drawn}");
    assert!(lines[3].starts_with("@ live") && lines[3].contains("4 messages, 1 unsaved"), "{drawn}");
    let value = chorusctl(&home, ["session", "tree", "--json"]).expect_json();
    assert_eq!((value["sessions"].as_array().map(Vec::len), &value["roots"]), (Some(3), &json!([base])));
    assert!(chorusctl(&home, ["session", "tree", "--format", "jsonl"]).expect_success().lines().count() == 3);
}

#[test]
fn as_a_page_it_links_to_the_pages_that_were_exported() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (_, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    say(&mut client, &["And then?"]);
    let last = client.save("a", "<script>x</script> & more");
    let page = chorusctl(&home, ["session", "tree", "--html"]).expect_success();
    assert_eq!(page.matches("<circle").count(), 5, "{page}");
    assert_eq!(page.matches("class=\"branch\"").count(), 4, "{page}");
    assert!(page.contains("&lt;script&gt;x&lt;/script&gt; &amp; more") && !page.contains("<script"), "{page}");
    assert!(page.contains("class=\"live\"") && page.contains("class=\"root\"") && !page.contains("<a "), "{page}");
    let pages = home.temp_dir().join("pages");
    let file = pages.join("tree.html");
    let (pages, path) = (pages.to_str().expect("a path"), file.to_str().expect("a path"));
    chorusctl(&home, ["export", &other.short_id, "--as", "html", "--output", &format!("{pages}/")]).expect_success();
    chorusctl(&home, ["session", "tree", "--html", "--output", path]).expect_success();
    let page = fs::read_to_string(&file).expect("a page");
    let links: Vec<&str> = page.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(links, [format!("{}.html", other.header.session_id)]);
    // It is read on other days.
    assert!(page.contains(&last.header.saved_at.to_string()[..10]) && !page.contains(" ago"), "{page}");
    // The index lists conversations, and the tree is none.
    chorusctl(&home, ["export", &last.short_id, "--as", "html", "--output", &format!("{pages}/")]).expect_success();
    let index = fs::read_to_string(std::path::Path::new(pages).join("index.html")).expect("an index");
    assert!(index.contains(&last.header.session_id) && !index.contains("tree.html"), "{index}");
    chorusctl(&home, ["session", "tree", "--output", path]).expect_failure(2);
}

#[test]
fn a_branch_says_where_it_leaves_and_what_stands_alone_is_not_drawn() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let alone = |client: &mut chorus_proto::Client, name: &str| {
        client.append("a", name);
        let saved = client.save("a", name);
        let clear =
            chorus_proto::methods::context::ClearParams { conversation: None, agent: Some("a".into()), save: false };
        client.call::<chorus_proto::methods::context::Clear>(&clear).expect("cleared");
        saved
    };
    alone(&mut client, "first alone");
    alone(&mut client, "second alone");
    let none = chorusctl(&home, ["session", "tree"]);
    assert_eq!((none.status, &*none.stdout), (0, ""));
    assert!(none.stderr.starts_with("no conversation continues another one\n"), "{}", none.stderr);
    assert_eq!(chorusctl(&home, ["session", "tree", "--all"]).expect_success().lines().count(), 2);
    say(&mut client, &["One?", "Two.", "Three?", "Four."]);
    let base = client.save("a", "the whole of it");
    for (at, name) in [(1, "early"), (3, "late"), (4, "at the end")] {
        branch(&mut client, "a", &base.short_id, BranchParams { at: Some(at), ..Default::default() })
            .expect("branched");
        say(&mut client, &[name]);
        client.save("a", name);
    }
    let drawn = chorusctl(&home, ["session", "tree"]).expect_success();
    let line = |name: &str| drawn.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {drawn}"));
    assert!(line("early").contains("  early  from message 1 of 4 · 2 messages · "), "{drawn}");
    assert!(line("late").contains("  late  from message 3 of 4 · 4 messages · "), "{drawn}");
    assert!(line("at the end").contains("  at the end  5 messages · "), "{drawn}");
    assert!(!drawn.contains("first alone") && drawn.contains("\nand 2 without a continuation"), "{drawn}");
    assert_eq!(chorusctl(&home, ["session", "tree", "--json"]).expect_json()["total"], 6);
    // The page says as much, and names an agent only if it has that one's alone.
    let page = chorusctl(&home, ["session", "tree", "--html"]).expect_success();
    assert!(page.contains("4 saved conversations, and 2 without a continuation"), "{page}");
    assert!(page.contains("<h1>Conversations that continue each other</h1>"), "{page}");
    let page = chorusctl(&home, ["--agent", "a", "session", "tree", "--html", "--all"]).expect_success();
    assert!(page.contains("<h1>Conversations of a</h1>") && !page.contains("without a continuation"), "{page}");
}

#[test]
fn what_has_lost_its_parent_hangs_from_a_named_gap() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    let (one, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    let base = tree(&mut client, "a").roots[0];
    let there = BranchParams { as_agent: Some("b".into()), ..Default::default() };
    branch(&mut client, "a", &one.short_id, there).expect("branched");
    let params = DeleteParams { agent: Some("a".into()), session: base.to_string(), ..Default::default() };
    client.call::<Delete>(&params).expect("deleted");
    let found = tree(&mut client, "a");
    assert_eq!((found.gaps[0].id, &found.gaps[0].agent_name, found.roots.len()), (base, &None, 1));
    let of = |id| found.sessions.iter().find(|session| session.id == id).expect("a session").hangs_from;
    assert_eq!(of(other.header.id), Some(base));
    let drawn = chorusctl(&home, ["--agent", "a", "session", "tree"]).expect_success();
    assert!(drawn.lines().any(|line| line == format!("x {base} (deleted)")), "{drawn}");
    // The other agent's context hangs from a session that is not its own.
    let found = tree(&mut client, "b");
    assert_eq!(found.gaps[0].session_id.as_deref(), Some(&*one.header.session_id));
    assert_eq!(found.live.expect("a live context").hangs_from, Some(one.header.id));
    let drawn = chorusctl(&home, ["--agent", "b", "session", "tree"]).expect_success();
    assert!(drawn.contains(&format!("x {} of a", one.header.session_id)), "{drawn}");
}

#[test]
fn parents_in_a_circle_and_unreadable_files_are_drawn_once() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut saved = Vec::new();
    for n in 0..4 {
        client.append("a", &format!("message {n}"));
        saved.push(client.save("a", &format!("save {n}")));
        let clear =
            chorus_proto::methods::context::ClearParams { conversation: None, agent: Some("a".into()), save: false };
        client.call::<chorus_proto::methods::context::Clear>(&clear).expect("cleared");
    }
    daemon.kill9();
    // Each has the one after it as its parent, the last one the first.
    for n in 0..3 {
        let parent = saved[(n + 1) % 3].header.id;
        let text = fs::read_to_string(&saved[n].file_path).expect("the file");
        let text = text.replace("\"parent_id\": null", &format!("\"parent_id\": \"{parent}\""));
        fs::write(&saved[n].file_path, text).expect("written");
    }
    fs::write(&saved[3].file_path, "no session").expect("written");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let found = chorus_tests::wait_until("the scan", chorus_tests::DEADLINE, || {
        let found = tree(&mut client, "a");
        (found.sessions.iter().any(|session| session.cycle) && found.sessions.iter().any(|s| s.corrupt.is_some()))
            .then_some(found)
    });
    assert_eq!((found.sessions.len(), found.roots.len()), (4, 2));
    assert_eq!(found.sessions.iter().filter(|session| session.cycle).count(), 1);
    let drawn = chorusctl(&home, ["session", "tree"]).expect_success();
    assert!(
        drawn.lines().count() == 5
            && drawn.ends_with("\nand 1 without a continuation (all: chorusctl session tree --all)\n"),
        "{drawn}"
    );
    let drawn = chorusctl(&home, ["session", "tree", "--all"]).expect_success();
    assert!(
        drawn.lines().count() == 4 && drawn.contains("unreadable file: ") && drawn.contains("cycle of parents"),
        "{drawn}"
    );
}

#[test]
fn a_long_history_comes_in_pages_and_from_the_catalog_alone() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let first = client.save("a", "first");
    daemon.kill9();
    // A chain of more than a thousand, as files.
    let text = fs::read_to_string(&first.file_path).expect("the file");
    let id = |n: u32| format!("00000000-0000-4000-8000-{n:012x}");
    for n in 1..=1200_u32 {
        let mut own = text.replace(&first.header.id.to_string(), &id(n));
        own = own.replace(&first.header.session_id, &format!("2026-01-01_n{n}"));
        own = own
            .replace(&first.header.started_at.to_string(), &format!("2026-01-01T00:{:02}:{:02}Z", n / 60 % 60, n % 60));
        if n > 1 {
            own = own.replace("\"parent_id\": null", &format!("\"parent_id\": \"{}\"", id(n - 1)));
        }
        let path = std::path::Path::new(&first.file_path).with_file_name(format!("2026-01-01_n{n}.json"));
        fs::write(path, own).expect("written");
    }
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    chorus_tests::wait_until("the scan", chorus_tests::DEADLINE * 6, || {
        (tree(&mut client, "a").total == 1201).then_some(())
    });
    let whole = tree(&mut client, "a");
    assert_eq!((whole.sessions.len(), whole.roots.len(), whole.next), (1201, 2, None));
    // The catalog is all that is asked: there need not be a file.
    let (files, aside) = (home.sessions_dir("a"), home.agent_dir("a").join("aside"));
    fs::rename(&files, &aside).expect("renamed");
    assert_eq!(tree(&mut client, "a"), whole);
    fs::rename(&aside, &files).expect("renamed");
    let (mut paged, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let page = TreeParams { agent: Some("a".into()), offset: Some(at), limit: Some(500), ..TreeParams::default() };
        let page = client.call::<Tree>(&page).expect("a page");
        // What belongs to the whole tree comes once.
        assert_eq!(page.roots, if at == 0 { whole.roots.clone() } else { Vec::new() });
        paged.extend(page.sessions);
        offset = page.next;
    }
    assert_eq!(paged, whole.sessions);
    // However long the chain is, it is one column wide.
    let drawn = chorusctl(&home, ["session", "tree"]).expect_success();
    assert_eq!(drawn.lines().filter(|line| line.starts_with("o ")).count(), 1199);
    let value: Value = chorusctl(&home, ["session", "tree", "--json"]).expect_json();
    assert_eq!(value["total"], 1201);
}
