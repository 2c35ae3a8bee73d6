//! Several daemons that share one PostgreSQL and reach each other over TLS.

mod chaos;
mod clocks;
mod discord;
mod discord_news;
mod discord_outage;
mod discord_shards;
mod doctor;
mod drain;
mod drain_limits;
mod drain_load;
mod events;
mod files;
mod following;
mod forget;
mod forwarding;
mod left_behind;
mod list;
mod new_certificates;
mod outage;
mod pooler;
mod promotion;
mod same_names;
mod scaling_page;
mod schedules;
mod search;
mod silent_bucket;
mod takeover;
mod transfers;
mod unreachable;
mod upgrade;
mod workspace_branches;
mod workspace_root;
mod workspaces;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{CallError, Client, NewMessage, Role};
use chorus_tests::certificates::Authority;
use chorus_tests::free_port::free_port;
use chorus_tests::postgres::Database;
use chorus_tests::{Daemon, Home, home, skip};
use tempfile::TempDir;

/// The homes of nodes of one cluster.
struct Cluster {
    url: String,
    authority: Authority,
    files: TempDir,
    bucket: PathBuf,
}

impl Cluster {
    /// Creates a cluster without nodes; `None` if PostgreSQL is not installed.
    fn create() -> Option<Self> {
        let Ok(url) = Database::create_blocking() else {
            skip("PostgreSQL is not installed here");
            return None;
        };
        Some(Self::on(url))
    }

    /// Creates a cluster without nodes on a database.
    fn on(url: String) -> Self {
        let files = tempfile::tempdir().expect("a directory");
        let authority = Authority::create(&files.path().join("authority"), "cluster");
        Self { url, authority, bucket: files.path().join("bucket"), files }
    }

    /// Makes the home of a node. Its port is free now.
    fn node(&self, name: &str) -> Home {
        self.node_with(name, "")
    }

    /// Does the same, with more in front of its configuration.
    fn node_with(&self, name: &str, config: &str) -> Home {
        self.node_at(name, &self.url, config)
    }

    /// As [`Cluster::node_with`], with another URL of the database.
    fn node_at(&self, name: &str, url: &str, config: &str) -> Home {
        let [cert, key] = self.sign(name, -1..90);
        let mut home = home!();
        if !config.contains("[search]") {
            home = home.without_index();
        }
        let port = free_port();
        let [ca, cert, key] = [self.authority.certificate(), cert, key].map(|path| path.display().to_string());
        let bucket = self.bucket.display();
        home.write_config(&format!(
            "{config}\n[store]\nkind = \"postgres\"\nurl_file = \"url\"\n\
             [store.sessions]\nkind = \"dir\"\npath = \"{bucket}\"\n\
             [cluster]\nnode = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\nadvertise = \"127.0.0.1:{port}\"\n\
             ca = \"{ca}\"\ncert = \"{cert}\"\nkey = \"{key}\"\n"
        ));
        chorus_base::private_fs::write_private(&home.path.join("url"), url.as_bytes()).expect("the URL");
        home
    }

    /// As [`Cluster::node`], with the bodies of its sessions in a bucket of a server that speaks S3.
    fn node_on_bucket(&self, name: &str, bucket: &str, endpoint: &str) -> Home {
        let home = self.node(name);
        change_bucket(&home, bucket, endpoint);
        home
    }

    /// Makes the certificate of a node, and its key. It is valid in these days from now on.
    fn sign(&self, name: &str, days: Range<i64>) -> [PathBuf; 2] {
        let [cert, key] = ["crt", "key"].map(|ending| self.files.path().join(format!("{name}.{ending}")));
        let names = format!("IP:127.0.0.1,URI:chorus:node:{name}");
        let extensions = format!("subjectAltName={names}\nbasicConstraints=critical,CA:FALSE\n");
        self.authority.sign_extensions(&extensions, days, &cert, &key);
        [cert, key]
    }
}

/// Appends a message, with its text as the key: a repeated request adds nothing.
fn try_append(client: &mut Client, agent: &str, text: &str) -> Result<u64, CallError> {
    let params = AppendParams {
        agent: Some(agent.into()),
        messages: vec![NewMessage::text(Role::User, text)],
        key: Some(text.into()),
        ..Default::default()
    };
    client.call::<Append>(&params).map(|appended| appended.messages)
}

/// Puts the bodies of sessions into a bucket of a server that speaks S3.
fn change_bucket(home: &Home, bucket: &str, endpoint: &str) {
    let config = fs::read_to_string(home.path.join("config.toml")).expect("config.toml");
    let (before, rest) = config.split_once("[store.sessions]\n").expect("the table");
    let (_, after) = rest.split_once("[cluster]\n").expect("the next table");
    home.write_config(&format!(
        "{before}[store.sessions]\nkind = \"s3\"\nbucket = \"{bucket}\"\nendpoint = \"{endpoint}\"\n\
         key_file = \"bucket.key\"\n[cluster]\n{after}"
    ));
    let key = home.path.join("bucket.key");
    chorus_base::private_fs::write_private(&key, b"key_id = key\nsecret = a-secret-of-tests\n").expect("the key");
}

/// Starts one daemon in each home.
fn start_all<const N: usize>(homes: &[Home; N]) -> [Daemon; N] {
    homes.each_ref().map(Daemon::start)
}
