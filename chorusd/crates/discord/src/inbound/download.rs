//! Downloads attachments: without the token, only from Discord's hosts, and with limits on size and time.

use std::time::Duration;

use chorus_config::discord::DiscordConfig as Config;
use reqwest::{Client, StatusCode, Url, redirect};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::message_text::format_size;

/// The hosts of Discord's attachments.
const ATTACHMENT_HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// Time for one try, from the first byte to the last.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_TRIES: usize = 2;
/// Concurrent downloads of all agents together.
const MAX_CONCURRENT_DOWNLOADS: usize = 8;

/// Downloads attachments.
#[derive(Debug)]
pub(super) struct Downloader {
    client: Client,
    /// The configured base URL of the API.
    api_base: Option<Url>,
    permits: Semaphore,
}

/// Why a try failed.
#[derive(Debug, PartialEq, Eq)]
struct DownloadError {
    message: String,
    /// Another try may succeed.
    is_transient: bool,
}

impl DownloadError {
    fn permanent(why: impl Into<String>) -> Self {
        Self { message: why.into(), is_transient: false }
    }
}

impl Downloader {
    /// Blocks, because the machine's certificates are read.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let client = Client::builder()
            .tls_backend_preconfigured(chorus_tls::client_config())
            .redirect(redirect::Policy::none())
            .connect_timeout(DOWNLOAD_TIMEOUT / 3)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self {
            client,
            api_base: Url::parse(&config.api_base).ok(),
            permits: Semaphore::new(MAX_CONCURRENT_DOWNLOADS),
        })
    }

    /// Downloads a file of at most `most` bytes.
    pub(super) async fn download(&self, url: &str, most: u64) -> Result<Vec<u8>, String> {
        let url = self.check_url(url).ok_or("not hosted by Discord")?;
        let _slot = self.permits.acquire().await.map_err(|e| e.to_string())?;
        let mut why = String::new();
        for _ in 0..MAX_TRIES {
            let late = DownloadError { message: "the download timed out".into(), is_transient: true };
            match timeout(DOWNLOAD_TIMEOUT, self.download_once(&url, most)).await.unwrap_or(Err(late)) {
                Ok(bytes) => return Ok(bytes),
                Err(missed) => {
                    why = missed.message;
                    if !missed.is_transient {
                        break;
                    }
                }
            }
        }
        Err(why)
    }

    async fn download_once(&self, url: &Url, most: u64) -> Result<Vec<u8>, DownloadError> {
        // The URL contains a signature, which must not be shown.
        let lost = |e: reqwest::Error| DownloadError {
            message: format!("the download failed ({})", e.without_url()),
            is_transient: true,
        };
        let mut answer = self.client.get(url.clone()).send().await.map_err(lost)?;
        let status = answer.status();
        if !status.is_success() {
            let again = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            return Err(DownloadError {
                message: format!("the download failed ({})", status.as_u16()),
                is_transient: again,
            });
        }
        let too_large = || DownloadError::permanent(format!("larger than {}", format_size(most)));
        if answer.content_length().is_some_and(|length| length > most) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            if (bytes.len() + piece.len()) as u64 > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Parses a URL, and returns it if it leads to Discord or to the configured API server.
    fn check_url(&self, url: &str) -> Option<Url> {
        let url = Url::parse(url).ok().filter(|url| url.username().is_empty() && url.password().is_none())?;
        let discords = url.scheme() == "https" && url.port().is_none() && ATTACHMENT_HOSTS.contains(&url.host_str()?);
        let same = |api: &Url| {
            let place =
                |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
            place(api) == place(&url)
        };
        (discords || self.api_base.as_ref().is_some_and(same)).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_discord_keeps_is_fetched() {
        let config = Config { api_base: "http://127.0.0.1:8080".into(), ..Config::default() };
        let fetch = Downloader::new(&config).unwrap();
        let allowed = |url: &str| fetch.check_url(url).is_some();
        for url in [
            "https://cdn.discordapp.com/attachments/1/2/a.png?ex=1&is=2&hm=3",
            "https://media.discordapp.net/attachments/1/2/a.png",
            "http://127.0.0.1:8080/attachments/1/2/a.png",
        ] {
            assert!(allowed(url), "{url}");
        }
        for url in [
            "http://cdn.discordapp.com/a.png",
            "https://cdn.discordapp.com:8443/a.png",
            "https://user@cdn.discordapp.com/a.png",
            "https://cdn.discordapp.com.example.com/a.png",
            "https://example.com/a.png",
            "https://127.0.0.1:8080/a.png",
            "http://127.0.0.1:8081/a.png",
            "http://localhost:8080/a.png",
            "file:///etc/passwd",
            "a.png",
        ] {
            assert!(!allowed(url), "{url}");
        }
    }
}
