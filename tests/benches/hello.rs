//! Bench: round trip of `hello`, compared with a raw echo over the same kind of socket, served by another process.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{DEADLINE, Daemon, home, wait_until};
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const ROUNDS: usize = 20_000;
const REQUEST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}"#;

/// Echoes everything that arrives.
async fn echo(mut stream: Stream) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

/// Runs the echo server with the same runtime and socket crate as `chorusd`.
fn serve_echo(socket: &Path) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = ListenerOptions::new().name(socket.to_fs_name::<GenericFilePath>()?).create_tokio()?;
        loop {
            let stream = listener.accept().await?;
            chorus_runtime::spawn(echo(stream));
        }
    })
}

fn start_echo(socket: &Path) -> Child {
    let own = std::env::current_exe().expect("this program");
    let child = Command::new(own).arg("--echo").arg(socket).spawn().expect("an echo process");
    wait_until("the echo process", DEADLINE, || UnixStream::connect(socket).ok());
    child
}

/// Sends a frame and receives one.
fn round_trip(stream: &mut UnixStream, frame: &[u8], buffer: &mut Vec<u8>) -> Duration {
    time(|| {
        stream.write_all(frame).expect("sent");
        let mut header = [0; 4];
        stream.read_exact(&mut header).expect("an answer");
        buffer.resize(u32::from_be_bytes(header) as usize, 0);
        stream.read_exact(buffer).expect("an answer");
    })
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "--echo") {
        let socket = arguments.next().expect("a socket");
        return serve_echo(Path::new(&socket)).expect("an echo");
    }
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    let socket = home.temp_dir().join("echo.sock");
    let mut echo = start_echo(&socket);
    let frame = [&(REQUEST.len() as u32).to_be_bytes()[..], REQUEST].concat();
    let mut floor = UnixStream::connect(&socket).expect("the echo process");
    let mut ours = UnixStream::connect(home.socket()).expect("chorusd");
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let ratio = measure_paired(
        "hello, round trip",
        1.5,
        ROUNDS,
        || round_trip(&mut floor, &frame, &mut one),
        || round_trip(&mut ours, &frame, &mut two),
    );
    print_report(ratio);
    drop(daemon);
    echo.kill().expect("the echo process ends");
    echo.wait().expect("it has ended");
}
