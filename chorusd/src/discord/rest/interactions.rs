//! Answers to commands and buttons, and the commands that servers are told.

use serde::Serialize;
use serde_json::{Value, json};
use serenity::builder::CreateAttachment;
use serenity::http::{LightMethod, Multipart, MultipartUpload, Request, Route};
use serenity::model::id::{ApplicationId, GuildId, InteractionId};

use super::{Rest, RestError, json};

/// What an interaction is answered by. Good for 15 minutes.
#[derive(Debug, Clone)]
pub struct Way {
    pub id: InteractionId,
    pub application: ApplicationId,
    pub token: String,
}

/// The first answer, which Discord wants within 3 seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum First {
    /// More follows; `private`: seen by the one who asked only.
    Defer { private: bool },
    /// The message of the button may be changed later.
    Update,
    /// A private line, and no more.
    Say(String),
    /// What is offered: names and values.
    Offer(Vec<(String, String)>),
}

/// Private messages have it.
const EPHEMERAL: u64 = 1 << 6;

impl First {
    fn body(&self) -> Value {
        match self {
            Self::Defer { private: true } => json!({"type": 5, "data": {"flags": EPHEMERAL}}),
            Self::Defer { private: false } => json!({"type": 5}),
            Self::Update => json!({"type": 6}),
            Self::Say(content) => {
                let data = json!({"content": content, "flags": EPHEMERAL, "allowed_mentions": {"parse": []}});
                json!({"type": 4, "data": data})
            }
            Self::Offer(choices) => {
                let choices: Vec<Value> =
                    choices.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                json!({"type": 8, "data": {"choices": choices}})
            }
        }
    }
}

impl Rest {
    /// Gives the first answer.
    ///
    /// # Errors
    /// What Discord says; then nothing is to be done for it.
    pub async fn first_answer(&self, way: &Way, first: &First) -> Result<(), RestError> {
        let route = Route::InteractionResponse { interaction_id: way.id, token: &way.token };
        self.tell(json(LightMethod::Post, route, &first.body())?).await
    }

    /// Puts `body` in the place of the first answer, or changes the message of a button.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn edit_answer(
        &self,
        way: &Way,
        mut body: Value,
        file: Option<(String, Vec<u8>)>,
    ) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        let Some((name, bytes)) = file else {
            // The page before may have been a file.
            body["attachments"] = json!([]);
            return self.waiting().tell(json(LightMethod::Patch, route, &body)?).await;
        };
        body["attachments"] = json!([{"id": 0, "filename": name}]);
        let upload = MultipartUpload::Attachments(vec![CreateAttachment::bytes(bytes, name)]);
        let multipart = Multipart { upload, fields: Vec::new(), payload_json: Some(body.to_string()) };
        self.waiting().tell(Request::new(route, LightMethod::Patch).multipart(Some(multipart))).await
    }

    /// Takes the first answer away.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn delete_answer(&self, way: &Way) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        self.waiting().tell(Request::new(route, LightMethod::Delete)).await
    }

    /// Says something more.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn say_more(&self, way: &Way, content: &str, private: bool) -> Result<(), RestError> {
        let route = Route::WebhookFollowupMessages { application_id: way.application, token: &way.token };
        let flags = if private { EPHEMERAL } else { 0 };
        let body = json!({"content": content, "flags": flags, "allowed_mentions": {"parse": []}});
        self.waiting().tell(json(LightMethod::Post, route, &body)?).await
    }

    /// Tells a server all commands there are; nobody waits for it.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn put_commands(
        &self,
        application: ApplicationId,
        guild: GuildId,
        commands: &impl Serialize,
    ) -> Result<(), RestError> {
        let route = Route::GuildCommands { application_id: application, guild_id: guild };
        self.waiting().tell(json(LightMethod::Put, route, commands)?).await
    }
}
