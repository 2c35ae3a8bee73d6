//! Daemons that would take the place of another node, or use another bucket than the others.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::{Cluster, start_all, try_append};

/// Starts a daemon that must refuse, and returns why.
fn refusal(home: &Home) -> String {
    let (_, said) = Daemon::try_start(home, home.command(home.bins.chorusd)).map(drop).expect_err("the daemon runs");
    said
}

fn change_config(home: &Home, from: &str, to: &str) {
    let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
    assert!(config.contains(from), "{config}");
    home.write_config(&config.replace(from, to));
}

#[test]
fn a_second_home_with_the_name_of_a_node_waits_until_that_has_ended() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("a")];
    let a = Daemon::start(&homes[0]);
    let mut client = a.client();
    client.init("x");
    client.append("x", "one");
    let said = refusal(&homes[1]);
    assert!(said.contains("runs already, with another home") && said.contains("hint: "), "{said}");
    client.append("x", "two");
    // A restart takes the place of the process before.
    a.kill9();
    let a = Daemon::start(&homes[0]);
    assert_eq!(a.client().message_texts("x"), ["one", "two"]);
    // The machine is lost, and another one takes its name.
    a.kill9();
    let another = wait_until("the place of the lost node", DEADLINE, || {
        Daemon::try_start(&homes[1], homes[1].command(homes[1].bins.chorusd)).ok()
    });
    assert_eq!(another.client().message_texts("x"), ["one", "two"]);
}

#[test]
fn a_node_with_another_bucket_or_none_does_not_start() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b"), cluster.node("c")];
    let a = Daemon::start(&homes[0]);
    let bucket = cluster.bucket.display().to_string();
    change_config(&homes[1], &format!("path = \"{bucket}\""), &format!("path = \"{bucket}-other\""));
    let said = refusal(&homes[1]);
    assert!(said.contains("names another bucket than that of the other nodes"), "{said}");
    change_config(&homes[2], &format!("[store.sessions]\nkind = \"dir\"\npath = \"{bucket}\"\n"), "");
    let said = refusal(&homes[2]);
    assert!(said.contains("this one has no [store.sessions]"), "{said}");
    // Neither has disturbed the first.
    a.client().init("x");
    assert_eq!(try_append(&mut a.client(), "x", "one").expect("an append"), 1);
    // Once the object is copied with the others, it is the same bucket.
    let mark = fs::read(cluster.bucket.join("cluster-id")).expect("the mark");
    fs::write(format!("{bucket}-other/cluster-id"), mark).expect("a copy");
    let _b = Daemon::start(&homes[1]);
}

#[test]
fn two_clusters_do_not_share_a_bucket() {
    let (Some(cluster), Some(mut other)) = (Cluster::create(), Cluster::create()) else { return };
    let _a = start_all(&[cluster.node("a")]);
    other.bucket.clone_from(&cluster.bucket);
    let said = refusal(&other.node("a"));
    assert!(said.contains("belongs to another cluster"), "{said}");
}
