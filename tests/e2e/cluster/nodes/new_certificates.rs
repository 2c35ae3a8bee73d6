//! Certificates that `chorusctl cluster cert` creates.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use chorus_proto::Client;
use chorus_proto::error::exit;
use chorus_proto::methods::cluster::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{Daemon, Home, home};

use super::{Cluster, try_append};

/// An independent program says if the certificate is good for this purpose.
fn openssl_accepts(dir: &Path, node: &str, purpose: &str) -> bool {
    let mut command = Command::new("openssl");
    command.args(["verify", "-x509_strict", "-purpose", purpose, "-CAfile"]).arg(dir.join("ca.pem"));
    command.arg(dir.join(node).join("cert.pem")).output().expect("openssl").status.success()
}

/// Starts the daemon with these files in place of those of the test.
fn start_with(cluster: &Cluster, name: &str, dir: &Path) -> (Home, Daemon) {
    let home = cluster.node(name);
    let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
    let lines = config.lines().map(|line| match line.split_once(" = ") {
        Some((key @ ("ca" | "cert" | "key"), _)) => {
            format!("{key} = {:?}\n", dir.join(name).join(format!("{key}.pem")))
        }
        _ => format!("{line}\n"),
    });
    home.write_config(&lines.collect::<String>());
    let daemon = Daemon::start(&home);
    (home, daemon)
}

#[test]
fn nodes_trust_each_other_with_the_certificates_of_the_command() {
    let Some(cluster) = Cluster::create() else { return };
    let client_home = home!();
    let dir = client_home.temp_dir().join("certs");
    let create = |nodes: &[&str]| {
        let args = ["cluster", "cert", "--dir", dir.to_str().expect("a path")];
        chorusctl(&client_home, args.iter().chain(nodes))
    };
    let text = create(&["a=127.0.0.1", "b=b.example.org,127.0.0.1"]).expect_success();
    assert!(text.contains("created an authority") && text.contains("2 certificates, valid until"), "{text}");
    for purpose in ["sslserver", "sslclient"] {
        assert!(openssl_accepts(&dir, "a", purpose) && openssl_accepts(&dir, "b", purpose), "{purpose}");
    }
    for file in ["ca-key.pem", "a/key.pem", "a"] {
        let mode = fs::metadata(dir.join(file)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}: {mode:o}");
    }
    // The same authority signs a node that comes later, and renews another one.
    let (authority, old) =
        (fs::read(dir.join("ca.pem")).expect("ca.pem"), fs::read(dir.join("a/cert.pem")).expect("a"));
    let text = create(&["a=127.0.0.1", "c=127.0.0.1"]).expect_success();
    assert!(!text.contains("authority"), "{text}");
    let first_word = |node: &str| {
        let line = text.lines().find(|line| line.contains(&format!("/{node}/ with"))).unwrap_or_default();
        line.split(' ').next().unwrap_or_default()
    };
    assert_eq!((first_word("a"), first_word("c")), ("replaced", "created"), "{text}");
    assert_eq!(fs::read(dir.join("ca.pem")).expect("ca.pem"), authority);
    assert_ne!(fs::read(dir.join("a/cert.pem")).expect("a"), old);
    assert!(openssl_accepts(&dir, "a", "sslserver") && openssl_accepts(&dir, "c", "sslclient"));
    let (_a_home, a) = start_with(&cluster, "a", &dir);
    let (_c_home, c) = start_with(&cluster, "c", &dir);
    a.client().init("x");
    assert_eq!(try_append(&mut c.client(), "x", "through the other node").expect("an append"), 1);
}

#[test]
fn what_cannot_be_signed_is_refused_and_nothing_is_written() {
    let home = home!();
    let dir = home.temp_dir().join("certs");
    let create = |node: &str| chorusctl(&home, ["cluster", "cert", "--dir", dir.to_str().expect("a path"), node]);
    for wrong in ["a", "a=", "=host", "../a=host", ".a=host", "a=host:7700", "a=two words"] {
        create(wrong).expect_failure_with_hint(exit::USAGE.into());
        assert!(!dir.exists(), "{wrong}");
    }
    // An authority of another program, whose name is not known here.
    create("a=127.0.0.1").expect_success();
    let before = fs::read(dir.join("a/cert.pem")).expect("a certificate");
    let other = chorus_tests::certificates::Authority::create(&home.temp_dir().join("other"), "other");
    fs::copy(other.certificate(), dir.join("ca.pem")).expect("a copy");
    let failed = create("a=127.0.0.1");
    assert!(failed.expect_failure_with_hint(exit::USAGE.into()).contains("not trusted"));
    assert_eq!(fs::read(dir.join("a/cert.pem")).expect("a certificate"), before);
    assert_eq!(fs::read_dir(dir.join("a")).expect("a directory").count(), 3);
    // Without its key, an authority signs nothing.
    fs::remove_file(dir.join("ca-key.pem")).expect("a removal");
    create("b=127.0.0.1").expect_failure_with_hint(exit::USAGE.into());
    assert!(!dir.join("b").exists());
}

#[test]
fn a_later_run_uses_the_authority_of_the_directory_and_never_replaces_it_silently() {
    let home = home!();
    let dir = home.temp_dir().join("work");
    fs::create_dir(&dir).expect("a directory");
    let create = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.current_dir(&dir).args(["cluster", "cert"]).args(args);
        run_command(command, b"")
    };
    let first = create(&["a=127.0.0.1"]);
    assert!(first.stderr.contains("another authority"), "{}", first.stderr);
    assert!(first.expect_success().contains("created an authority: "));
    let authority = fs::read(dir.join("chorus-certs/ca.pem")).expect("ca.pem");
    let second = create(&["b=127.0.0.1"]);
    assert!(!second.stderr.contains("another authority"), "{}", second.stderr);
    assert!(!second.expect_success().contains("authority"));
    assert_eq!(fs::read(dir.join("chorus-certs/ca.pem")).expect("ca.pem"), authority);
    assert!(openssl_accepts(&dir.join("chorus-certs"), "b", "sslserver"));
    // Another directory has another authority, and the command says so.
    let other = create(&["c=127.0.0.1", "--dir", "other"]);
    assert!(other.stderr.contains("another authority"), "{}", other.stderr);
    assert!(other.expect_success().contains("created an authority: "));
    // Where certificates are left without theirs, none is made.
    for file in ["ca.pem", "ca-key.pem"] {
        fs::remove_file(dir.join("chorus-certs").join(file)).expect("a removal");
    }
    let refused = create(&["b=127.0.0.1", "c=127.0.0.1"]);
    let text = refused.expect_failure_with_hint(exit::USAGE.into());
    assert!(text.contains("has certificates of nodes, and not their authority"), "{text}");
    assert!(!dir.join("chorus-certs/c").exists() && !dir.join("chorus-certs/ca.pem").exists());
}

#[test]
fn a_daemon_whose_certificate_names_another_node_leaves_that_node_alone() {
    let Some(cluster) = Cluster::create() else { return };
    let homes = [cluster.node("a"), cluster.node("b")];
    let b = Daemon::start(&homes[1]);
    let mut client = b.client();
    let address = |client: &mut Client| {
        let status = client.call::<Status>(&StatusParams {}).expect("cluster.status");
        status.nodes.into_iter().find(|node| node.name == "b").map(|node| (node.address, node.boot))
    };
    let before = address(&mut client);
    let config = fs::read_to_string(homes[0].path.join("config.toml")).expect("config.toml");
    homes[0].write_config(&config.replace("node = \"a\"", "node = \"b\""));
    let started = Daemon::try_start(&homes[0], homes[0].command(homes[0].bins.chorusd)).map(drop);
    let (_, said) = started.expect_err("the daemon runs");
    assert!(said.contains("does not name this node"), "{said}");
    assert_eq!(address(&mut client), before, "the node of that name was replaced");
}
