//! Every call is counted, by day, agent and model.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::usage::{Show, UsageParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{Daemon, InProcessDaemon, ManualClock};
use std::time::Duration;

use super::{set, summarised, summary, used};
use crate::home;

const PRICES: &str =
    "[prices.\"anthropic/claude-test\"]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write = 3.75\n";

/// What [`summary`] costs at those prices.
const COST: f64 = (300.0 * 3.0 + 600.0 * 0.3 + 100.0 * 3.75 + 20.0 * 15.0) / 1e6;

fn near(found: Option<f64>, due: f64) {
    assert!(found.is_some_and(|found| (found - due).abs() < 1e-9), "{found:?} and not {due}");
}

#[test]
fn calls_of_two_models_are_counted_with_and_without_a_price() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &format!("{}{PRICES}", server.config_toml()));
    let mut client = daemon.client();
    server.anthropic().set_fallback(summary());
    server.openai().set_fallback(summary());
    for agent in ["priced", "free"] {
        client.init(agent);
    }
    set(&mut client, "free", "model", "local/small");
    for agent in ["priced", "priced", "free"] {
        assert!(summarised(&mut client, agent));
    }
    let all = used(&mut client, None, None);
    let [free, priced] = &all.days[..] else { panic!("{all:?}") };
    assert_eq!((&*free.agent, &*free.model, free.sums.calls), ("free", "local/small", 1));
    assert_eq!((free.sums.cost_usd, free.sums.unpriced_calls), (None, 1));
    assert_eq!((&*priced.agent, &*priced.model, priced.sums.calls), ("priced", "anthropic/claude-test", 2));
    let tokens = |sums: &chorus_proto::methods::usage::UsageSums| {
        (sums.input_tokens, sums.output_tokens, sums.cache_read_tokens)
    };
    assert_eq!(tokens(&priced.sums), (2000, 40, 1200));
    near(priced.sums.cost_usd, 2.0 * COST);
    assert_eq!((all.total.calls, all.total.unpriced_calls, tokens(&all.total).0), (3, 1, 3000));
    near(all.total.cost_usd, 2.0 * COST);
    assert_eq!(used(&mut client, Some("free"), None).total.calls, 1);
    assert_eq!(used(&mut client, None, Some("1h")).total.calls, 3);
    assert_eq!(used(&mut client, None, Some("2999-01-01")).days, []);

    let today = client.agent_status("priced").today.expect("used today");
    assert_eq!((today.tokens, today.calls, today.unpriced_calls), (2040, 2, 0));
    near(today.cost_usd, 2.0 * COST);
    assert_eq!(client.agent_status("free").today.expect("used today").cost_usd, None);

    let text = chorusctl(&home, ["usage"]);
    assert!(
        text.stderr.contains("1 call without a known price") && text.stderr.contains("[prices."),
        "{}",
        text.stderr
    );
    let text = text.expect_success();
    let total = text.lines().last().expect("a total");
    assert!(
        total.starts_with("total") && total.contains("3000") && total.ends_with(&format!("${:.4}", 2.0 * COST)),
        "{text}"
    );
    let json = chorusctl(&home, ["--json", "usage", "priced", "--since", "7d"]).expect_json();
    assert_eq!(json["total"]["calls"], 2);
    let lines = chorusctl(&home, ["--format", "jsonl", "usage"]).expect_success();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let details = chorusctl(&home, ["status", "priced"]).expect_success();
    assert!(details.contains("used today") && details.contains(&format!("${:.4}", 2.0 * COST)), "{details}");
}

#[test]
fn they_outlive_a_crash_and_their_agent() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    server.anthropic().set_fallback(summary());
    client.init("a");
    assert_eq!(client.agent_status("a").today, None);
    assert!(summarised(&mut client, "a"));
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(used(&mut client, None, None).total.calls, 1);
    assert_eq!(client.agent_status("a").today.expect("used today").tokens, 1020);
    let params = DestroyParams { name: "a".into(), purge: true, ..DestroyParams::default() };
    client.call::<Destroy>(&params).expect("destroyed");
    assert_eq!(used(&mut client, Some("a"), None).total.calls, 1);
    let unknown = UsageParams { agent: Some("b".into()), since: None, by: None };
    assert_eq!(expect_error_kind(client.call::<Show>(&unknown)), ErrorKind::AgentNotFound);
    assert_eq!(chorusctl(&home, ["usage", "--since", "soon"]).status, 2);
}

#[test]
fn days_stand_apart_the_newest_first() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    home.write_config(&server.config_toml());
    let hands = ManualClock::new("2026-02-27T12:00:00Z".parse().expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    server.anthropic().set_fallback(summary());
    client.init("a");
    for _ in 0..2 {
        assert!(summarised(&mut client, "a"));
        hands.advance(Duration::from_secs(24 * 60 * 60));
    }
    let days: Vec<String> = used(&mut client, None, None).days.iter().map(|row| row.day.to_string()).collect();
    assert!(days.len() == 2 && days[0] > days[1], "{days:?}");
    assert_eq!(used(&mut client, None, Some("30h")).days.len(), 1);
    assert_eq!(client.agent_status("a").today, None, "a new day");
}

#[test]
fn nothing_is_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let nothing = used(&mut daemon.client(), None, None);
    assert_eq!((nothing.days.len(), nothing.total.calls), (0, 0));
    let said = chorusctl(&home, ["usage"]);
    assert_eq!((said.status, &*said.stdout), (0, ""));
    assert!(said.stderr.contains("no model calls"), "{}", said.stderr);
}

#[test]
fn what_no_call_can_have_used_breaks_no_account() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
    }
    for _ in 0..2 {
        server.anthropic().queue(summary().usage(u64::MAX, u64::MAX).cache_tokens(0, 0));
        assert!(summarised(&mut client, "a"));
    }
    drop(daemon);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    server.anthropic().queue(summary());
    assert!(summarised(&mut client, "b"), "what is counted can be read, and others may call");
    assert_eq!(used(&mut client, Some("a"), None).total.calls, 2);
}
