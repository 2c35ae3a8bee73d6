//! Answers to commands and buttons, and the commands that servers are told.

use serde::Serialize;
use serde_json::{Value, json};
use serenity::builder::CreateAttachment;
use serenity::http::{LightMethod, Multipart, MultipartUpload, Request, Route};
use serenity::model::id::{ApplicationId, GuildId, InteractionId};

use super::{RestClient, RestError, json_request};

/// What an interaction is answered by. Good for 15 minutes.
#[derive(Debug, Clone)]
pub struct InteractionRef {
    pub id: InteractionId,
    pub application: ApplicationId,
    pub token: String,
}

/// The first answer, which Discord wants within 3 seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum InitialResponse {
    /// More follows; `private`: seen by the one who asked only.
    Defer { private: bool },
    /// The message of the button may be changed later.
    DeferUpdate,
    /// A private line, and no more.
    PrivateMessage(String),
    /// What is offered: names and values.
    Choices(Vec<(String, String)>),
}

/// Private messages have it.
const EPHEMERAL_FLAG: u64 = 1 << 6;

impl InitialResponse {
    fn to_json(&self) -> Value {
        match self {
            Self::Defer { private: true } => json!({"type": 5, "data": {"flags": EPHEMERAL_FLAG}}),
            Self::Defer { private: false } => json!({"type": 5}),
            Self::DeferUpdate => json!({"type": 6}),
            Self::PrivateMessage(content) => {
                let data = json!({"content": content, "flags": EPHEMERAL_FLAG, "allowed_mentions": {"parse": []}});
                json!({"type": 4, "data": data})
            }
            Self::Choices(choices) => {
                let choices: Vec<Value> =
                    choices.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                json!({"type": 8, "data": {"choices": choices}})
            }
        }
    }
}

impl RestClient {
    /// Gives the first answer.
    ///
    /// # Errors
    /// What Discord says; then nothing is to be done for it.
    pub async fn create_response(&self, way: &InteractionRef, first: &InitialResponse) -> Result<(), RestError> {
        let route = Route::InteractionResponse { interaction_id: way.id, token: &way.token };
        self.execute(json_request(LightMethod::Post, route, &first.to_json())?).await
    }

    /// Puts `body` in the place of the first answer, or changes the message of a button.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn edit_response(
        &self,
        way: &InteractionRef,
        mut body: Value,
        file: Option<(String, Vec<u8>)>,
    ) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        let Some((name, bytes)) = file else {
            // The page before may have been a file.
            body["attachments"] = json!([]);
            return self.background().execute(json_request(LightMethod::Patch, route, &body)?).await;
        };
        body["attachments"] = json!([{"id": 0, "filename": name}]);
        let upload = MultipartUpload::Attachments(vec![CreateAttachment::bytes(bytes, name)]);
        let multipart = Multipart { upload, fields: Vec::new(), payload_json: Some(body.to_string()) };
        self.background().execute(Request::new(route, LightMethod::Patch).multipart(Some(multipart))).await
    }

    /// Takes the first answer away.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn delete_response(&self, way: &InteractionRef) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        self.background().execute(Request::new(route, LightMethod::Delete)).await
    }

    /// Says something more.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn create_followup(&self, way: &InteractionRef, content: &str, private: bool) -> Result<(), RestError> {
        let route = Route::WebhookFollowupMessages { application_id: way.application, token: &way.token };
        let flags = if private { EPHEMERAL_FLAG } else { 0 };
        let body = json!({"content": content, "flags": flags, "allowed_mentions": {"parse": []}});
        self.background().execute(json_request(LightMethod::Post, route, &body)?).await
    }

    /// Tells a server all commands there are; nobody waits for it.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn set_guild_commands(
        &self,
        application: ApplicationId,
        guild: GuildId,
        commands: &impl Serialize,
    ) -> Result<(), RestError> {
        let route = Route::GuildCommands { application_id: application, guild_id: guild };
        self.background().execute(json_request(LightMethod::Put, route, commands)?).await
    }
}
