//! Ways to the database: TLS as the URL demands it, and what a failed attempt says.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use chorus_store_postgres::DatabaseUrl;
use chorus_tests::certificates::Authority;
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::free_port::free_port;
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::{Database, Server};
use chorus_tests::{DEADLINE, wait_until};

use super::Result;

const PASSWORD: &str = "geheim";

/// Who may log in how. `scram` has a password.
const RULES: &str = "local all all trust\nhostssl all scram 127.0.0.1/32 scram-sha-256\n\
    hostssl all encrypted 127.0.0.1/32 trust\nhost all postgres,limited 127.0.0.1/32 trust\n";

/// Starts a server whose certificate is for `localhost`; `None` if PostgreSQL is not installed.
async fn start_tls(authority: &Authority, days: u32) -> Result<Option<Database>> {
    let server = Server::start_with(|data: &Path| {
        let key = data.join("server.key");
        authority.sign("localhost", days, &data.join("server.crt"), &key);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
        std::fs::write(data.join("postgresql.auto.conf"), "ssl = on\n")?;
        Ok(std::fs::write(data.join("pg_hba.conf"), RULES)?)
    })?;
    let Some(server) = server else { return Ok(None) };
    let database = Database::create_on(Arc::clone(&server)).await?;
    let admin = database.connect().await?;
    let roles = format!(
        "CREATE ROLE scram LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE encrypted LOGIN;
         CREATE ROLE limited LOGIN CONNECTION LIMIT 0"
    );
    admin.batch_execute(&roles).await?;
    admin.batch_execute("CREATE DATABASE fixed").await?;
    admin.batch_execute("ALTER DATABASE fixed SET default_transaction_read_only = on").await?;
    Ok(Some(database))
}

/// The message and the hint of a failed attempt.
async fn refusal(url: &str) -> Result<String> {
    let failure = match DatabaseUrl::parse(url) {
        Ok(parsed) => parsed.connect().await.err(),
        Err(failure) => Some(failure),
    };
    let failure = failure.ok_or_else(|| format!("{url} was accepted"))?;
    let hint = failure.hint.clone().ok_or_else(|| format!("{failure} has no hint"))?;
    let text = format!("{failure} / {hint}");
    assert!(!text.contains(PASSWORD) && !text.contains('\n'), "{text}");
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sslmode_checks_what_it_promises() -> Result {
    let dir = tempfile::tempdir()?;
    let authority = Authority::create(&dir.path().join("a"), "authority");
    let other = Authority::create(&dir.path().join("b"), "other authority");
    let namesake = Authority::create(&dir.path().join("c"), "authority");
    let Some(database) = start_tls(&authority, 2).await? else { return Ok(()) };
    let (port, name) = (database.direct_port(), database.name());
    let [ca, wrong, same_name] = [&authority, &other, &namesake].map(Authority::certificate);
    let (ca, wrong, same_name) = (ca.display(), wrong.display(), same_name.display());
    let encrypted = [
        format!("postgresql://encrypted@127.0.0.1:{port}/{name}"),
        format!("postgresql://encrypted@127.0.0.1:{port}/{name}?sslmode=prefer&sslrootcert={wrong}"),
        format!("postgresql://encrypted@127.0.0.1:{port}/{name}?sslmode=require"),
        format!("postgresql://encrypted@127.0.0.1:{port}/{name}?sslmode=verify-ca&sslrootcert={ca}"),
        format!("postgresql://encrypted@127.0.0.1:{port}/{name}?sslrootcert={ca}&sslmode=require"),
        format!("postgresql://encrypted@localhost:{port}/{name}?sslmode=verify-full&sslrootcert={ca}"),
        format!("host=localhost port={port} user=encrypted dbname={name} sslmode=verify-full sslrootcert='{ca}'"),
        // Channel binding ties the password to the certificate of the server, whatever else is checked.
        format!("postgresql://scram:{PASSWORD}@127.0.0.1:{port}/{name}?sslmode=require&channel_binding=require"),
    ];
    for url in &encrypted {
        let client = DatabaseUrl::parse(url)?.connect().await.map_err(|e| format!("{url}: {e}"))?;
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        assert!(client.query_one(sql, &[]).await?.get::<_, bool>(0), "{url}");
    }
    let plain = format!("postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=disable");
    let client = DatabaseUrl::parse(&plain)?.connect().await?;
    let ssl = client.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await?;
    assert!(!ssl.get::<_, bool>(0));
    let refused = [
        (format!("127.0.0.1:{port}/{name}?sslmode=verify-full&sslrootcert={ca}"), "a certificate for another host"),
        (format!("localhost:{port}/{name}?sslmode=verify-full&sslrootcert={wrong}"), "authority that is not trusted"),
        (format!("127.0.0.1:{port}/{name}?sslmode=verify-ca&sslrootcert={wrong}"), "authority that is not trusted"),
        (format!("127.0.0.1:{port}/{name}?sslmode=require&sslrootcert={wrong}"), "authority that is not trusted"),
        (format!("localhost:{port}/{name}?sslmode=verify-ca&sslrootcert={same_name}"), "authority that is not trusted"),
        (format!("127.0.0.1:{port}/{name}?sslmode=verify-ca&sslrootcert=/missing"), "cannot use sslrootcert /missing"),
        (format!("127.0.0.1:{port}/{name}?sslmode=disable"), "does not let the user \"encrypted\" connect"),
        (format!("127.0.0.1:{port}/{name}?sslmode=allow"), "unknown sslmode"),
    ];
    for (rest, wanted) in &refused {
        let text = refusal(&format!("postgresql://encrypted@{rest}")).await?;
        assert!(text.contains(wanted), "{rest}: {text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_says_what_is_wrong_and_what_to_do() -> Result {
    let dir = tempfile::tempdir()?;
    let authority = Authority::create(dir.path(), "authority");
    let Some(database) = start_tls(&authority, 0).await? else { return Ok(()) };
    let Some(without_tls) = Database::create().await? else { return Ok(()) };
    // One accepts connections and is silent; one speaks another protocol.
    let (silent, other) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (silent_port, other_port) = (silent.local_addr()?.port(), other.local_addr()?.port());
    std::thread::spawn(move || {
        for stream in other.incoming() {
            let _ = stream.and_then(|mut stream| std::io::Write::write_all(&mut stream, b"SSH-2.0-OpenSSH_9.2\r\n"));
        }
    });
    let closed = free_port();
    let (port, name, plain) = (database.direct_port(), database.name(), without_tls.direct_port());
    let ca = authority.certificate();
    let ca = ca.display();
    let at = format!("127.0.0.1:{port}");
    let table = [
        (format!("scram:wrong@{at}/{name}"), "refused the password of the user \"scram\"", "check user and password"),
        (format!("scram@{at}/{name}"), "asks for the password of the user \"scram\"", "add it to the URL"),
        (format!("postgres@{at}/nowhere"), "has no database \"nowhere\"", "CREATE DATABASE nowhere"),
        (format!("nobody@{at}/{name}"), "does not let the user \"nobody\" connect", "pg_hba.conf"),
        (format!("limited@{at}/{name}"), "has no free connection", "max_connections"),
        (format!("postgres@{at}/fixed"), "is a standby or read-only", "the primary server"),
        (format!("postgres:{PASSWORD}@127.0.0.1:{closed}/x"), "nothing listens there", "host and port"),
        (format!("postgres:{PASSWORD}@127.0.0.1:{silent_port}/x"), "does not answer", "firewall"),
        (
            format!("postgres:{PASSWORD}@127.0.0.1:{other_port}/x?sslmode=disable"),
            "PostgreSQL at",
            "check that the port",
        ),
        (format!("postgres:{PASSWORD}@127.0.0.1:{plain}/x?sslmode=require"), "does not offer TLS", "ssl = on"),
        (format!("postgres@localhost:{port}/{name}?sslmode=verify-full&sslrootcert={ca}"), "has expired", "renew"),
        (format!("postgres:{PASSWORD}@db.invalid/x?sslmode=disable"), "cannot be reached", "check the host"),
        (format!("postgres:{PASSWORD}@/x"), "has no host", "for example"),
        (format!("postgres:{PASSWORD}@h:port/x"), "cannot be parsed", "for example"),
    ];
    // What a pooler says is told in the same words.
    let pooled = without_tls.port_through(PoolMode::Transaction)?;
    let pooled =
        pooled.map(|port| (format!("postgres@127.0.0.1:{port}/nowhere"), "has no database \"nowhere\"", "create"));
    for (rest, wanted, hint) in table.iter().chain(&pooled) {
        let text = refusal(&format!("postgresql://{rest}")).await?;
        assert!(text.contains(wanted) && text.contains(hint), "{rest}: {text}");
    }
    Ok(())
}

#[test]
fn a_file_with_the_url_is_read_if_only_its_owner_may() -> Result {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("url");
    std::fs::write(&path, format!("postgresql://chorus:{PASSWORD}@db.example.org/chorus\n"))?;
    for (mode, accepted) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o622, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        match DatabaseUrl::from_file(&path) {
            Ok(url) => assert!(accepted && !format!("{url:?}").contains(PASSWORD), "{mode:o}"),
            Err(failure) => {
                assert!(!accepted && failure.message.contains(&format!("its mode is 0{mode:o}")), "{failure}");
                assert_eq!(failure.hint, Some(format!("chmod 600 {}", path.display())));
            }
        }
    }
    let missing = DatabaseUrl::from_file(&dir.path().join("missing")).err().ok_or("it was read")?;
    assert!(missing.message.contains("cannot use"), "{missing}");
    assert!(DatabaseUrl::from_file(dir.path()).is_err());
    let unset = DatabaseUrl::from_env("CHORUS_TEST_NO_SUCH_URL").err().ok_or("it was read")?;
    assert!(unset.message.contains("CHORUS_TEST_NO_SUCH_URL is not set"), "{unset}");
    Ok(())
}

/// Returns the hundredths of a second until the kernel asks whether the other side of a connection to a port of this machine is
/// there; empty for those on which it waits for something else.
fn keepalives_of(port: u16) -> Result<Vec<u64>> {
    let table = std::fs::read_to_string("/proc/net/tcp")?;
    let found = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, remote, "01", _, timer, ..] = fields[..] else { return None };
        let (kind, when) = timer.split_once(':')?;
        let is_ours = remote.ends_with(&format!(":{port:04X}")) && kind == "02";
        is_ours.then(|| u64::from_str_radix(when, 16).ok()).flatten()
    });
    Ok(found.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_asks_soon_whether_the_server_is_there() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    // Nobody else connects to its port.
    let proxy = FaultProxy::start(database.direct_port()).await?;
    let _client = DatabaseUrl::parse(&database.url_at(proxy.port()))?.connect().await?;
    let found = tokio::task::block_in_place(|| {
        wait_until("an idle connection", DEADLINE, || {
            keepalives_of(proxy.port()).ok().filter(|found| !found.is_empty())
        })
    });
    assert!(found.iter().all(|when| *when <= 600), "{found:?}");
    Ok(())
}
