//! The loop: takes keys and messages of the daemon, lets the state handle them, does what follows, and draws.

use std::io;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::Options;
use crate::connection::{Connections, Incoming};
use crate::state::{Effect, Input, State};
use crate::terminal::{self, Screen, read_keys};
use crate::view;

/// The least time between two frames while a lot happens.
const FRAME_TIME: Duration = Duration::from_millis(40);
/// The limit on things that are handled before the next frame.
const MAX_HANDLED: usize = 512;

/// The limit on the time in which the daemon has to take what was sent before the screen is left.
const MAX_LEAVING: Duration = Duration::from_secs(2);

/// The time that the loop has to leave the screen after a signal. It has less to do than that unless the terminal reads nothing.
const MAX_STOPPING: Duration = Duration::from_secs(1);

/// The reason why the loop continues.
enum Wakeup {
    Key(io::Result<Event>),
    Incoming(Incoming),
    Tick,
    /// A signal that ends the process.
    Stop(i32),
    /// Nothing arrives any more.
    Closed,
}

/// Shows the screen until it is left.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let failed = |e: io::Error| Error::io("cannot use the terminal", &e);
    let mut stops = watch_stops().map_err(|e| Error::io("cannot handle signals", &e))?;
    let mut state = State::new(
        Timestamp::now(),
        TimeZone::system(),
        options.has_color,
        options.client.clone(),
        options.agent.as_deref(),
    )
    .with_key_prefix(uuid::Uuid::new_v4().to_string())
    .with_utf8(terminal::is_utf8());
    state.host = options.daemon.host().map(|host| host.name.clone());
    let mut screen = Screen::enter().map_err(failed)?;
    let mut keys = read_keys().map_err(failed)?;
    let (mut connections, mut incoming) = Connections::start(options.daemon.clone(), options.client.clone());
    let mut drawn_at = Instant::now() - FRAME_TIME;
    let mut has_changed = true;
    let mut leave_by: Option<Instant> = None;
    loop {
        if leave_by.is_some_and(|by| state.is_settled() || by <= Instant::now()) {
            drop(screen);
            return state
                .unfinished()
                .map_or(Ok(()), |(what, hint)| Err(Error::new(ErrorKind::Interrupted, what).hint(hint)));
        }
        if has_changed && drawn_at.elapsed() >= FRAME_TIME {
            state.now = Timestamp::now();
            screen.draw(|frame| view::draw(frame, &mut state)).map_err(failed)?;
            drawn_at = Instant::now();
            has_changed = false;
        }
        let wait = Duration::try_from(state.wait()).unwrap_or(FRAME_TIME);
        let due = if has_changed { drawn_at + FRAME_TIME } else { Instant::now() + wait };
        let due = leave_by.map_or(due, |by| due.min(by));
        let mut wakeup = wait_for(&mut keys, &mut incoming, &mut stops, due).await;
        // Whatever else has arrived is handled with it.
        for _ in 0..MAX_HANDLED {
            let inputs = match wakeup {
                Wakeup::Closed => return Ok(()),
                Wakeup::Stop(signal) => {
                    drop(screen);
                    // Ends the process as if it had not been handled.
                    return emulate_default_handler(signal).map_err(failed);
                }
                Wakeup::Key(Err(error)) => return Err(failed(error)),
                // Once it is left, keys belong to the shell.
                Wakeup::Key(Ok(event)) if leave_by.is_none() => to_inputs(event),
                Wakeup::Key(Ok(_)) => Vec::new(),
                Wakeup::Incoming(incoming) => vec![Input::Incoming(incoming)],
                Wakeup::Tick => vec![Input::Tick],
            };
            for input in inputs {
                has_changed = true;
                for effect in state.handle(input, Timestamp::now()) {
                    match effect {
                        Effect::Leave => leave_by = Some(Instant::now() + MAX_LEAVING),
                        Effect::Request(request) => connections.request(request),
                        Effect::Attach(target, number) => connections.attach(target, number),
                        Effect::Detach => connections.detach(),
                        Effect::Clear => screen.clear().map_err(failed)?,
                        Effect::Suspend => screen.suspend().map_err(failed)?,
                    }
                }
            }
            wakeup = match keys.try_recv() {
                Ok(key) => Wakeup::Key(key),
                Err(_) => match incoming.try_recv() {
                    Ok(message) => Wakeup::Incoming(message),
                    Err(_) => break,
                },
            };
        }
    }
}

/// Receives the signals that end the process, in a thread of its own: a terminal that reads nothing holds up the loop.
fn watch_stops() -> io::Result<mpsc::Receiver<i32>> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT])?;
    let (sender, receiver) = mpsc::channel(1);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            // A full channel has one already.
            let _ = sender.try_send(signal);
            std::thread::sleep(MAX_STOPPING);
            terminal::restore_modes();
            // It succeeds or the process ends by the next signal.
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(receiver)
}

async fn wait_for(
    keys: &mut mpsc::Receiver<io::Result<Event>>,
    incoming: &mut mpsc::Receiver<Incoming>,
    stops: &mut mpsc::Receiver<i32>,
    due: Instant,
) -> Wakeup {
    tokio::select! {
        biased;
        Some(signal) = stops.recv() => Wakeup::Stop(signal),
        key = keys.recv() => key.map_or(Wakeup::Closed, Wakeup::Key),
        message = incoming.recv() => message.map_or(Wakeup::Closed, Wakeup::Incoming),
        () = sleep_until(due) => Wakeup::Tick,
    }
}

/// Returns the meaning of a terminal's event; nothing for the release of a key and the like.
fn to_inputs(event: Event) -> Vec<Input> {
    match event {
        // Esc and a letter that arrive together look like the letter with Alt.
        Event::Key(key) if key.modifiers.contains(KeyModifiers::ALT) && matches!(key.code, KeyCode::Char(_)) => {
            let letter = KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..key };
            vec![Input::Key(KeyCode::Esc.into()), Input::Key(letter)]
        }
        Event::Key(key) if key.kind != KeyEventKind::Release => vec![Input::Key(key)],
        Event::Paste(text) => vec![Input::Paste(text)],
        Event::Resize(..) => vec![Input::Resized],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(code: KeyCode, modifiers: KeyModifiers) -> Vec<KeyEvent> {
        let inputs = to_inputs(Event::Key(KeyEvent::new(code, modifiers)));
        let key = |input| match input {
            Input::Key(key) => key,
            other => panic!("{other:?}"),
        };
        inputs.into_iter().map(key).collect()
    }

    #[test]
    fn a_letter_with_alt_is_esc_and_the_letter() {
        let esc = KeyEvent::from(KeyCode::Esc);
        assert_eq!(keys_of(KeyCode::Char('y'), KeyModifiers::ALT), [esc, KeyCode::Char('y').into()]);
        let control_q = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL);
        assert_eq!(keys_of(KeyCode::Char('q'), KeyModifiers::ALT | KeyModifiers::CONTROL), [esc, control_q]);
        let alt_enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(keys_of(KeyCode::Enter, KeyModifiers::ALT), [alt_enter]);
    }
}
