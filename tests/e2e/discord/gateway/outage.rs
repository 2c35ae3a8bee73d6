//! Discord is away: whoever uses the socket does not notice.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::Fault;

use super::{becomes, info, rig};
use crate::home;

#[test]
fn an_outage_never_disturbs_the_socket() {
    let (discord, home) = rig("");
    let daemon = Daemon::start(&home);
    becomes(&daemon, DiscordState::Connected);
    let mut client = daemon.client();
    client.init("a");
    discord.refuse_connections();
    discord.wait_disconnected();
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let begun = Instant::now();
        client.append("a", "while Discord is away");
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    // Waits grow: the first that is worth telling comes after some tries.
    becomes(&daemon, DiscordState::Waiting);
    let why = info(&mut client).why.expect("a reason");
    assert!(why.starts_with("cannot reach Discord"), "{why}");
    assert_eq!(chorusctl(&home, ["doctor"]).status, 0);
    assert_eq!(client.save("a", "as ever").header.message_count, 200);
}

#[test]
fn a_stop_does_not_wait_for_whom_it_cannot_reach() {
    // They are connected to, and never say a word.
    let holes = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")].map(|hole| hole.expect("a port"));
    let [rest, gateway] = holes.each_ref().map(|hole| hole.local_addr().expect("its number"));
    let discord = chorus_tests::discord::FakeDiscord::start();
    for config in [
        // Where the gateway is, nobody says; it says nothing itself.
        format!("api_base = \"http://{rest}\"\n"),
        format!("api_base = \"{}\"\ngateway_url = \"ws://{gateway}\"\n", discord.url()),
    ] {
        let (home, token) = (home(), discord.token_file());
        home.write_config(&format!("[discord]\ntoken_file = \"{}\"\n{config}", token.display()));
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        // From its first moment on: an agent that is made then is made with a warning.
        assert_eq!(info(&mut client).state, Some(DiscordState::Connecting));
        let params = InitParams { name: "a".into(), ..InitParams::default() };
        let warnings = client.call::<Init>(&params).expect("agent.init").warnings;
        assert!(warnings.iter().any(|warning| warning.contains("no Discord channel was created")), "{warnings:?}");
        client.append("a", "kept");
        let begun = Instant::now();
        assert!(daemon.terminate().success());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let daemon = Daemon::start(&home);
        assert_eq!(daemon.client().message_texts("a"), ["kept"]);
    }
}

#[test]
fn what_discord_says_instead_of_where_its_gateway_is_is_waited_out() {
    for (fault, told, least) in [
        (Fault::RateLimit { after: Duration::from_secs(1_336), global: false }, "rate limit", 1_300),
        (Fault::RateLimit { after: Duration::from_secs(600), global: true }, "rate limit", 590),
    ] {
        let (discord, home) = rig("");
        discord.inject_fault("GET /gateway/bot", 1, fault);
        let daemon = Daemon::start(&home);
        let info = becomes(&daemon, DiscordState::Waiting);
        let seconds = info.until.expect("a time").duration_since(jiff::Timestamp::now()).as_secs();
        assert!((least..=least + 40).contains(&seconds) && info.why.expect("a reason").contains(told), "{seconds}");
        assert_eq!(discord.requests_to("GET /gateway/bot").len(), 1);
    }
    let (discord, home) = rig(super::SOON);
    for fault in [Fault::Html403, Fault::Status(502), Fault::Status(500), Fault::Reset, Fault::LoseResponse] {
        discord.inject_fault("GET /gateway/bot", 1, fault);
    }
    let _daemon = Daemon::start(&home);
    discord.wait_connected();
    assert_eq!(discord.identifies(), 1);
}

#[test]
fn without_a_token_there_is_no_discord_and_nothing_is_missing() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[discord]\napi_base = \"http://127.0.0.1:9\"\n");
    let mut client = daemon.client();
    client.init("a");
    assert_eq!(info(&mut client).state, Some(DiscordState::Off));
    assert!(chorusctl(&home, ["status"]).expect_success().contains("Discord off: no token configured"));
    assert!(chorusctl(&home, ["doctor"]).expect_success().contains("off (no token configured)"));
}
