//! Fetching what Discord keeps for a message: without the token, from nowhere else, within bounds.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::text::size;
use crate::config::discord::Discord as Config;

/// Where Discord keeps files.
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// For one try, from the first byte to the last.
const PATIENCE: Duration = Duration::from_secs(15);
const TRIES: usize = 2;
/// Files that are on their way at once, for all agents together.
const AT_ONCE: usize = 8;

/// Fetches files.
#[derive(Debug)]
pub struct Fetch {
    client: Client,
    /// The configured place of the API.
    api: Option<Url>,
    slots: Semaphore,
}

/// Why a try came to nothing.
#[derive(Debug, PartialEq, Eq)]
struct Missed {
    why: String,
    /// Another try may bring it.
    again: bool,
}

impl Missed {
    fn for_good(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: false }
    }
}

impl Fetch {
    /// Blocks: the machine's certificates are read.
    ///
    /// # Errors
    /// What the TLS library says.
    pub fn new(config: &Config) -> Result<Self, String> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(PATIENCE / 3)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self { client, api: Url::parse(&config.api_base).ok(), slots: Semaphore::new(AT_ONCE) })
    }

    /// The bytes of a file, at most so many.
    ///
    /// # Errors
    /// Why it was not fetched, in words for a person.
    pub async fn bytes(&self, url: &str, most: u64) -> Result<Vec<u8>, String> {
        let url = self.allowed(url).ok_or("it is not kept by Discord")?;
        let _slot = self.slots.acquire().await.map_err(|e| e.to_string())?;
        let mut why = String::new();
        for _ in 0..TRIES {
            let late = Missed { why: "it took too long to fetch".into(), again: true };
            match timeout(PATIENCE, self.once(&url, most)).await.unwrap_or(Err(late)) {
                Ok(bytes) => return Ok(bytes),
                Err(missed) => {
                    why = missed.why;
                    if !missed.again {
                        break;
                    }
                }
            }
        }
        Err(why)
    }

    async fn once(&self, url: &Url, most: u64) -> Result<Vec<u8>, Missed> {
        // The address has a signature in it, which is for nobody else.
        let lost =
            |e: reqwest::Error| Missed { why: format!("it could not be fetched ({})", e.without_url()), again: true };
        let mut answer = self.client.get(url.clone()).send().await.map_err(lost)?;
        let status = answer.status();
        if !status.is_success() {
            let again = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            return Err(Missed { why: format!("it could not be fetched ({})", status.as_u16()), again });
        }
        let too_large = || Missed::for_good(format!("larger than {}", size(most)));
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

    /// The address, where Discord or the server that stands for it is meant.
    fn allowed(&self, url: &str) -> Option<Url> {
        let url = Url::parse(url).ok().filter(|url| url.username().is_empty() && url.password().is_none())?;
        let discords = url.scheme() == "https" && url.port().is_none() && HOSTS.contains(&url.host_str()?);
        let same = |api: &Url| {
            let place =
                |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
            place(api) == place(&url)
        };
        (discords || self.api.as_ref().is_some_and(same)).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_discord_keeps_is_fetched() {
        let config = Config { api_base: "http://127.0.0.1:8080".into(), ..Config::default() };
        let fetch = Fetch::new(&config).unwrap();
        let allowed = |url: &str| fetch.allowed(url).is_some();
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
