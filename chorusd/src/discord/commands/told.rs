//! Bringing answers to Discord.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use super::reply::Reply;
use super::stopped;
use super::words::{cut, sorry};
use crate::discord::bridge::Bridge;
use crate::discord::rest::RestError;
use crate::discord::rest::interactions::{First, Way};
use crate::failure::Result;

/// How often an answer is sent that does not arrive, and how long it may take with all limits: then its token is over.
const TRIES: u32 = 5;
const OVER: Duration = Duration::from_secs(14 * 60);

/// Gives the first answer; whether it arrived. What has no answer is not done.
pub async fn first(bridge: &Bridge, way: &Way, answer: &First) -> bool {
    let given = bridge.rest.first_answer(way, answer).await;
    if let Err(error) = &given {
        tracing::warn!(%error, "an interaction cannot be answered; nothing is done for it");
    }
    given.is_ok()
}

/// Tells what came of a command. What failed is told to who asked only.
pub async fn finish(bridge: &Bridge, way: &Way, private: bool, done: Result<Reply>) {
    match done {
        Ok(reply) => edit(bridge, way, &reply).await,
        Err(failure) if private => edit(bridge, way, &Reply::new(sorry(bridge, &failure))).await,
        Err(failure) => {
            // While the promise stands, Discord would put what follows in its place, for all to see.
            tell(bridge, || bridge.rest.delete_answer(way)).await;
            say(bridge, way, &sorry(bridge, &failure), true).await;
        }
    }
}

/// Puts the answer in the place of the promise, or of the message whose button was pressed.
pub async fn edit(bridge: &Bridge, way: &Way, reply: &Reply) {
    let (body, file) = Reply { text: bridge.clean(&reply.text), ..reply.clone() }.body();
    tell(bridge, || bridge.rest.edit_answer(way, body.clone(), file.clone())).await;
    if let Some(aloud) = &reply.aloud {
        say(bridge, way, aloud, false).await;
    }
}

/// Says something more, `private` to who asked and nobody else.
pub async fn say(bridge: &Bridge, way: &Way, text: &str, private: bool) {
    let text = cut(&bridge.clean(text), 2000);
    tell(bridge, || bridge.rest.say_more(way, &text, private)).await;
}

/// Sends something, again where that may help, until the daemon stops.
async fn tell<F: Future<Output = Result<(), RestError>>>(bridge: &Bridge, send: impl Fn() -> F) {
    let sent = async {
        let mut wait = Duration::from_millis(500);
        for tries in 1.. {
            match send().await {
                Err(error) if error.may_pass() && tries < TRIES => {
                    sleep(wait).await;
                    wait *= 2;
                }
                Err(error) => return tracing::warn!(%error, "an answer did not arrive"),
                Ok(()) => return,
            }
        }
    };
    tokio::select! {
        () = sent => {}
        () = sleep(OVER) => tracing::warn!("an answer would come too late"),
        () = stopped(bridge) => tracing::warn!("an answer did not arrive before the stop"),
    }
}
