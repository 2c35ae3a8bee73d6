//! The gateway behind a proxy: HTTPS_PROXY leads to it, TLS goes through, and the name of the server is verified.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::{DEADLINE, Daemon, Home, skip, wait_until};

use super::{becomes, info};
use crate::home;

/// A proxy that takes CONNECT alone, and behind it a server with a certificate, in front of the gateway; neither is of Chorus. Each
/// target that is asked for is printed, and so is the number of bytes that came decrypted.
const PROXY: &str = r#"
import socket, ssl, sys, threading
cert, key, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(cert, key)
def copy(a, b, told):
    try:
        while True:
            data = a.recv(65536)
            if not data: break
            if told: print("bytes", len(data), flush=True)
            b.sendall(data)
    except OSError: pass
    try: b.shutdown(socket.SHUT_RDWR)
    except OSError: pass
def serve(near):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = near.recv(1)
        if not data: return
        head += data
    print(head.split(b"\r\n")[0].decode(), flush=True)
    if not head.startswith(b"CONNECT "):
        near.sendall(b"HTTP/1.1 405 Not Allowed\r\n\r\n"); near.close(); return
    near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    try: near = tls.wrap_socket(near, server_side=True)
    except (OSError, ssl.SSLError): return
    far = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=copy, args=(far, near, False), daemon=True).start()
    copy(near, far, True)
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
while True:
    near, _ = listener.accept()
    threading.Thread(target=serve, args=(near,), daemon=True).start()
"#;

struct Proxy {
    child: Child,
    url: String,
    told: Arc<Mutex<Vec<String>>>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Proxy {
    /// Starts it in front of the gateway at `port`, with a certificate of `name`; `None` where what it needs is not installed.
    fn start(folder: &Path, name: &str, port: &str) -> Option<Self> {
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .args(["-addext", &format!("subjectAltName=DNS:{name}"), "-addext", "basicConstraints=critical,CA:FALSE"])
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip("openssl is not installed: no certificate for the proxy");
            return None;
        }
        let child =
            Command::new("python3").args(["-c", PROXY]).arg(&cert).arg(&key).arg(port).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            skip("python3 is not installed: no proxy");
            return None;
        };
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let first = lines.next().expect("a line").expect("a line");
        let url = format!("http://127.0.0.1:{}", first.strip_prefix("port ").expect("a port"));
        let told = Arc::<Mutex<Vec<String>>>::default();
        let hears = told.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| hears.lock().expect("a list").push(line))
        });
        Some(Self { child, url, told })
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().expect("a list").clone()
    }
}

/// A daemon whose gateway is `wss://gateway.test`, which only the proxy knows.
fn daemon(home: &Home, discord: &FakeDiscord, proxy: &Proxy, more: &[(&str, &str)]) -> Daemon {
    home.write_config(&format!(
        "{}gateway_url = \"wss://gateway.test\"\nreconnect_max = \"1s\"\n",
        discord.config_toml()
    ));
    let mut command = home.command(home.bins.chorusd);
    command.env("HTTPS_PROXY", &proxy.url).env("SSL_CERT_FILE", home.temp_dir().join("cert.pem"));
    command.envs(more.iter().copied());
    Daemon::start_command(home, command)
}

fn rig(name: &str) -> Option<(FakeDiscord, Home, Proxy)> {
    let (discord, home) = (FakeDiscord::start(), home());
    discord.create_guild("home");
    discord.set_identify_interval(std::time::Duration::ZERO);
    let port = discord.gateway_url().rsplit(':').next().expect("a port").to_owned();
    let proxy = Proxy::start(home.temp_dir(), name, &port)?;
    Some((discord, home, proxy))
}

#[test]
fn the_gateway_is_reached_through_the_proxy_of_the_environment() {
    let Some((discord, home, proxy)) = rig("gateway.test") else { return };
    let daemon = daemon(&home, &discord, &proxy, &[]);
    becomes(&daemon, DiscordState::Connected);
    assert!(proxy.told().contains(&"CONNECT gateway.test:443 HTTP/1.1".to_owned()), "{:?}", proxy.told());
    assert!(proxy.told().iter().any(|line| line.starts_with("bytes ")), "all of it went that way");
}

#[test]
fn a_server_with_another_name_behind_the_proxy_is_told_nothing() {
    let Some((discord, home, proxy)) = rig("somebody.test") else { return };
    let daemon = daemon(&home, &discord, &proxy, &[]);
    wait_until("the proxy to be asked twice", DEADLINE, || {
        (proxy.told().iter().filter(|line| line.starts_with("CONNECT")).count() > 1).then_some(())
    });
    assert!(!proxy.told().iter().any(|line| line.starts_with("bytes ")), "{:?}", proxy.told());
    assert_ne!(info(&mut daemon.client()).state, Some(DiscordState::Connected));
    assert!(daemon.read_log().contains("through the proxy"), "{}", daemon.read_log());
}

#[test]
fn no_proxy_is_heeded() {
    let Some((discord, home, proxy)) = rig("gateway.test") else { return };
    let daemon = daemon(&home, &discord, &proxy, &[("NO_PROXY", "gateway.test")]);
    wait_until("a try to connect", DEADLINE, || daemon.read_log().contains("not connected to Discord").then_some(()));
    assert_eq!(proxy.told(), Vec::<String>::new());
}
