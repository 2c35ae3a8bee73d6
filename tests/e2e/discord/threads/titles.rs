//! The title of a thread's conversation is the name of the thread.

use chorus_tests::discord::ChannelHandle;
use chorus_tests::{DEADLINE, wait_until};

use super::ThreadFixture;

impl ThreadFixture {
    /// Waits until the conversation of a thread has this title, and returns its name.
    #[track_caller]
    fn titled(&self, thread: &ChannelHandle, title: &str) -> String {
        wait_until("the title", DEADLINE, || {
            let conversation = self.conversation(thread)?;
            (conversation.title.as_deref() == Some(title)).then_some(conversation.name)
        })
    }
}

#[test]
fn a_renamed_thread_gives_its_conversation_a_new_title() {
    let mut threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    threads.talk(&thread, "Our colour?", "Blue.");
    assert_eq!(threads.titled(&thread, "colours"), "discord-thread-colours");
    thread.rename("Colours of the wall!");
    assert_eq!(threads.titled(&thread, "Colours of the wall!"), "discord-thread-colours", "its name stays");
    threads.talk(&thread, "Sure?", "Yes.");
    // Another thread may have the name that this one had.
    let other = threads.thread("colours");
    threads.talk(&other, "Our colour?", "Red.");
    assert_eq!(threads.titled(&other, "colours"), "discord-thread-colours-2");
    // Also while nobody listens, whether the session is resumed or not.
    for (forgotten, name) in [(false, "Walls"), (true, "Floors")] {
        threads.fixture.stop();
        if forgotten {
            threads.fixture.discord.forget_sessions();
        }
        thread.rename(name);
        threads.fixture.start();
        assert_eq!(threads.titled(&thread, name), "discord-thread-colours");
    }
    assert_eq!(threads.texts(&thread), ["Our colour?", "Blue.", "Sure?", "Yes."]);
}
