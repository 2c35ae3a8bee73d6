//! Names that could be taken for something else, and those that cannot be used.

use chorus_tests::Fixture;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use rusqlite::Connection;

use super::{run, with_review};
use crate::home;

const ID: &str = "019ac4e2-0000-7000-8000-000000000001";

#[test]
fn a_name_that_looks_like_an_id_or_a_selector_is_refused() {
    let (home, _daemon) = with_review();
    run(&home, &["save", "the login"]);
    let plain_id = ID.replace('-', "");
    for (name, looks_like) in
        [(ID, "an ID"), (&plain_id, "an ID"), ("latest", "a selector of sessions"), ("42", "a selector of sessions")]
    {
        for args in [
            &["conversations", "new", name][..],
            &["conversations", "rename", "review", name],
            &["restore", "the-login", "--as-conversation", name],
        ] {
            let refused = chorusctl(&home, args.iter().copied());
            let said = refused.expect_failure_with_hint(2);
            assert!(said.contains(&format!("error: \"{name}\" looks like {looks_like}\n")), "{args:?} {said}");
            assert!(said.contains("choose another name"), "{said}");
        }
    }
    let long = "x".repeat(65);
    let refused = chorusctl(&home, ["conversations", "new", &*long]);
    let said = refused.expect_failure_with_hint(2);
    assert!(said.contains("conversation name xxx") && said.contains(" is too long"), "{said}");
    assert!(said.contains("hint: it has 65 characters; use at most 64"), "{said}");
}

#[test]
fn an_id_means_the_conversation_that_has_it_though_another_is_named_like_it() {
    let mut fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    let id = {
        let home = &fixture.home;
        run(home, &["-C", "nightly", "context", "append", "of the night"]);
        run(home, &["-C", "impostor", "context", "append", "of the impostor"]);
        let list = chorusctl(home, ["conversations", "--json"]).expect_json();
        let all = list["conversations"].as_array().expect("a list").clone();
        let nightly = all.into_iter().find(|one| one["name"] == "nightly").expect("nightly");
        nightly["id"].as_str().expect("an ID").to_owned()
    };
    fixture.kill();
    // An earlier release took such names.
    let database = Connection::open(fixture.home.path.join("db/live.db")).expect("the journal");
    let renamed = database.execute("UPDATE conversations SET name = ?1 WHERE name = 'impostor'", [&id]);
    assert_eq!(renamed.expect("renamed"), 1);
    let other = "UPDATE conversations SET name = ?1 WHERE name = 'other'";
    drop(database);
    fixture.start();
    let home = &fixture.home;
    fixture.reply("Good night.");
    chorusctl_with(home, ["-C", "nightly", "chat"], b"are you there?\n").expect_success();
    assert!(run(home, &["-C", "nightly", "show"]).contains("are you there?"));
    assert!(run(home, &["-C", &id, "show"]).contains("of the night"));
    // One that no ID matches is still reached by its name.
    run(home, &["-C", "other", "context", "append", "of the other"]);
    fixture.kill();
    let database = Connection::open(fixture.home.path.join("db/live.db")).expect("the journal");
    assert_eq!(database.execute(other, [ID]).expect("renamed"), 1);
    drop(database);
    fixture.start();
    let home = &fixture.home;
    assert!(run(home, &["-C", ID, "show"]).contains("of the other"));
    assert_eq!(run(home, &["conversations", "rename", ID, "other"]), format!("renamed {ID} to other\n"));
}

#[test]
fn a_hint_names_only_what_can_be_created() {
    let (home, _daemon) = with_review();
    let refused = chorusctl(&home, ["-C", "Review", "context", "append", "lost"]);
    assert!(refused.expect_failure(3).ends_with("hint: did you mean `review`?\n"), "{refused:?}");
    for args in [&["undo"][..], &["cancel"], &["save"], &["notes"], &["conversations", "close", "nosuch"]] {
        let unknown = chorusctl(&home, [&["-C", "nosuch"], args].concat());
        let said = unknown.expect_failure(3);
        assert!(said.contains("hint: list them: chorusctl --agent api conversations\n"), "{args:?} {said}");
    }
}
