//! Forms: what a person types after a button asked for a text.

use std::sync::Arc;

use chorus_base::requester::Answerer;
use serenity::model::application::{ActionRowComponent, ModalInteraction, ModalInteractionData};

use super::interaction_origin::InteractionOrigin;
use super::interaction_sender::{send_initial_response, send_outcome};
use super::response::Response;
use super::{BUSY_TEXT, answer_unserved, run_to_completion};
use crate::app::DiscordApp;
use crate::approvals;
use crate::rest::interactions::{InitialResponse, InteractionRef};

/// Handles a form that was sent: the reason of a denial.
pub(super) async fn handle_form(app: Arc<DiscordApp>, form: ModalInteraction) {
    let ModalInteraction { id, application_id, data, guild_id, channel_id, member, user, token, .. } = form;
    let way = InteractionRef { id, application: application_id, token };
    let origin = match InteractionOrigin::new(&app, guild_id, channel_id, member, user) {
        Ok(origin) => origin,
        Err(unserved) => return answer_unserved(&app, &way, unserved).await,
    };
    let Ok(_room) = app.commands.permits.clone().try_acquire_owned() else {
        send_initial_response(&app.rest, &way, &InitialResponse::PrivateMessage(BUSY_TEXT.into())).await;
        return;
    };
    if !send_initial_response(&app.rest, &way, &InitialResponse::Defer { private: true }).await {
        return;
    }
    let by = match origin.caller(&app).await {
        Ok(by) => by,
        Err(failure) => return send_outcome(&app, &way, true, Err(failure)).await,
    };
    let reason = typed_text(&data);
    let done = run_to_completion(&app.stop, async move {
        let by_whom = Answerer { requester: by.member.requester.clone(), is_approver: by.member.rights.approver };
        let done = approvals::deny_with_reason(by.ops(), &data.custom_id, reason, &by_whom).await;
        done.map_err(|failure| by.verify_denial(failure)).map(Response::new)
    });
    send_outcome(&app, &way, true, done.await).await;
}

/// Returns the text of the form.
fn typed_text(data: &ModalInteractionData) -> Option<String> {
    let mut inputs = data.components.iter().flat_map(|row| &row.components);
    inputs.find_map(|input| match input {
        ActionRowComponent::InputText(input) => input.value.clone(),
        _ => None,
    })
}
