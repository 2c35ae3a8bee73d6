//! A home that has everything is copied to PostgreSQL, used there, and copied back.

use std::time::Duration;

use chorus_proto::Client;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, wait_until};
use serde_json::{Value, json};

use super::{CopiedHome, assert_same, call, everything, rows};

const ASKING: &str = "[permissions.asking]\nask = [\"tool:list_models:.*\"]\nallow = [\".*\"]\nbash = \"whole\"\n";

/// Stores something of every kind, except what comes from Discord.
fn fill(client: &mut Client) {
    client.init("docs");
    client.init("gone");
    client.append("docs", "the lighthouse is \"green\" \u{1f600} \0");
    client.save("docs", "lighthouse");
    client.append("docs", "it has two floors");
    client.save("docs", "two floors");
    client.append("docs", "and a cellar");
    call(client, "context.pin", &json!({"agent": "docs", "fact": "the paint is from 1910"}));
    call(client, "session.tag", &json!({"agent": "docs", "session": "latest", "tag": ["paint", "old"]}));
    call(client, "memory.add", &json!({"agent": "docs", "text": "measure twice"}));
    call(client, "conversations.new", &json!({"agent": "docs", "name": "side", "title": "Ärger"}));
    call(client, "context.append", &json!({"agent": "docs", "conversation": "side", "text": "aside", "key": "once"}));
    client.append("gone", "farewell");
    client.save("gone", "farewell");
    client.append("gone", "twice");
    client.save("gone", "twice");
    call(client, "session.delete", &json!({"agent": "gone", "session": "latest"}));
    call(client, "agent.destroy", &json!({"name": "gone"}));
    client.init("purged");
    client.append("purged", "nothing is left of this");
    client.save("purged", "purged");
    call(client, "agent.destroy", &json!({"name": "purged", "purge": true}));
}

/// Asks the model, whose call needs an approval, and denies it.
fn deny_a_call(home: &CopiedHome, model: &ModelServer, client: &mut Client) {
    call(client, "agent.init", &json!({"name": "asks", "permissions": "asking", "model": "anthropic/claude-test"}));
    model.anthropic().queue(Response::empty().then_call("c0", "list_models", &json!({})));
    model.anthropic().queue(Response::text(["Done."]));
    let mut send = home.home.command(home.home.bins.chorusctl);
    let send = send.args(["send", "--agent", "asks", "Which are there?"]);
    let mut sent = send.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().expect("a send");
    let id = wait_until("an approval", DEADLINE, || {
        let listed = call(client, "approvals.list", &json!({}));
        listed["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    call(client, "approvals.deny", &json!({"id": id}));
    wait_until("the end of the turn", DEADLINE, || sent.try_wait().expect("a status"));
}

fn append_once(client: &mut Client) -> Value {
    let params = json!({"agent": "docs", "conversation": "side", "text": "aside", "key": "once"});
    call(client, "context.append", &params)
}

#[test]
fn all_is_the_same_in_postgresql_and_back_in_sqlite() {
    let (discord, model) = (FakeDiscord::start(), ModelServer::start());
    discord.set_identify_interval(Duration::ZERO);
    let server = discord.create_guild("home");
    let lobby = server.create_channel("lobby");
    let mara = server.add_member("mara", &[], 0);
    // Summaries are made without a model, so that it answers only what is asked here.
    let models = model.config_toml().replace("default_model = \"anthropic/claude-test\"\n", "");
    let config = format!("{models}{}{ASKING}", discord.config_toml());
    let Some(home) = CopiedHome::create(&config) else { return };
    let agents = ["docs", "asks"];

    let daemon = Daemon::start(&home.home);
    let mut client = daemon.client();
    // A server whose commands are there is known.
    mara.run_slash_command(&lobby, "ping", &[]).response_with("is online");
    fill(&mut client);
    deny_a_call(&home, &model, &mut client);
    let room = server.wait_for_channel("asks");
    room.wait_for_post("is ready");
    model.anthropic().queue(Response::text(["It is green."]));
    room.say(&mara, "what colour is it?");
    room.wait_for_post("It is green.");
    let last_event = client.events(0).last().expect("an event").seq;
    drop(client);
    assert!(daemon.terminate().success());
    let before = home.everything(&agents);

    let former = home.config();
    let copied = home.to_postgres().expect_json();
    assert_eq!((rows(&copied, "agents"), rows(&copied, "memories"), rows(&copied, "approvals")), (4, 1, 1));
    assert!(rows(&copied, "records") >= 4 && rows(&copied, "discord_channels") >= 1, "{copied}");
    let added = format!("[store]\nkind = \"postgres\"\nurl_file = \"{}\"\n", home.url_file().display());
    assert_eq!(home.config(), format!("{former}\n{added}"));

    let daemon = Daemon::start(&home.home);
    let mut client = daemon.client();
    assert_same(&before, &everything(&mut client, &agents));
    let events = client.events(0);
    assert!(
        events.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1) && events.last().expect("one").seq > last_event
    );
    // A request with a known key adds nothing, neither there nor back here.
    assert_eq!(append_once(&mut client)["messages"], 1);
    assert_eq!(client.messages_in("docs", "side").len(), 1);
    // The channel is the same, and the conversation continues in it.
    model.anthropic().queue(Response::text(["Still green."]));
    room.say(&mara, "and now?");
    room.wait_for_post("Still green.");
    client.append("docs", "written in PostgreSQL");
    client.save("docs", "from PostgreSQL");
    call(&mut client, "trash.restore", &json!({"id": "gone"}));
    client.append("gone", "back again");
    call(&mut client, "memory.add", &json!({"agent": "gone", "text": "restored"}));
    let agents = ["docs", "asks", "gone"];
    drop(client);
    assert!(daemon.terminate().success());
    let before = home.everything(&agents);

    let copied = home.to_sqlite().expect_json();
    assert_eq!((rows(&copied, "agents"), rows(&copied, "memories")), (4, 2));
    assert_eq!(home.config(), format!("{former}\n{added}").replace("postgres", "sqlite"));
    let aside = copied["set_aside"].as_str().expect("the former databases");
    assert!(std::path::Path::new(aside).join("live.db").is_file());
    let daemon = Daemon::start(&home.home);
    let mut client = daemon.client();
    assert_same(&before, &everything(&mut client, &agents));
    assert_eq!(append_once(&mut client)["messages"], 1);
    model.anthropic().queue(Response::text(["It stays green."]));
    room.say(&mara, "and here?");
    room.wait_for_post("It stays green.");
    client.append("docs", "written in SQLite again");
    let found = chorusctl(&home.home, ["doctor"]);
    assert_eq!(found.status, 0, "{}{}", found.stdout, found.stderr);
    drop(client);
    assert!(daemon.terminate().success());
}

#[test]
fn sessions_go_to_the_bucket_and_come_back_from_it() {
    let bucket = tempfile::tempdir().expect("a directory");
    let config = format!("[store.sessions]\nkind = \"dir\"\npath = \"{}\"\n", bucket.path().join("b").display());
    let Some(home) = CopiedHome::create(&config) else { return };
    home.with_daemon(|client| {
        client.init("docs");
        for name in ["one", "two", "three"] {
            client.append("docs", name);
            client.save("docs", name);
        }
    });
    let before = home.everything(&["docs"]);
    let copied = home.to_postgres().expect_json();
    assert_eq!((&copied["sessions"], &copied["sessions_stored"]), (&json!(3), &json!(3)));
    assert_eq!(super::super::sessions::objects(&bucket.path().join("b")).len(), 3);
    // The files are only copies from here on.
    let files = || std::fs::read_dir(home.home.sessions_dir("docs")).expect("the sessions").flatten();
    files().for_each(|file| std::fs::remove_file(file.path()).expect("a file less"));
    assert_same(&before, &home.everything(&["docs"]));
    files().for_each(|file| std::fs::remove_file(file.path()).expect("a file less"));
    let copied = home.to_sqlite().expect_json();
    assert_eq!((&copied["sessions"], &copied["sessions_restored"]), (&json!(3), &json!(3)));
    assert_eq!(files().count(), 3);
    assert_same(&before, &home.everything(&["docs"]));
}
