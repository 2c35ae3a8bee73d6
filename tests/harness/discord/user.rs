//! The handle of a user, who invokes commands and presses buttons.

use std::sync::Arc;

use serde_json::{Value, json};

use super::channel::ChannelHandle;
use super::interaction::Interaction;
use super::permissions as may;
use super::state::Shared;
use super::{invocations, visible_message};
use crate::wait::{DEADLINE, wait_until};

/// A person or another application. Clones are the same user.
#[derive(Debug, Clone)]
pub struct UserHandle {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl UserHandle {
    pub(super) fn application(shared: &Arc<Shared>) -> Self {
        let id = shared.state().application_id;
        Self { shared: shared.clone(), id }
    }

    /// Their name.
    #[must_use]
    pub fn name(&self) -> String {
        self.shared.state().users.get(&self.id).map(|user| user.name.clone()).unwrap_or_default()
    }

    /// Grants permissions in every guild, in addition to those of the user's roles.
    pub fn grant_permissions(&self, permissions: u64) {
        self.shared.change(|state| {
            let guilds: Vec<u64> = state.guilds.iter().map(|guild| guild.id).collect();
            guilds
                .into_iter()
                .for_each(|guild| state.grant_permissions(guild, self.id, permissions & !may::EVERYONE_DEFAULT));
        });
    }

    /// Sets the nickname in every guild.
    pub fn set_nick(&self, name: &str) {
        self.shared.change(|state| {
            for member in state.guilds.iter_mut().filter_map(|guild| guild.member_mut(self.id)) {
                member.nick = Some(name.to_owned());
            }
        });
    }

    /// Invokes a command such as `context save` with these options, as soon as it is registered.
    ///
    /// # Panics
    /// If there is no such command or option, or a value does not fit: Discord would not let a person send it.
    #[track_caller]
    pub fn run_slash_command(&self, room: &ChannelHandle, command: &str, options: &[(&str, &str)]) -> Interaction {
        let definition = self.wait_for_command(room, command);
        let data = invocations::command_data(&self.shared.state(), &definition, command, options, None);
        self.interact(room, 2, None, data)
    }

    /// Types the last of `options`. Returns the names and values that are suggested.
    ///
    /// # Panics
    /// As [`UserHandle::run_slash_command`], and if nothing is suggested in time.
    #[track_caller]
    pub fn autocomplete(&self, room: &ChannelHandle, command: &str, options: &[(&str, &str)]) -> Vec<(String, Value)> {
        let definition = self.wait_for_command(room, command);
        let focused = options.last().map(|(name, _)| *name);
        let data = invocations::command_data(&self.shared.state(), &definition, command, options, focused);
        self.interact(room, 4, None, data).choices()
    }

    /// Presses a button of a message in its current state, by label or custom id.
    ///
    /// # Panics
    /// If there is no such button, or it is disabled.
    #[track_caller]
    pub fn press_button(&self, message: impl Into<u64>, button: &str) -> Interaction {
        let id = message.into();
        let (room, custom_id) = {
            let state = self.shared.state();
            let message = state.messages.get(&id).expect("the message");
            let seen = message.ephemeral_for.is_none_or(|only| only == self.id);
            assert!(seen, "{} does not see the message", self.id);
            let shown = visible_message::VisibleMessage::from_message(&state, message);
            let found = shown.button(button).unwrap_or_else(|| panic!("no button {button:?} at {shown:?}"));
            assert!(!found.disabled, "the button {button:?} is disabled");
            (ChannelHandle { shared: self.shared.clone(), id: message.channel }, found.custom_id.clone())
        };
        self.press_stale_button(&room, id, &custom_id)
    }

    /// Presses a button that may be gone by now, as when a message changes just before the press.
    pub fn press_stale_button(&self, room: &ChannelHandle, message: impl Into<u64>, custom_id: &str) -> Interaction {
        let data = json!({"custom_id": custom_id, "component_type": 2});
        self.interact(room, 3, Some(message.into()), data)
    }

    /// Waits for the form that a press of a button shows, and sends it with this text.
    ///
    /// # Panics
    /// If there is none in time.
    #[track_caller]
    pub fn submit_form(&self, pressed: &Interaction, text: &str) -> Interaction {
        let (room, message, form) = wait_until("a form", DEADLINE, || {
            let state = self.shared.state();
            let record = &state.interactions[&pressed.id];
            Some((record.channel, record.message, record.form.clone()?))
        });
        let input = &form["components"][0]["components"][0];
        let input = json!({"type": 4, "custom_id": input["custom_id"], "value": text});
        let data = json!({"custom_id": form["custom_id"], "components": [{"type": 1, "components": [input]}]});
        self.interact(&ChannelHandle { shared: self.shared.clone(), id: room }, 5, message, data)
    }

    /// Waits until the command is registered that the words begin with. Returns its definition.
    #[track_caller]
    fn wait_for_command(&self, room: &ChannelHandle, command: &str) -> Value {
        let name = command.split(' ').next().unwrap_or_default();
        wait_until(&format!("/{name} to be registered"), DEADLINE, || {
            let state = self.shared.state();
            let guild = state.channels.get(&room.id).map_or(0, |channel| channel.guild);
            // A command without contexts is available everywhere: https://docs.discord.com/developers/interactions/application-commands#interaction-contexts.
            let context = if guild == 0 { 1 } else { 0 };
            let fits = |command: &Value| {
                let contexts = command["contexts"].as_array();
                contexts.is_none_or(|contexts| contexts.iter().any(|one| *one == context))
            };
            let lists = state.commands.iter().filter(|(of, _)| **of == guild || **of == 0);
            let mut listed = lists.flat_map(|(_, list)| list).filter(|command| command["name"] == name);
            // A client that is out of date sends one that is not available there any more.
            let stale = || state.commands.values().flatten().find(|command| guild == 0 && command["name"] == name);
            listed.find(|command| fits(command)).or_else(stale).cloned()
        })
    }

    fn interact(&self, room: &ChannelHandle, kind: u64, message: Option<u64>, data: Value) -> Interaction {
        let id = self
            .shared
            .change(|state| invocations::dispatch_interaction(state, (room.id, self.id), kind, message, data));
        Interaction { shared: self.shared.clone(), id }
    }
}
