//! The port accepts nodes of the cluster and nobody else.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use chorus_peers::{ClusterCredentials, ClusterSettings, ConnectErrorKind, ListenerLimits};
use chorus_tests::certificates::Authority;
use chorus_tests::{DEADLINE, wait_until};

use super::openssl::{exchange, frame};
use super::{Certificates, EchoNode, Result, VALID, ask, names_of, owner, pool_of, sign};

const HELLO: &[u8] = br#"{"protocol":1,"node":"a","boot":7,"version":"1.0.0"}"#;

/// Certificate and key, arguments, the hello, and the reason of the refusal; empty if it is accepted.
type Case<'a> = (Option<&'a (PathBuf, PathBuf)>, &'a [&'a str], &'a [u8], &'a str);

/// An attempt of `openssl s_client` to be the node a.
struct Attempt<'a> {
    identity: Option<(&'a Path, &'a Path)>,
    args: &'a [&'a str],
    sent: Vec<u8>,
}

impl Attempt<'_> {
    fn run(&self, port: u16, ca: &Path) -> Result<Option<String>> {
        let mut args = self.args.to_vec();
        if let Some((cert, key)) = self.identity {
            args.extend(["-cert", cert.to_str().ok_or("a path")?, "-key", key.to_str().ok_or("a path")?]);
        }
        exchange(port, ca, &args, &self.sent)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_independent_client_is_accepted_with_a_good_certificate_only() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    let ca = certificates.authority.certificate();
    let other = Authority::create(&certificates.path("other"), "cluster");
    let good = certificates.sign("a", VALID);
    let expired = certificates.sign_names("expired", &names_of("a"), -9..-1);
    let future = certificates.sign_names("future", &names_of("a"), 3..9);
    let foreign = sign(&other, certificates.dir.path(), "foreign", &names_of("a"), VALID);
    let service = certificates.sign_names("service", "DNS:localhost,DNS:a,URI:chorus:nodes:a", VALID);
    const CHORUS: &[&str] = &["-alpn", "chorus-peer"];
    let table: [Case<'_>; 13] = [
        (Some(&good), CHORUS, HELLO, ""),
        (None, CHORUS, HELLO, "it has no certificate"),
        (Some(&foreign), CHORUS, HELLO, "its certificate is refused: it is signed by an authority that is not trusted"),
        (Some(&expired), CHORUS, HELLO, "its certificate is refused: it expired on"),
        (Some(&future), CHORUS, HELLO, "its certificate is refused: it is not valid before"),
        (Some(&service), CHORUS, HELLO, "its certificate does not have chorus:node:a, which it claims to be"),
        (Some(&good), CHORUS, br#"{"protocol":1,"node":"c","boot":7,"version":""}"#, "not have chorus:node:c"),
        (Some(&good), CHORUS, br#"{"protocol":2,"node":["a"]}"#, "it speaks version 2 of the protocol of nodes"),
        (Some(&good), CHORUS, br#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#, "its first frame is not a hello"),
        (Some(&good), CHORUS, &[b' '; 17 << 10], "its hello is too long"),
        (Some(&good), &[], HELLO, "it speaks another protocol over TLS"),
        (Some(&good), &["-alpn", "http/1.1"], HELLO, "it speaks another protocol over TLS"),
        (Some(&good), &["-alpn", "chorus-peer", "-tls1_2"], HELLO, "it does not speak TLS 1.3"),
    ];
    let mut refused = 0;
    for (identity, args, hello, reason) in table {
        let identity = identity.map(|(cert, key)| (cert.as_path(), key.as_path()));
        let attempt = Attempt { identity, args, sent: frame(hello) };
        let answer = attempt.run(node.port, &ca)?;
        if reason.is_empty() {
            let wanted = r#"{"accepted":{"protocol":1,"node":"b","boot":1,"version":"1.0.0"}}"#;
            assert_eq!(answer.as_deref(), Some(wanted));
            continue;
        }
        assert!(answer.as_deref().is_none_or(|answer| answer.contains("refused")), "{reason}: {answer:?}");
        refused += 1;
        wait_until(reason, DEADLINE, || {
            let all = node.refusals.list();
            all.iter().any(|one| one.count == refused && one.reason.contains(reason)).then_some(())
        });
    }
    // A tunnel over an independent client.
    let open = frame(br#"{"open":{"requester":{"kind":"owner"}}}"#);
    let sent = [frame(HELLO), frame(br#""ping""#), open, frame(b"request")].concat();
    let attempt = Attempt { identity: Some((&good.0, &good.1)), args: CHORUS, sent };
    assert!(attempt.run(node.port, &ca)?.is_some_and(|answer| answer.contains("accepted")));
    wait_until("the request", DEADLINE, || (node.received() == [&b"request"[..]]).then_some(()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_text_is_refused() -> Result {
    let certificates = Certificates::create()?;
    let node = EchoNode::start(&certificates, "b").await?;
    for (count, text) in
        (1..).zip([&b"GET / HTTP/1.1\r\nHost: b\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.2\r\n", &frame(HELLO)])
    {
        let mut stream = TcpStream::connect(("127.0.0.1", node.port))?;
        stream.write_all(text)?;
        stream.read_to_end(&mut Vec::new())?;
        wait_until("the refusal", DEADLINE, || {
            let all = node.refusals.list();
            all.iter().any(|one| one.count == count && one.reason == "it does not speak TLS").then_some(())
        });
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_learns_why_it_is_refused() -> Result {
    let certificates = Certificates::create()?;
    let other = Authority::create(&certificates.path("other"), "other");
    // The node a has a good certificate of another authority, and trusts both.
    let both = certificates.path("both.crt");
    let texts = [&certificates.authority, &other].map(|one| std::fs::read_to_string(one.certificate()));
    std::fs::write(&both, texts.into_iter().collect::<std::io::Result<Vec<_>>>()?.concat())?;
    let node = EchoNode::start(&certificates, "b").await?;
    let (cert, key) = sign(&other, certificates.dir.path(), "stranger", &names_of("a"), VALID);
    let stranger = ClusterSettings { ca: both, cert, key, ..certificates.settings("a") };
    let pool = pool_of(ClusterCredentials::load(&stranger, "a")?.into());
    let failure = pool.connect(&node.address("b"), &owner()).await.err().ok_or("it was accepted")?;
    assert_eq!(failure.kind, ConnectErrorKind::NotTrusted, "{failure}");
    assert!(failure.message.contains("does not trust the authority of this node's certificate"), "{failure}");
    assert!(failure.message.contains("node b at 127.0.0.1:"), "{failure}");
    // One connection is allowed, and another node has it.
    let limits = ListenerLimits { max_connections: 1, ..ListenerLimits::default() };
    let full = EchoNode::start_with(certificates.credentials("c")?, limits).await?;
    let pool = pool_of(certificates.credentials("a")?);
    let mut tunnel = pool.connect(&full.address("c"), &owner()).await?;
    let failure = pool.connect(&full.address("c"), &owner()).await.err().ok_or("it was accepted")?;
    assert_eq!(failure.kind, ConnectErrorKind::Refused);
    assert!(failure.message.contains("too many connections of nodes"), "{failure}");
    assert_eq!(ask(&mut tunnel, b"x").await?.as_deref(), Some(&b"x"[..]));
    Ok(())
}
