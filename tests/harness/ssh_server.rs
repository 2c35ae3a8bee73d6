//! An ssh server of a test, on a port of its own.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::free_port::free_port;
use crate::process;
use crate::{DEADLINE, Home, wait_until};

/// A running sshd that the user of the test may log in to. Dropping it ends it with its connections.
#[derive(Debug)]
pub struct SshServer {
    server: Child,
    dir: PathBuf,
    port: u16,
}

impl SshServer {
    /// Starts a server whose logins use this home; `None` if sshd is not installed.
    #[must_use]
    pub fn start(home: &Home) -> Option<Self> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].iter().find(|path| Path::new(path).exists())?;
        let dir = home.temp_dir().join("ssh");
        fs::create_dir_all(&dir).expect("a directory");
        for key in ["host", "user"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key)).status();
            assert!(made.expect("ssh-keygen").success());
        }
        fs::copy(dir.join("user.pub"), dir.join("authorized")).expect("a key");
        // Programs that are found in PATH there, and the home of Chorus.
        let wrapper = format!(
            "#!/bin/sh\nexport CHORUS_HOME='{}' HOME='{}' CHORUSD='{}'\nunset CHORUS_SOCKET\n[ -f ~/.bashrc ] && . ~/.bashrc\nexec '{}' \"$@\"\n",
            home.path.display(),
            dir.display(),
            home.bins.chorusd,
            home.bins.chorusctl
        );
        write_program(&dir.join("chorusctl"), &wrapper);
        let port = free_port();
        let at = |name: &str| dir.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n",
            at("host"),
            at("authorized"),
        );
        fs::write(dir.join("sshd_config"), config).expect("a configuration");
        let key = fs::read_to_string(dir.join("host.pub")).expect("a key");
        fs::write(dir.join("known"), format!("box {key}")).expect("known hosts");
        // Only root needs it.
        let _ = fs::create_dir_all("/run/sshd");
        let mut server = Command::new(sshd);
        server.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        let log = fs::File::create(dir.join("log")).expect("a log");
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("sshd starts");
        let server = Self { server, dir, port };
        server.write_client_config(port, "");
        wait_until("sshd", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(server)
    }

    /// Has the client reach the server at this port, with options of ssh that come first.
    pub fn write_client_config(&self, port: u16, options: &str) {
        let at = |name: &str| self.dir.join(name).display().to_string();
        let client = format!(
            "Host box\n{options} HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n \
             GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n HostKeyAlias box\n",
            at("user"),
            at("known"),
        );
        fs::write(self.dir.join("ssh_config"), client).expect("a configuration");
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The command to use as ssh.
    #[must_use]
    pub fn rsh(&self) -> String {
        format!("ssh -F '{}'", self.dir.join("ssh_config").display())
    }

    /// The path of chorusctl at the other end.
    #[must_use]
    pub fn chorusctl(&self) -> String {
        self.dir.join("chorusctl").display().to_string()
    }

    /// The user's home at the other end, with the keys.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.dir
    }

    /// Returns the table `[hosts.box]` for the other end.
    #[must_use]
    pub fn host_table(&self) -> String {
        format!("[hosts.box]\ncommand = \"{}\"\nrsh = \"{}\"\n", self.chorusctl(), self.rsh())
    }

    /// Replaces the program at the other end.
    pub fn write_chorusctl(&self, script: &str) {
        write_program(&self.dir.join("chorusctl"), script);
    }

    /// Returns how often somebody has logged in.
    #[must_use]
    pub fn logins(&self) -> usize {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default().matches("Accepted publickey").count()
    }

    /// Kills the processes of all connections. Returns how many there were.
    pub fn kill_connections(&self) -> usize {
        let children = children_of(self.server.id());
        children.iter().for_each(|pid| process::kill(*pid));
        children.len()
    }
}

fn write_program(path: &Path, script: &str) {
    // A program that runs cannot be written.
    let _ = fs::remove_file(path);
    fs::write(path, script).expect("a program");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
}

/// Returns the processes that `parent` has started, and theirs.
fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            // Of what runs there, only sshd is killed: what it started ends by itself.
            let is_sshd = stat.contains("(sshd");
            is_sshd.then_some((pid, rest.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![parent];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.kill_connections();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
