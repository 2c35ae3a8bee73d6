//! What agents know in every conversation: added, listed, searched and removed by hand, kept by `remember`, and shown to the model.

mod commands;
mod durability;
mod prompt;
mod trash;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::memory::{Add, AddParams, AddResult, List, ListParams, ListResult};
use chorus_proto::{CallError, Client};

/// Short words for what these tests do.
trait Memory {
    fn remember(&mut self, agent: &str, text: &str) -> AddResult;
    fn try_remember(&mut self, params: AddParams) -> Result<AddResult, CallError>;
    fn remembered(&mut self, agent: &str) -> ListResult;
    fn known(&mut self, agent: &str) -> Vec<String>;
    fn works_on(&mut self, agent: &str, project: &str);
}

impl Memory for Client {
    fn remember(&mut self, agent: &str, text: &str) -> AddResult {
        self.try_remember(AddParams { agent: Some(agent.into()), text: text.into(), ..Default::default() })
            .expect("memory.add")
    }

    fn try_remember(&mut self, params: AddParams) -> Result<AddResult, CallError> {
        self.call::<Add>(&params)
    }

    fn remembered(&mut self, agent: &str) -> ListResult {
        self.call::<List>(&ListParams { agent: Some(agent.into()), ..Default::default() }).expect("memory.list")
    }

    fn known(&mut self, agent: &str) -> Vec<String> {
        self.remembered(agent).entries.into_iter().map(|entry| entry.text).collect()
    }

    fn works_on(&mut self, agent: &str, project: &str) {
        let (key, value) = (Some("project".into()), Some(project.into()));
        self.call::<Config>(&ConfigParams { name: agent.into(), key, value }).expect("agent.config");
    }
}

fn shared(agent: &str, text: &str) -> AddParams {
    AddParams { agent: Some(agent.into()), text: text.into(), project: true, ..Default::default() }
}
