//! An append through the node that does not have the agent, compared with one through its owner and a round trip of the same bytes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use chorus_tests::Daemon;
use chorus_tests::bulk_data::text_of_kilobyte;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time};
use chorus_tests::postgres::Result;

use super::Nodes;

const ROUNDS: usize = 500;

/// Bytes of an answer.
const ANSWER: usize = 64;

/// A connection to a thread that answers each request.
struct RoundTrip(TcpStream, Vec<u8>);

impl RoundTrip {
    fn connect(request: usize) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (mut server, _) = listener.accept()?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        thread::spawn(move || {
            let mut request = vec![0; request];
            while server.read_exact(&mut request).is_ok() && server.write_all(&[0; ANSWER]).is_ok() {}
        });
        Ok(Self(client, vec![0; request]))
    }

    fn take(&mut self) -> Duration {
        time(|| {
            self.0.write_all(&self.1).expect("a request");
            self.0.read_exact(&mut [0; ANSWER]).expect("an answer");
        })
    }
}

pub fn measure() -> Result {
    let nodes = Nodes::create()?;
    let [a, b] = nodes.homes.each_ref().map(Daemon::start);
    let (mut owner, mut other) = (a.client(), b.client());
    let text = text_of_kilobyte();
    owner.init("x");
    let mut trip = RoundTrip::connect(text.len())?;
    let local = |client: &mut chorus_proto::Client| time(|| assert!(client.append("x", &text) > 0));
    let floor = || local(&mut owner) + trip.take();
    let name = "append of 1 KB through another node, to an append and a round trip";
    let measured = measure_paired(name, 1.3, ROUNDS, floor, || local(&mut other));
    print_report(measured);
    Ok(())
}
