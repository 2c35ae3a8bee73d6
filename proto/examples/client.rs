//! A small client of the daemon: prints its status, appends a message to an agent, and reads the agent's history.
//!
//!     cargo run -p chorus-proto --example client -- notes "Remember the milk."
//!
//! It needs a running daemon: `chorusctl daemon start`. docs/PROTOCOL.md describes every method.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints in the plainest way")]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use chorus_proto::methods::{agent, context, daemon};
use chorus_proto::{CallError, Client, ErrorKind, NewMessage, Role, paths};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [agent, text] = args.as_slice() else {
        eprintln!("usage: client AGENT TEXT");
        return ExitCode::from(2);
    };
    match run(agent, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(agent: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let mut client = connect()?;

    let status = client.call::<daemon::Status>(&daemon::StatusParams::default())?;
    println!("chorusd {} with {} agents", status.daemon.version, status.agents.len());

    let appended = append(&mut client, agent, text)?;
    println!("{agent} has {} messages; the last ones:", appended.messages);

    // Each method has its own type; its parameters and result follow from it.
    let last = context::ShowParams { agent: Some(agent.into()), last: Some(3), ..Default::default() };
    for message in client.call::<context::Show>(&last)?.messages {
        // What others wrote may hold control characters for a terminal: {:?} escapes them.
        println!("  {}: {:?}", message.role.as_str(), message.content);
    }

    let newest = context::HistoryParams { agent: Some(agent.into()), limit: Some(5), ..Default::default() };
    let history = client.call::<context::History>(&newest)?;
    println!("{} saved sessions; the newest:", history.total);
    for session in history.sessions {
        println!("  {}: {:?}", session.header.session_id, session.header.description);
    }
    Ok(())
}

/// Connects to the daemon that `chorusctl` would use. A server of another user is sent nothing.
fn connect() -> Result<Client, Box<dyn Error>> {
    let user = std::env::home_dir();
    let instance = paths::resolve(None, |name| std::env::var_os(name), user.as_deref(), None, paths::is_runtime_dir)?;
    let client = Client::connect_to(&instance)
        .map_err(|error| format!("cannot connect to {}: {error}", instance.socket.display()))?;
    client.set_timeout(Some(Duration::from_secs(10)))?;
    Ok(client)
}

/// Appends a message; creates the agent first if there is none of that name.
fn append(client: &mut Client, agent: &str, text: &str) -> Result<context::AppendResult, CallError> {
    let params = context::AppendParams {
        agent: Some(agent.into()),
        messages: vec![NewMessage::text(Role::User, text)],
        ..Default::default()
    };
    match client.call::<context::Append>(&params) {
        // Programs go by the kind of an error, never by its text.
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::AgentNotFound => {
            client.call::<agent::Init>(&agent::InitParams { name: agent.into(), ..Default::default() })?;
            client.call::<context::Append>(&params)
        }
        answer => answer,
    }
}
