//! Servers at an address (streamable HTTP), over the TLS that all connections of the daemon use.

use std::collections::HashMap;
use std::time::Duration;

use chorus_base::Secret;
use chorus_config::{McpHttp, is_loopback_url};
use chorus_redact::Redactor;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::connection::{ConnectError, Connection, Handshake, error_text};

/// Limit until a connection is established, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the server. Its token is replaced in errors, because servers may repeat it.
pub(crate) async fn connect(
    server: &McpHttp,
    handshake: Handshake,
    redactor: &Redactor,
) -> Result<Connection, ConnectError> {
    let setup = |message| ConnectError { message, unknown_handshake: false };
    let config = server.clone();
    let prepared = chorus_runtime::spawn_blocking(move || -> Result<_, String> {
        Ok((build_client(&config.url)?, config.read_token()?))
    });
    let (client, token) = prepared.await.map_err(|e| setup(e.to_string()))?.map_err(setup)?;
    let headers = custom_headers(server, redactor).map_err(setup)?;
    if let Some(token) = &token {
        redactor.add_own_key(token);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(&*server.url).custom_headers(headers);
    if let Some(token) = &token {
        config = config.auth_header(token.expose());
    }
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let scrub =
        |message: String| token.as_ref().map_or_else(|| message.clone(), |token: &Secret| token.scrub(&message));
    Connection::open(transport, handshake).await.map_err(|e| ConnectError { message: scrub(e.message), ..e })
}

/// Makes the client. Blocks, because it reads the system's certificates.
fn build_client(url: &str) -> Result<Client, String> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(chorus_tls::client_config())
        .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
        // The token belongs to the configured server only.
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT);
    if is_loopback_url(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|e| format!("cannot use TLS: {}", error_text(&e)))
}

fn custom_headers(server: &McpHttp, redactor: &Redactor) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, variable): &(String, chorus_config::EnvVariable)| {
        let unset = || format!("{} is not set in the daemon's environment", variable.name);
        let value = variable.value.as_ref().ok_or_else(unset)?;
        redactor.add_own_key(value);
        let mut sent = HeaderValue::from_str(value.expose())
            .map_err(|_| format!("the value of {} cannot be sent in a header", variable.name))?;
        sent.set_sensitive(true);
        Ok((HeaderName::try_from(name).map_err(|_| format!("{name} is not the name of a header"))?, sent))
    };
    server.headers.iter().map(header).collect()
}
