//! `models.*`: providers and their models.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{method, wire};

method!(
    /// Lists the models that the last discovery found. Sends no request to a provider.
    List = "models.list", ModelsParams => ModelsResult
);
method!(
    /// Asks every provider for its models, which tests its key. Makes no call that costs money.
    Validate = "models.validate", ModelsParams => ModelsResult
);

#[wire(params)]
pub struct ModelsParams {}

#[wire(PartialEq)]
pub struct ModelsResult {
    /// The model of agents without their own.
    pub default_model: Option<String>,
    /// Short names, each with its `provider/model`.
    pub aliases: BTreeMap<String, String>,
    pub providers: Vec<ModelProvider>,
}

/// A provider and its models.
#[wire(PartialEq)]
pub struct ModelProvider {
    pub name: String,
    /// `anthropic` or `openai`: the protocol that it uses.
    pub kind: String,
    pub base_url: String,
    /// Source of the key that is sent to it: a variable, a file or a credential, never the key itself. Missing if no
    /// key is sent.
    #[omit_empty]
    pub key_from: Option<String>,
    /// True if it was found on this machine and is not configured.
    pub local: bool,
    pub found: Discovery,
    /// The reason of the failure.
    #[omit_empty]
    pub problem: Option<String>,
    /// Hint to fix it.
    #[omit_empty]
    pub hint: Option<String>,
    /// Time when it was last asked.
    pub checked_at: Option<Timestamp>,
    /// The models of its last successful answer.
    pub models: Vec<Model>,
}

/// Result of asking a provider for its models.
#[wire(Copy, PartialEq, Eq)]
pub enum Discovery {
    Ok,
    Failed,
    /// It was not asked since the daemon started.
    NotRun,
}

/// One model.
#[wire(PartialEq)]
pub struct Model {
    /// `provider/model`.
    pub name: String,
    #[omit_empty]
    pub display_name: Option<String>,
    /// Context length, if known.
    pub context_length: Option<u64>,
    /// Its price, if known.
    pub price: Option<Price>,
}

/// Price of a model, in US dollars per million tokens. Also used in the configuration and in available_models.json.
#[wire(Copy, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Missing if the same as the input price.
    #[omit_empty]
    pub cache_read: Option<f64>,
    /// Missing if the same as the input price.
    #[omit_empty]
    pub cache_write: Option<f64>,
}
