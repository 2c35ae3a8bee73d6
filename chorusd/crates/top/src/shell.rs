//! The loop: takes keys and messages of the daemon, lets the state handle them, does what follows, and draws.

use std::io;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use crossterm::event::{Event, KeyEventKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use signal_hook::low_level::emulate_default_handler;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::Options;
use crate::connection::{Connections, Incoming};
use crate::state::{Effect, Input, State};
use crate::terminal::{Screen, read_keys};
use crate::view;

/// The least time between two frames while a lot happens.
const FRAME_TIME: Duration = Duration::from_millis(40);
/// The limit on things that are handled before the next frame.
const MAX_HANDLED: usize = 512;

/// The reason why the loop continues.
enum Woken {
    Key(io::Result<Event>),
    Incoming(Incoming),
    Tick,
    /// A signal that ends the process.
    Stop(SignalKind),
    /// Nothing arrives any more.
    Closed,
}

/// Shows the screen until it is left.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let failed = |e: io::Error| Error::io("cannot use the terminal", &e);
    let mut stops = Stops::new().map_err(|e| Error::io("cannot handle signals", &e))?;
    let mut state = State::new(
        Timestamp::now(),
        TimeZone::system(),
        options.has_color,
        options.client.clone(),
        options.agent.as_deref(),
    );
    state.host = options.daemon.host().map(|host| host.name.clone());
    let mut screen = Screen::enter().map_err(failed)?;
    let mut keys = read_keys().map_err(failed)?;
    let (mut connections, mut incoming) = Connections::start(options.daemon.clone(), options.client.clone());
    let mut drawn_at = Instant::now() - FRAME_TIME;
    let mut has_changed = true;
    loop {
        if has_changed && drawn_at.elapsed() >= FRAME_TIME {
            state.now = Timestamp::now();
            screen.draw(|frame| view::draw(frame, &mut state)).map_err(failed)?;
            drawn_at = Instant::now();
            has_changed = false;
        }
        let wait = Duration::try_from(state.wait()).unwrap_or(FRAME_TIME);
        let due = if has_changed { drawn_at + FRAME_TIME } else { Instant::now() + wait };
        let mut woken = wait_for(&mut keys, &mut incoming, &mut stops, due).await;
        // Whatever else has arrived is handled with it.
        for _ in 0..MAX_HANDLED {
            let input = match woken {
                Woken::Closed => return Ok(()),
                Woken::Stop(kind) => {
                    drop(screen);
                    // Ends the process as if it had not been handled.
                    return emulate_default_handler(kind.as_raw_value()).map_err(failed);
                }
                Woken::Key(Err(error)) => return Err(failed(error)),
                Woken::Key(Ok(event)) => to_input(event),
                Woken::Incoming(incoming) => Some(Input::Incoming(incoming)),
                Woken::Tick => Some(Input::Tick),
            };
            if let Some(input) = input {
                has_changed = true;
                for effect in state.handle(input, Timestamp::now()) {
                    match effect {
                        Effect::Leave => return Ok(()),
                        Effect::Request(request) => connections.request(request),
                        Effect::Attach(target, number) => connections.attach(target, number),
                        Effect::Detach => connections.detach(),
                        Effect::Clear => screen.clear().map_err(failed)?,
                        Effect::Suspend => screen.suspend().map_err(failed)?,
                    }
                }
            }
            woken = match keys.try_recv() {
                Ok(key) => Woken::Key(key),
                Err(_) => match incoming.try_recv() {
                    Ok(message) => Woken::Incoming(message),
                    Err(_) => break,
                },
            };
        }
    }
}

/// The signals that end the process.
struct Stops([(SignalKind, Signal); 3]);

impl Stops {
    fn new() -> io::Result<Self> {
        let listen = |kind| Ok::<_, io::Error>((kind, signal(kind)?));
        Ok(Self([listen(SignalKind::terminate())?, listen(SignalKind::hangup())?, listen(SignalKind::interrupt())?]))
    }
}

async fn wait_for(
    keys: &mut mpsc::Receiver<io::Result<Event>>,
    incoming: &mut mpsc::Receiver<Incoming>,
    Stops([terminate, hangup, interrupt]): &mut Stops,
    due: Instant,
) -> Woken {
    tokio::select! {
        biased;
        _ = terminate.1.recv() => Woken::Stop(terminate.0),
        _ = hangup.1.recv() => Woken::Stop(hangup.0),
        _ = interrupt.1.recv() => Woken::Stop(interrupt.0),
        key = keys.recv() => key.map_or(Woken::Closed, Woken::Key),
        message = incoming.recv() => message.map_or(Woken::Closed, Woken::Incoming),
        () = sleep_until(due) => Woken::Tick,
    }
}

/// Returns what a terminal's event means; `None` for the release of a key and the like.
fn to_input(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) => (key.kind != KeyEventKind::Release).then_some(Input::Key(key)),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}
