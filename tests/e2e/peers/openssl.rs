//! An independent TLS client and server: `openssl s_client` and `s_server`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Result;

/// The bytes of a frame.
pub(super) fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).expect("a short frame").to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

/// A child that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to a port, sends bytes, and returns the body of the first frame of the answer. `None` if the connection ended
/// without one. Blocks.
pub(super) fn exchange(port: u16, ca: &Path, args: &[&str], bytes: &[u8]) -> Result<Option<String>> {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-verify_return_error", "-CAfile"]).arg(ca).args(args);
    command.args(["-connect", &format!("127.0.0.1:{port}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Killed(command.spawn()?);
    let mut input = child.0.stdin.take().ok_or("no standard input")?;
    // It fails if the connection was refused before.
    let _ = input.write_all(bytes).and_then(|()| input.flush());
    let mut output = child.0.stdout.take().ok_or("no standard output")?;
    let mut header = [0; 4];
    if output.read_exact(&mut header).is_err() {
        return Ok(None);
    }
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(header))?];
    output.read_exact(&mut body)?;
    Ok(Some(String::from_utf8(body)?))
}

/// A server that accepts connections and says nothing.
pub(super) struct Server {
    pub(super) port: u16,
    _child: Killed,
}

impl Server {
    /// Starts one with a certificate and these arguments. Blocks until it listens.
    pub(super) fn start(cert: &Path, key: &Path, args: &[&str]) -> Result<Self> {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert"]).arg(cert).arg("-key").arg(key).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Killed(command.spawn()?);
        let output = BufReader::new(child.0.stdout.take().ok_or("no standard output")?);
        for line in output.lines() {
            // ACCEPT 127.0.0.1:PORT
            if let Some(port) =
                line?.strip_prefix("ACCEPT ").and_then(|address| address.rsplit(':').next()?.parse().ok())
            {
                return Ok(Self { port, _child: child });
            }
        }
        Err("openssl s_server does not listen".into())
    }
}
