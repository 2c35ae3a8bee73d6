//! Requests to Discord's REST API: method, route, query and body.

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder};
use serde::Serialize;
use serenity::model::id::{ApplicationId, ChannelId, GuildId, InteractionId, MessageId, UserId};

use super::{RestError, describe_json_error};

/// The version of the API and its place on the server.
const API_PATH: &str = "/api/v10";

/// A resource of the API.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route<'r> {
    ArchivedPublicThreads { channel_id: ChannelId },
    ApplicationCommands { application_id: ApplicationId },
    Channel { channel_id: ChannelId },
    ChannelMessage { channel_id: ChannelId, message_id: MessageId },
    ChannelMessages { channel_id: ChannelId },
    ChannelThreads { channel_id: ChannelId },
    ChannelTyping { channel_id: ChannelId },
    GatewayBot,
    Guild { guild_id: GuildId },
    GuildActiveThreads { guild_id: GuildId },
    GuildChannels { guild_id: GuildId },
    GuildCommands { application_id: ApplicationId, guild_id: GuildId },
    GuildMember { guild_id: GuildId, user_id: UserId },
    GuildRoles { guild_id: GuildId },
    InteractionResponse { interaction_id: InteractionId, token: &'r str },
    Oauth2ApplicationCurrent,
    UserMe,
    UserMeGuilds,
    WebhookFollowupMessages { application_id: ApplicationId, token: &'r str },
    WebhookOriginalInteractionResponse { application_id: ApplicationId, token: &'r str },
}

impl Route<'_> {
    /// Returns the path below the version of the API.
    fn path(self) -> String {
        match self {
            Self::ArchivedPublicThreads { channel_id } => format!("/channels/{channel_id}/threads/archived/public"),
            Self::ApplicationCommands { application_id } => format!("/applications/{application_id}/commands"),
            Self::Channel { channel_id } => format!("/channels/{channel_id}"),
            Self::ChannelMessage { channel_id, message_id } => format!("/channels/{channel_id}/messages/{message_id}"),
            Self::ChannelMessages { channel_id } => format!("/channels/{channel_id}/messages"),
            Self::ChannelThreads { channel_id } => format!("/channels/{channel_id}/threads"),
            Self::ChannelTyping { channel_id } => format!("/channels/{channel_id}/typing"),
            Self::GatewayBot => "/gateway/bot".into(),
            Self::Guild { guild_id } => format!("/guilds/{guild_id}"),
            Self::GuildActiveThreads { guild_id } => format!("/guilds/{guild_id}/threads/active"),
            Self::GuildChannels { guild_id } => format!("/guilds/{guild_id}/channels"),
            Self::GuildCommands { application_id, guild_id } => {
                format!("/applications/{application_id}/guilds/{guild_id}/commands")
            }
            Self::GuildMember { guild_id, user_id } => format!("/guilds/{guild_id}/members/{user_id}"),
            Self::GuildRoles { guild_id } => format!("/guilds/{guild_id}/roles"),
            Self::InteractionResponse { interaction_id, token } => {
                format!("/interactions/{interaction_id}/{token}/callback")
            }
            Self::Oauth2ApplicationCurrent => "/oauth2/applications/@me".into(),
            Self::UserMe => "/users/@me".into(),
            Self::UserMeGuilds => "/users/@me/guilds".into(),
            Self::WebhookFollowupMessages { application_id, token } => format!("/webhooks/{application_id}/{token}"),
            Self::WebhookOriginalInteractionResponse { application_id, token } => {
                format!("/webhooks/{application_id}/{token}/messages/@original")
            }
        }
    }
}

/// A request that can be sent several times.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: Method,
    /// Below the version of the API, without the query.
    pub path: String,
    query: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Empty,
    Json(Vec<u8>),
    /// JSON with one file.
    Upload {
        json: String,
        name: String,
        bytes: Vec<u8>,
    },
}

impl Request {
    /// Creates a request without a body.
    pub(crate) fn new(method: Method, route: Route<'_>) -> Self {
        Self { method, path: route.path(), query: Vec::new(), body: Body::Empty }
    }

    /// Creates a GET request.
    pub(crate) fn get(route: Route<'_>) -> Self {
        Self::new(Method::GET, route)
    }

    /// Creates a request with a JSON body.
    pub(crate) fn json(method: Method, route: Route<'_>, body: &impl Serialize) -> Result<Self, RestError> {
        let body = serde_json::to_vec(body).map_err(|e| RestError::Unreadable(describe_json_error(&e)))?;
        Ok(Self { body: Body::Json(body), ..Self::new(method, route) })
    }

    /// Creates a request with a JSON body, and a file (name and contents) if there is one.
    pub(crate) fn with_file(
        method: Method,
        route: Route<'_>,
        body: &impl Serialize,
        file: Option<(&str, &[u8])>,
    ) -> Result<Self, RestError> {
        let Some((name, bytes)) = file else { return Self::json(method, route, body) };
        let json = serde_json::to_string(body).map_err(|e| RestError::Unreadable(describe_json_error(&e)))?;
        let body = Body::Upload { json, name: name.to_owned(), bytes: bytes.to_vec() };
        Ok(Self { body, ..Self::new(method, route) })
    }

    /// Adds parameters to the query.
    #[must_use]
    pub(crate) fn query(mut self, query: Vec<(&'static str, String)>) -> Self {
        self.query.extend(query);
        self
    }

    /// Whether the body is a file.
    pub(crate) fn is_upload(&self) -> bool {
        matches!(self.body, Body::Upload { .. })
    }

    /// Builds the HTTP request to the server at `api_base`.
    pub(crate) fn build(&self, client: &Client, api_base: &str) -> Result<RequestBuilder, RestError> {
        let invalid = |_| RestError::Unreachable("cannot build the request".into());
        let address = format!("{}{API_PATH}{}", api_base.trim_end_matches('/'), self.path);
        let mut url = reqwest::Url::parse(&address).map_err(invalid)?;
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        let request = client.request(self.method.clone(), url);
        Ok(match &self.body {
            Body::Empty if self.method == Method::GET => request,
            Body::Empty => request.header(CONTENT_LENGTH, 0),
            Body::Json(json) => request.header(CONTENT_TYPE, "application/json").body(json.clone()),
            Body::Upload { json, name, bytes } => {
                let kind = mime_guess::from_path(name).first_or_octet_stream();
                let file = Part::bytes(bytes.clone()).file_name(name.clone());
                let file = file.mime_str(kind.essence_str()).map_err(|e| RestError::from_transport(&e))?;
                request.multipart(Form::new().part("files[0]", file).text("payload_json", json.clone()))
            }
        })
    }
}
