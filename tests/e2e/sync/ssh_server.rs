//! An ssh server of a test, on a port of its own.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chorus_tests::free_port::free_port;
use chorus_tests::{DEADLINE, Home, wait_until};

/// A running sshd that the user of the test may log in to. Dropping it ends it.
pub(super) struct SshServer {
    server: Child,
    dir: PathBuf,
}

impl SshServer {
    /// Starts a server whose logins use this home; `None` if sshd is not installed.
    pub(super) fn start(home: &Home) -> Option<Self> {
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
        fs::write(dir.join("chorusctl"), wrapper).expect("a program");
        fs::set_permissions(dir.join("chorusctl"), Permissions::from_mode(0o755)).expect("permissions");
        let port = free_port();
        let at = |name: &str| dir.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n",
            at("host"),
            at("authorized"),
        );
        fs::write(dir.join("sshd_config"), config).expect("a configuration");
        let client = format!(
            "Host box\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n \
             StrictHostKeyChecking yes\n HostKeyAlias box\n",
            at("user"),
            at("known"),
        );
        fs::write(dir.join("ssh_config"), client).expect("a configuration");
        let key = fs::read_to_string(dir.join("host.pub")).expect("a key");
        fs::write(dir.join("known"), format!("box {key}")).expect("known hosts");
        // Only root needs it.
        let _ = fs::create_dir_all("/run/sshd");
        let mut server = Command::new(sshd);
        server.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        let log = fs::File::create(dir.join("log")).expect("a log");
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("sshd starts");
        let server = Self { server, dir };
        wait_until("sshd", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(server)
    }

    /// The command to use as ssh.
    pub(super) fn rsh(&self) -> String {
        format!("ssh -F '{}'", self.dir.join("ssh_config").display())
    }

    /// The path of chorusctl at the other end.
    pub(super) fn chorusctl(&self) -> String {
        self.dir.join("chorusctl").display().to_string()
    }

    /// The user's home at the other end.
    pub(super) fn home(&self) -> &Path {
        &self.dir
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
