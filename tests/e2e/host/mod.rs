//! `chorusctl --host`: the daemon of another machine, over a real ssh server.

mod commands;
mod cuts;
mod failures;
mod lost_lines;
mod shared_lines;

use std::process::Command;

use chorus_tests::ctl::{Output, run_command};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::ssh_server::SshServer;
use chorus_tests::{Fixture, Home, InteractiveCommand, skip};

use crate::home;

/// A machine that is reached over ssh, with the agent `api`, and this one.
struct Machines {
    here: Home,
    there: Fixture,
    server: SshServer,
}

impl Machines {
    /// `None` if there is no ssh server; then the test is skipped.
    fn start() -> Option<Self> {
        let there = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
        there.create_agent("api", None);
        let Some(server) = SshServer::start(&there.home) else {
            skip("sshd is not installed (openssh-server)");
            return None;
        };
        let here = home();
        here.write_config(&server.host_table());
        Some(Self { here, there, server })
    }

    /// A command of chorusctl here for the daemon there.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.here.command(self.here.bins.chorusctl);
        command.args(["--host", "box"]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        run_command(self.command(args), b"")
    }

    fn start_piped(&self, args: &[&str]) -> InteractiveCommand {
        InteractiveCommand::piped(self.command(args))
    }
}
