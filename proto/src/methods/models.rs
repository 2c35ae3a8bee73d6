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
    /// The model of agents that name none.
    pub default_model: Option<String>,
    /// Short names, each with its `provider/model`.
    pub aliases: BTreeMap<String, String>,
    pub providers: Vec<ModelProvider>,
}

/// A provider and its models.
#[wire(PartialEq)]
pub struct ModelProvider {
    pub name: String,
    /// `anthropic` or `openai`: the protocol it speaks.
    pub kind: String,
    pub base_url: String,
    /// Where the key comes from that is sent to it: a variable, a file or a credential, never the key itself. Left out: it is sent none.
    #[omit_empty]
    pub key_from: Option<String>,
    /// True where it was found on this machine and is not configured.
    pub local: bool,
    pub found: Discovery,
    /// Why it failed.
    #[omit_empty]
    pub problem: Option<String>,
    /// What to do about it.
    #[omit_empty]
    pub hint: Option<String>,
    /// When it was asked last.
    pub checked_at: Option<Timestamp>,
    /// What it listed when it was last asked with success.
    pub models: Vec<Model>,
}

/// How asking a provider went.
#[wire(Copy, PartialEq, Eq)]
pub enum Discovery {
    Ok,
    Failed,
    /// It was not asked since the start of the daemon.
    NotRun,
}

/// One model.
#[wire(PartialEq)]
pub struct Model {
    /// `provider/model`.
    pub name: String,
    #[omit_empty]
    pub display_name: Option<String>,
    /// Tokens that it takes, where that is known.
    pub context_length: Option<u64>,
    /// What it costs, where that is known.
    pub price: Option<Price>,
}

/// What a model costs, in US dollars per million tokens. Kept in the configuration and in available_models.json, too.
#[wire(Copy, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Left out: as the input.
    #[omit_empty]
    pub cache_read: Option<f64>,
    /// Left out: as the input.
    #[omit_empty]
    pub cache_write: Option<f64>,
}
