//! `doctor` in a cluster.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chorus_base::private_fs::write_private;
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_proto::{Client, Method};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::http_fault_proxy::HttpFaultProxy;
use chorus_tests::s3_server::TestBucket;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{Cluster, start_all};

/// Returns verdict, text and hint of the checks with a name.
fn found(client: &mut Client, name: &str) -> Vec<(Verdict, String, String)> {
    let result: <Doctor as Method>::Result = client.call::<Doctor>(&DoctorParams::default()).expect("doctor");
    let of_name = result.checks.into_iter().filter(|check| check.name == name);
    of_name.map(|check| (check.verdict, check.text, check.hint.unwrap_or_default())).collect()
}

#[test]
fn a_cluster_that_is_well_has_one_warning() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let [a, b] = start_all(&homes);
    let mut client = a.client();
    for name in [
        "PostgreSQL",
        "connections",
        "clock",
        "session bodies",
        "bucket contents",
        "cluster.cert",
        "cluster.listen",
        "node b",
    ] {
        let found = found(&mut client, name);
        assert!(matches!(&found[..], [(Verdict::Ok, text, _)] if !text.is_empty()), "{name}: {found:?}");
    }
    let mut commits = found(&mut client, "commits");
    let (verdict, text, hint) = commits.pop().expect("a check of commits");
    assert_eq!(verdict, Verdict::Warn, "there is no standby");
    assert!(text.contains("synchronous_standby_names is empty") && hint.contains("name a standby"), "{text}; {hint}");
    // Whoever has an agent has its directory.
    client.init("x");
    for (client, agents) in [(&mut client, "1 agent, all"), (&mut b.client(), "0 agents, all")] {
        let found = found(client, "agents");
        assert!(matches!(&found[..], [(Verdict::Ok, text, _)] if text.starts_with(agents)), "{found:?}");
    }
    for name in ["versions", "permission profiles", "cluster"] {
        assert!(found(&mut client, name).is_empty(), "{name}");
    }
    assert!(found(&mut client, "node b")[0].1.starts_with("was reached at 127.0.0.1:"));
    b.kill9();
    let (_, text, _) = wait_until("the silence of the node", DEADLINE * 2, || {
        found(&mut client, "node b").pop().filter(|(verdict, ..)| *verdict == Verdict::Warn)
    });
    assert!(text.starts_with("is down: no heartbeat for "), "{text}");
    assert!(Daemon::start(&homes[1]).terminate().success());
    assert_eq!(found(&mut client, "node b")[0].1, "has stopped");
}

#[test]
fn what_is_wrong_with_a_node_is_said_with_what_to_do() {
    let Some(cluster) = Cluster::create() else { return };
    let profile = "[permissions.careful]\ndefault = \"deny\"\n";
    let homes = [cluster.node("a"), cluster.node_with("b", profile)];
    let separator = if cluster.url.contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}options=-c%20synchronous_commit%3Doff", cluster.url);
    write_private(&homes[1].path.join("url"), url.as_bytes()).expect("the URL");
    cluster.sign("b", -1..20);
    let [a, b] = start_all(&homes);
    let (mut client, mut other) = (a.client(), b.client());
    let expect = |client: &mut Client, name: &str, verdict: Verdict, what: &str, to_do: &str| {
        let found = found(client, name);
        let fits =
            |(v, text, hint): &(Verdict, String, String)| *v == verdict && text.contains(what) && hint.contains(to_do);
        assert!(found.iter().any(fits), "{name}: {found:?}");
    };
    expect(&mut other, "commits", Verdict::Fail, "loses messages that were acknowledged", "synchronous_commit = on");
    expect(&mut other, "cluster.cert", Verdict::Warn, "the certificate expires on", "renew it");
    expect(&mut other, "permission profiles", Verdict::Warn, "of a differ", "the same profiles");
    expect(&mut client, "permission profiles", Verdict::Warn, "of b differ", "the same profiles");
    expect(&mut client, "cluster.cert", Verdict::Ok, "chorus:node:a", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_ignores_conditions_is_found() {
    let Some(cluster) = Cluster::create() else { return };
    let Some(bucket) = TestBucket::create() else { return };
    let proxy = HttpFaultProxy::start(bucket.port).await.expect("a proxy");
    proxy.ignore_conditions();
    let home = cluster.node_on_bucket("a", &bucket.name, &proxy.endpoint());
    let a = Daemon::start(&home);
    let found = found(&mut a.client(), "session bodies");
    let fits = |(verdict, text, hint): &(Verdict, String, String)| {
        *verdict == Verdict::Fail && text.contains("If-None-Match") && !hint.is_empty()
    };
    assert!(found.iter().any(fits), "{found:?}");
}

/// The files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_bucket_that_does_not_fit_the_database_is_found_out() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a")];
    let [a] = start_all(&homes);
    let mut client = a.client();
    client.init("x");
    let saved = ["one", "two"].map(|name| {
        client.append("x", name);
        client.save("x", name).header.id.to_string()
    });
    let contents = found(&mut client, "bucket contents");
    assert!(
        matches!(&contents[..], [(Verdict::Ok, text, _)] if text == "it has the messages of 2 sessions"),
        "{contents:?}"
    );
    // A body that was deleted after the moment to which the database was restored, and one that was written after it.
    let body_of = |session: &str| {
        let mut bodies = files(&cluster.bucket).into_iter().filter(|file| file.to_string_lossy().contains(session));
        bodies.next_back().expect("the body of a session")
    };
    let [gone, kept] = saved.each_ref().map(|session| body_of(session));
    std::fs::remove_file(gone).expect("a removal");
    let name = kept.file_name().expect("a name").to_string_lossy().into_owned();
    let (epoch, _) = name.split_once('-').expect("an epoch and a write");
    let later = kept.with_file_name(format!("{epoch}-{}", uuid::Uuid::new_v4()));
    std::fs::copy(&kept, &later).expect("a copy");
    let hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    std::fs::File::options().write(true).open(&later).and_then(|file| file.set_modified(hour_ago)).expect("a time");
    let contents = found(&mut client, "bucket contents");
    let [(Verdict::Fail, missing, restore), (Verdict::Warn, unnamed, _)] = &contents[..] else {
        panic!("{contents:?}")
    };
    assert_eq!(*missing, format!("the messages of 1 session are missing: {}", saved[0]));
    assert!(restore.contains("docs/SCALING.md"), "{restore}");
    assert!(unnamed.starts_with("1 object without a session"), "{unnamed}");
}
