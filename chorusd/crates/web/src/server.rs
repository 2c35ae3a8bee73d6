//! The process: binds, prints the link, accepts connections within limits, and ends with a signal.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use chorus_base::error::{Error, Result};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::tz::TimeZone;
use signal_hook::low_level::emulate_default_handler;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::app::App;
use crate::hub::Hub;
use crate::login::Login;
use crate::strangers::{STRANGER_TIME, Strangers, Visitor};
use crate::write_limit::WriteLimited;
use crate::{Options, browser, prefix, routes};

/// The limit on connections; more of them wait. Those without a session cannot reach it (`strangers.rs`).
const MAX_CONNECTIONS: usize = 256;
/// How long a request's head may take, and a connection may stay open without one.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a client may read nothing of what it asked for.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;
/// The wait after a connection could not be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves the pages until a signal ends the process.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut stops = Stops::new().map_err(|e| Error::io("cannot handle signals", &e))?;
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port))).await;
    let listener = listener.map_err(|e| port_error(options.port, &e))?;
    let port = listener.local_addr().map_err(|e| port_error(options.port, &e))?.port();
    let (login, token) = Login::new(port).map_err(|e| Error::io("cannot get random bytes", &e))?;
    let places = Arc::new(options.places);
    prefix::set_up(&places.home).map_err(|e| Error::io("cannot use the key of the pages in `run` of the home", &e))?;
    let hub = Hub::new();
    let app = Arc::new(App {
        places: places.clone(),
        port,
        is_read_only: options.is_read_only,
        login,
        hub: hub.clone(),
        zone: TimeZone::system(),
    });
    let followed = places.clone();
    chorus_runtime::spawn(async move { hub.run(followed).await });
    let link = format!("http://127.0.0.1:{port}{}?token={token}", prefix::at(routes::OPEN));
    let opening = options.opens_browser.then(|| browser::open(&app, &link));
    print_link(&link, port, opening.as_ref()).map_err(|e| Error::io("cannot print the link", &e))?;
    let served = routes::router(app.clone());
    let kind = tokio::select! {
        kind = stops.wait() => kind,
        () = accept(listener, served) => return Ok(()),
    };
    app.login.forget_file();
    if kind == SignalKind::interrupt() && io::stdout().is_terminal() {
        // After the `^C` of the terminal.
        let _ = writeln!(io::stdout());
    }
    // Ends the process as if the signal had not been handled.
    emulate_default_handler(kind.as_raw_value()).map_err(|e| Error::io("cannot end", &e))
}

fn port_error(port: u16, error: &io::Error) -> Error {
    let failed = Error::io(format!("cannot listen on port {port}"), error);
    failed.hint("leave out --port to use a free one")
}

fn print_link(link: &str, port: u16, opening: Option<&browser::Opening>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{link}")?;
    let text = match opening {
        Some(browser::Opening::Started) => "opened in your browser",
        Some(browser::Opening::Failed) => "the browser could not be started: open the link yourself",
        Some(browser::Opening::NoBrowser) | None => "open it in a browser on this machine",
    };
    writeln!(out, "{text}; the link works once; Ctrl-C ends the pages")?;
    if browser::is_remote() {
        writeln!(out, "from your own machine, first: ssh -L {port}:127.0.0.1:{port} {}", browser::host_name())?;
    }
    out.flush()
}

async fn accept(listener: TcpListener, served: Router) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let strangers = Strangers::default();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((connection, _)) => {
                let visitor = strangers.enter();
                let served = served.clone().layer(Extension(visitor.clone()));
                chorus_runtime::spawn(async move {
                    serve(connection, served, &visitor).await;
                    visitor.leave();
                    drop(permit);
                });
            }
            // Such as too many open files.
            Err(_) => sleep(ACCEPT_RETRY).await,
        }
    }
}

async fn serve(connection: TcpStream, served: Router, visitor: &Visitor) {
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(MAX_HEAD).half_close(false);
    // The browser may go away at any time.
    let mut served =
        pin!(server.serve_connection(
            TokioIo::new(WriteLimited::new(connection, WRITE_TIME)),
            TowerToHyperService::new(served)
        ));
    tokio::select! {
        _ = served.as_mut() => return,
        () = visitor.ended() => return,
        () = sleep(STRANGER_TIME) => {}
    }
    if visitor.is_known() {
        let _ = served.await;
    }
}

/// The signals that end the process.
struct Stops([(SignalKind, Signal); 3]);

impl Stops {
    fn new() -> io::Result<Self> {
        let listen = |kind| Ok::<_, io::Error>((kind, signal(kind)?));
        Ok(Self([listen(SignalKind::terminate())?, listen(SignalKind::hangup())?, listen(SignalKind::interrupt())?]))
    }

    async fn wait(&mut self) -> SignalKind {
        let Self([terminate, hangup, interrupt]) = self;
        tokio::select! {
            _ = terminate.1.recv() => terminate.0,
            _ = hangup.1.recv() => hangup.0,
            _ = interrupt.1.recv() => interrupt.0,
        }
    }
}
