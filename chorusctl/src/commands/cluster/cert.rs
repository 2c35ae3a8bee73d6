//! `chorusctl cluster cert`: creates certificates for nodes.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Deserialize;

use crate::app::{App, parse_result};
use crate::commands::offline_chorusd::{OfflineWork, run_chorusd};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Create certificates with which nodes trust each other
///
/// The first time, this also creates an authority, `ca.pem` with its key `ca-key.pem`, which signs the certificates; later, more nodes can be added and
/// certificates renewed with it. Keep `ca-key.pem` off the nodes: whoever has it can add nodes.
///
/// The directory NODE gets `ca.pem`, `cert.pem` and `key.pem`, for that node alone. Copy them to it and name them in the table `[cluster]` of its
/// config.toml. A daemon that runs notices files that were replaced. No daemon is needed here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Nodes with the host, or hosts, at which others reach them; such as
    /// `a=a.example.org b=10.0.0.2`
    #[arg(value_name = "NODE=HOST", required = true)]
    nodes: Vec<String>,
    /// Directory of the authority
    #[arg(long, value_name = "DIR", default_value = "chorus-certs", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
}

/// The result that `chorusd create-certificates` prints.
#[derive(Debug, Deserialize)]
struct Created {
    dir: PathBuf,
    new_authority: bool,
    nodes: Vec<String>,
    /// Those of the nodes that had a certificate in the directory.
    #[serde(default)]
    replaced: Vec<String>,
    valid_until: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("cluster cert")?;
    let mut arguments: Vec<OsString> = vec!["create-certificates".into(), "--dir".into(), args.dir.into_os_string()];
    arguments.extend(args.nodes.into_iter().map(OsString::from));
    let work = OfflineWork { label: "cluster cert", phases: &[], if_interrupted: "run the same command again" };
    let raw = run_chorusd(app, work, &arguments, None)?;
    if app.stdout.format() != OutputFormat::Text {
        return app.stdout.json_line(&raw);
    }
    let created: Created = parse_result(&raw)?;
    let dir = sanitize::one_line(&created.dir.to_string_lossy());
    if created.new_authority {
        app.stdout.status_line(&format!("created an authority: {dir}/ca.pem, with its key ca-key.pem"))?;
    }
    for node in &created.nodes {
        let verb = if created.replaced.contains(node) { "replaced" } else { "created" };
        let node = sanitize::one_line(node);
        app.stdout.status_line(&format!("{verb} {dir}/{node}/ with ca.pem, cert.pem and key.pem"))?;
    }
    let count = pluralize(created.nodes.len() as u64, "certificate");
    app.stdout.status_line(&format!("{count}, valid until {}", sanitize::one_line(&created.valid_until)))?;
    if created.new_authority {
        app.stdout.flush()?;
        app.stderr.warning(
            "nodes with certificates of another authority do not trust these; add nodes with --dir and the directory of their authority",
        );
    }
    app.stderr.hint("copy the directory of each node to that node; keep ca-key.pem here");
    Ok(())
}
