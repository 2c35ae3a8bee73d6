//! The pictures of docs/screens/web, made with `cargo xtask bless`. They are looked at, and not compared: fonts differ.

use std::fs;
use std::path::PathBuf;

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::{NewMessage, Role, ToolCall};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use serde_json::value::RawValue;

use super::{PRICES, Web, import_transcripts};
use crate::approvals::{ASKING, queue_calls};
use crate::home;

const MAX_BYTES: usize = 150 << 10;

const ANSWER: &str = "The loader skips rows without a country:\n\n```rust\nif row.country.is_none() {\n    continue;\n}\n```\n\n\
    | file | rows | skipped |\n|---|--:|--:|\n| march.csv | 1,204 | 17 |\n| april.csv | 1,310 | 0 |\n\nShall I keep them with `unknown`?";

fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/screens/web/{name}.png"))
}

#[test]
fn each_picture_is_small() {
    for name in ["conversations", "conversation", "tree", "usage", "approval"] {
        for display in ["light", "dark", "phone"] {
            let name = format!("{name}-{display}");
            let size =
                fs::metadata(place(&name)).unwrap_or_else(|_| panic!("no {name}: run `cargo xtask bless`")).len();
            assert!(size <= MAX_BYTES as u64, "{name} has {size} bytes");
        }
    }
}

#[test]
fn the_pictures_can_be_made() {
    let tables = format!("{ASKING}{PRICES}");
    let fixture = Fixture::builder(home()).models().tables(&tables).start();
    fixture.create_agent("a", Some("asking"));
    import_transcripts(&fixture.home);
    let mut client = fixture.client();
    for name in ["api", "docs", "review"] {
        client.init(name);
    }
    let mut call = NewMessage::text(Role::Assistant, "I look into the loader.");
    let params = RawValue::from_string("{\"command\":\"grep -n country src/loader.rs\"}".into()).expect("JSON");
    call.tool_calls = vec![ToolCall { id: "1".into(), name: "bash".into(), params }];
    let mut result = NewMessage::text(Role::ToolResult, "12: if row.country.is_none() {\n13:     continue;");
    (result.tool_call_id, result.name) = (Some("1".into()), Some("bash".into()));
    let question = NewMessage::text(Role::User, "Why are rows missing in the report of March?");
    client.append_all("docs", vec![question, call, result, NewMessage::text(Role::Assistant, ANSWER)]);
    for (agent, text, description) in [
        ("api", "Which endpoints have no limit?", "Rate limits of the API"),
        ("api", "And which of them are public?", "Public endpoints"),
        ("review", "Read the change of the importer.", "Review of the importer"),
        ("docs", "Keep them with unknown.", "Rows without a country"),
        ("docs", "Also in April.", "Rows without a country, April"),
    ] {
        client.append(agent, text);
        let (agent, description) = (Some(agent.to_owned()), Some(description.to_owned()));
        client.call::<Save>(&SaveParams { agent, description, ..Default::default() }).expect("context.save");
    }
    chorusctl(&fixture.home, ["--agent", "docs", "restore", "latest~1", "--at", "4"]).expect_success();
    client.append("docs", "Drop them, and count them.");
    client.save("docs", "Rows are dropped and counted");
    queue_calls(&fixture, 1);
    let turn = fixture.spawn_send("a", "Which models are there?");
    let web = Web::start(&fixture.home, &[]);
    let Some(browser) = web.browse(&fixture.home) else { return };
    browser.wait_for("document.querySelector('#pending').innerText.trim() === '1'");
    for (display, (width, height), is_dark) in
        [("light", (1000, 700), false), ("dark", (1000, 700), true), ("phone", (360, 740), false)]
    {
        browser.set_display(width, height, is_dark);
        for (name, path) in [
            ("conversations", "/"),
            ("conversation", "/agent/docs/live/main"),
            ("tree", "/agent/docs/tree"),
            ("usage", "/usage"),
            ("approval", "/approvals"),
        ] {
            browser.open(&web.address(path));
            browser.wait_for("document.body.dataset.ready && document.fonts.status === 'loaded'");
            let picture = browser.screenshot();
            assert!(picture.len() <= MAX_BYTES, "{name}-{display} has {} bytes", picture.len());
            if std::env::var_os("CHORUS_BLESS").is_some() {
                let file = place(&format!("{name}-{display}"));
                fs::create_dir_all(file.parent().expect("a directory")).expect("docs/screens/web");
                fs::write(file, picture).expect("the picture");
            }
        }
    }
    browser.open(&web.address("/approvals"));
    browser.wait_for("document.body.dataset.ready");
    browser.click("button.yes");
    turn.join().expect("the turn").expect("its reply");
}
