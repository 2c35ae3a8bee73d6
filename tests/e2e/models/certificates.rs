//! TLS: a machine without certificates reaches servers that need none, and trusts no other.

use std::process::{Child, Command, Stdio};

use chorus_tests::ctl::chorusctl;
use chorus_tests::free_port::free_port;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::wait::{DEADLINE, wait_until};
use chorus_tests::{Daemon, Home};

use crate::home;

/// A daemon that trusts the certificates in `file`.
fn start(home: &Home, config: &str, file: &str) -> Daemon {
    home.write_config(config);
    let mut command = home.command(home.bins.chorusd);
    command.env("SSL_CERT_FILE", file);
    Daemon::start_command(home, command)
}

/// `openssl s_server`, which answers `GET` with a page about itself.
struct TlsServer {
    child: Child,
    port: u16,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TlsServer {
    /// Starts a server whose certificate for 127.0.0.1, its own authority, is `cert.pem` in the home's temporary
    /// directory.
    fn start(home: &Home) -> Self {
        let dir = home.temp_dir();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(dir)
            .stderr(Stdio::null())
            .status()
            .expect("openssl");
        assert!(made.success());
        let port = free_port();
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-www", "-cert", "cert.pem", "-key", "key.pem", "-port", &port.to_string()])
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl s_server");
        wait_until("a TLS server", DEADLINE, || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, port }
    }

    fn config_toml(&self) -> String {
        format!("[providers.far]\nkind = \"openai\"\nbase_url = \"https://127.0.0.1:{}/v1\"\n", self.port)
    }
}

#[test]
fn without_certificates_a_server_on_this_machine_is_reached_all_the_same() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = start(&home, &server.config_toml(), "/dev/null");
    server.anthropic().set_fallback(Response::text(["Hello."]));
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    assert_eq!(chorusctl(&home, ["--agent", "a", "send", "Hello?"]).expect_success(), "Hello.\n");
    drop(daemon);
}

#[test]
fn a_server_is_trusted_by_the_certificates_of_the_machine_only() {
    let home = home();
    let server = TlsServer::start(&home);
    let daemon = start(&home, &server.config_toml(), "/dev/null");
    let refused = chorusctl(&home, ["models", "validate"]);
    assert_ne!(refused.status, 0);
    assert!(refused.stdout.contains("certificate"), "{}{}", refused.stdout, refused.stderr);
    drop(daemon);
    // Trusted, it answers: with a page that is no list of models.
    let trusted = home.temp_dir().join("cert.pem");
    let _daemon = start(&home, &server.config_toml(), &trusted.to_string_lossy());
    let answered = chorusctl(&home, ["models", "validate"]);
    assert!(!answered.stdout.contains("certificate"), "{}{}", answered.stdout, answered.stderr);
}
