//! The first commands of docs/SCALING.md, run as they are written.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use chorus_tests::ctl::run_command;
use chorus_tests::home;

use super::Cluster;

/// Stops the daemons that the page has started.
struct Nodes<'a> {
    home: &'a chorus_tests::Home,
}

impl Nodes<'_> {
    fn run(&self, script: &str) -> chorus_tests::ctl::Output {
        let mut shell = self.home.command("bash");
        let path = std::env::var("PATH").expect("PATH");
        shell.env("PATH", format!("{}:{path}", self.home.temp_dir().join("bin").display()));
        shell.env_remove("CHORUS_HOME").args(["-euc", script]);
        run_command(shell, b"")
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        self.run("for n in a b c; do CHORUS_HOME=$PWD/$n chorusctl daemon stop || true; done");
    }
}

#[test]
fn three_nodes_run_after_the_commands_of_the_page() {
    let Some(cluster) = Cluster::create() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SCALING.md");
    let page = std::fs::read_to_string(page).expect("SCALING.md");
    let (_, part) = page.split_once("In an empty directory:\n\n").expect("the commands");
    let block: String = part
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or_default()))
        .collect();
    // The database and the ports of this test.
    let ports: Vec<u16> = (0..3)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port"))
        .collect::<Vec<_>>()
        .iter()
        .map(|socket| socket.local_addr().expect("an address").port())
        .collect();
    let port = format!("$(case $n in a) echo {};; b) echo {};; c) echo {};; esac)", ports[0], ports[1], ports[2]);
    let replaced = [
        ("createdb chorus\n", ""),
        ("postgres:///chorus?host=/var/run/postgresql", cluster.url.as_str()),
        ("770$(printf $n | tr abc 123)", port.as_str()),
    ];
    let script = replaced.iter().fold(block, |script, (from, to)| {
        assert!(script.contains(from), "the page has {from}");
        script.replace(from, to)
    });
    let home = home!();
    let bin = home.temp_dir().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    symlink(home.bins.chorusctl, bin.join("chorusctl")).expect("a link");
    let nodes = Nodes { home: &home };
    let done = nodes.run(&script);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout.matches("started: ").count(), 3, "{}", done.stdout);
    assert!(done.stdout.contains("a takes no more agents; moved 1 agent"), "{}", done.stdout);
    let shown = nodes.run("CHORUS_HOME=$PWD/a chorusctl show; CHORUS_HOME=$PWD/a chorusctl history");
    assert!(
        shown.stdout.contains("hello from b") && shown.stdout.contains("first"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
}
