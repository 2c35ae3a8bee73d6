//! `chorusd create-certificates`, which `chorusctl cluster cert` runs: signs certificates for the nodes of a cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::Result;
use clap::Parser;

use crate::cli::print_error;

/// Signer of certificates, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd create-certificates")]
struct Args {
    /// The directory of the authority
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The socket of the daemon, which is not needed
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Nodes with their hosts, such as `a=a.example.org,10.0.0.1`
    #[arg(value_name = "NODE=HOST", required = true)]
    nodes: Vec<String>,
}

/// Signs certificates if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "create-certificates").then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd create-certificates".into()).chain(arguments));
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

#[cfg(not(feature = "cluster"))]
fn run(_: &Args) -> Result<()> {
    Err(chorus_base::error::Error::new(chorus_proto::ErrorKind::Unsupported, "this build of chorusd has no cluster")
        .hint("build it with the feature `cluster`: cargo build --release --workspace --features chorusd/cluster"))
}

#[cfg(feature = "cluster")]
fn run(args: &Args) -> Result<()> {
    use chorus_base::error::Error;
    use chorus_peers::{NewNode, issue_certificates};

    let nodes: Vec<NewNode> = args
        .nodes
        .iter()
        .map(|node| {
            // A node without hosts is refused with the others.
            let (name, hosts) = node.split_once('=').unwrap_or((node, ""));
            let hosts = hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect();
            NewNode { name: name.to_owned(), hosts }
        })
        .collect();
    let replaced: Vec<String> = nodes
        .iter()
        .filter(|node| args.dir.join(&node.name).join("cert.pem").exists())
        .map(|node| node.name.clone())
        .collect();
    let issued = issue_certificates(&args.dir, &nodes, jiff::Timestamp::now())
        .map_err(|problem| Error::invalid(problem.text).hint(problem.hint))?;
    let dir = std::path::absolute(&args.dir).map_err(|e| Error::io("cannot determine the working directory", &e))?;
    let nodes: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    crate::cli::print_json(&serde_json::json!({
        "dir": dir, "new_authority": issued.new_authority, "nodes": nodes, "replaced": replaced,
        "valid_until": issued.valid_until.to_string(),
    }))
}
