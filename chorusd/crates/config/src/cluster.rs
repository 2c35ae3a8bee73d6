//! `[cluster]`: this daemon among those that share a database, and how they reach each other. Only a build with the feature
//! `cluster` has the keys.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keys::ConfigKey;
#[cfg(feature = "cluster")]
use super::keys::config_key;

/// The table `[cluster]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Name of this daemon among those that share the database; `None`: the name of the host.
    pub node: Option<String>,
    /// Address and port on which it listens for other nodes. If `None`, no port is open.
    pub listen: Option<String>,
    /// Host and port at which other nodes reach it.
    pub advertise: Option<String>,
    /// PEM file with the certificates of the cluster's authorities.
    pub ca: Option<PathBuf>,
    /// PEM file with the certificate of this node.
    pub cert: Option<PathBuf>,
    /// PEM file with the key of the certificate.
    pub key: Option<PathBuf>,
    /// Directory on a file system that all nodes share, for the workspaces of all agents. `None`: each node has its own.
    pub workspace_root: Option<PathBuf>,
    /// The nodes do not share the workspaces any more.
    pub unshares_workspaces: bool,
}

/// Keys of the table.
#[cfg(not(feature = "cluster"))]
pub(crate) const KEYS: &[ConfigKey] = &[];

/// Keys of the table.
#[cfg(feature = "cluster")]
pub(crate) const KEYS: &[ConfigKey] = &[
    config_key(
        "cluster",
        "node",
        "Name of this daemon among those that share the database. By default the name of the host.",
        |c, v| {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            c.cluster.node = Some(super::provider::parse_name(v, is_allowed)?);
            Ok(())
        },
    ),
    config_key(
        "cluster",
        "listen",
        "Address and port on which the daemon listens for other nodes, such as `\"0.0.0.0:7700\"`. Without it no port is open.",
        |c, v| {
            c.cluster.listen = Some(v.text()?);
            Ok(())
        },
    ),
    config_key(
        "cluster",
        "advertise",
        "Host and port at which other nodes reach this one, such as `\"a.example.org:7700\"`. The certificate names the host.",
        |c, v| {
            c.cluster.advertise = Some(v.text()?);
            Ok(())
        },
    ),
    config_key("cluster", "ca", "PEM file with the certificates of the cluster's authorities.", |c, v| {
        c.cluster.ca = Some(v.text()?.into());
        Ok(())
    }),
    config_key(
        "cluster",
        "cert",
        "PEM file with this node's certificate, whose names are the host of `advertise` and the URI `chorus:node:NAME`.",
        |c, v| {
            c.cluster.cert = Some(v.text()?.into());
            Ok(())
        },
    ),
    config_key("cluster", "key", "PEM file with the key of the certificate; only its owner may read it.", |c, v| {
        c.cluster.key = Some(v.text()?.into());
        Ok(())
    }),
    config_key(
        "cluster",
        "workspace_root",
        "Directory on a file system that all nodes share, for the workspaces of all agents. By default each node has its own. \
         `\"none\"` ends the sharing.",
        |c, v| {
            let text = v.text()?;
            c.cluster.unshares_workspaces = text == "none";
            c.cluster.workspace_root = (text != "none").then(|| text.into());
            Ok(())
        },
    ),
];

impl ClusterConfig {
    /// Resolves relative paths in `dir`.
    pub(super) fn locate_files(&mut self, dir: &Path) {
        let files = [&mut self.ca, &mut self.cert, &mut self.key, &mut self.workspace_root];
        for path in files.into_iter().flatten() {
            *path = dir.join(&*path);
        }
    }

    /// Returns the value of a key as it would be written in config.toml; `None` if there is no such key.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        let text = |text: &Option<String>| text.as_deref().into();
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy()).into();
        Some(match key {
            "cluster.node" => text(&self.node),
            "cluster.listen" => text(&self.listen),
            "cluster.advertise" => text(&self.advertise),
            "cluster.ca" => path(&self.ca),
            "cluster.cert" => path(&self.cert),
            "cluster.key" => path(&self.key),
            "cluster.workspace_root" if self.unshares_workspaces => "none".into(),
            "cluster.workspace_root" => path(&self.workspace_root),
            _ => return None,
        })
    }
}
