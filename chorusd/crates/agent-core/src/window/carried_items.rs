//! The decisions and open tasks of a window. They are carried on until they are done or removed, so there may be more
//! of them than a window has room for. Those without room are condensed: first the newest are shortened, the oldest
//! last; then the ones in between are left out. A line in their place says how many. The working set itself keeps all.

use chorus_proto::{Item, ItemSource};

use super::working_set_block::items_bytes;
use crate::window::shorten::floor_char_boundary;

/// Largest number of decisions, and of open tasks, that a working set keeps besides those that people added.
pub const MAX_CARRIED_ITEMS: usize = 500;

/// Lengths in bytes to which texts are shortened, step by step.
const STEPS: [usize; 4] = [160, 112, 80, 56];

/// The part of the room for items that are left out in between that goes to the newest of them: one quarter.
const NEWEST_DIVISOR: usize = 4;

/// How many items a window shows shortened, and how many it leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CondensedItems {
    pub shortened: u64,
    pub left_out: u64,
}

impl CondensedItems {
    /// Returns how many items are not shown in full.
    #[must_use]
    pub fn count(self) -> u64 {
        self.shortened + self.left_out
    }

    pub(super) fn add(&mut self, other: Self) {
        self.shortened += other.shortened;
        self.left_out += other.left_out;
    }
}

/// Condenses items until they have at most `most` bytes together. `kind` names them in the line about those that are
/// left out.
pub(super) fn condense(items: &mut Vec<Item>, most: usize, kind: &str) -> CondensedItems {
    let mut bytes = items_bytes(items);
    if bytes <= most {
        return CondensedItems::default();
    }
    let before: Vec<usize> = items.iter().map(|item| item.text.len()).collect();
    'steps: for step in STEPS {
        for item in items.iter_mut().rev().filter(|item| item.source != ItemSource::Hand) {
            bytes -= shorten(&mut item.text, step);
            if bytes <= most {
                break 'steps;
            }
        }
    }
    let left_out = if bytes > most { leave_out(items, most, kind) } else { 0 };
    let full = |(item, before): &(&Item, &usize)| item.text.len() < **before;
    let shortened = if left_out == 0 { items.iter().zip(&before).filter(full).count() } else { items.len() - 1 };
    CondensedItems { shortened: shortened as u64, left_out: left_out as u64 }
}

/// Shortens a text to at most `most` bytes, at the end of a word if there is one. Returns how many bytes that saves.
fn shorten(text: &mut String, most: usize) -> usize {
    let before = text.len();
    if before <= most {
        return 0;
    }
    let end = floor_char_boundary(text, most.saturating_sub('…'.len_utf8()));
    let word = text[..end].rfind(char::is_whitespace).filter(|at| *at * 2 > end);
    text.truncate(word.unwrap_or(end));
    let kept = text.trim_end_matches([' ', ',', ';', ':', '-', '(']).len();
    text.truncate(kept);
    text.push('…');
    before.saturating_sub(text.len())
}

/// Leaves items out so that the others have at most `most` bytes: what people added stays first, then the oldest, and a
/// quarter of the room is for the newest. A line says in their place how many there were. Returns that number.
fn leave_out(items: &mut Vec<Item>, most: usize, kind: &str) -> usize {
    let line = |count: usize| format!("({count} more {kind} left out because of the size limit; the record has them)");
    let mut left = most.saturating_sub(line(items.len()).len() + 3);
    let mut kept = vec![false; items.len()];
    let mut take = |at: usize, left: &mut usize| {
        let length = items[at].text.len() + 3;
        kept[at] |= length <= *left;
        *left -= if length <= *left { length } else { 0 };
        length <= *left || kept[at]
    };
    let (hand, other): (Vec<usize>, Vec<usize>) =
        (0..items.len()).partition(|at| items[*at].source == ItemSource::Hand);
    for at in hand {
        take(at, &mut left);
    }
    let mut newest = left / NEWEST_DIVISOR;
    left -= newest;
    let first = other.iter().take_while(|at| take(**at, &mut left)).count();
    newest += left;
    for at in other[first..].iter().rev() {
        if !take(*at, &mut newest) {
            break;
        }
    }
    let gone = kept.iter().filter(|kept| !**kept).count();
    let Some(at) = kept.iter().position(|kept| !kept) else { return 0 };
    let note = Item { id: String::new(), text: line(gone), source: ItemSource::Rule, message_id: None };
    let mut number = 0;
    items.retain(|_| {
        number += 1;
        kept[number - 1]
    });
    items.insert(at, note);
    gone
}

/// Removes items so that at most [`MAX_CARRIED_ITEMS`] remain besides those that people added: the oldest three
/// quarters and the newest quarter stay. Returns how many were removed; the messages that they came from are saved.
#[must_use]
pub fn cap(items: &mut Vec<Item>) -> u64 {
    let count = items.iter().filter(|item| item.source != ItemSource::Hand).count();
    let over = count.saturating_sub(MAX_CARRIED_ITEMS);
    let first = MAX_CARRIED_ITEMS - MAX_CARRIED_ITEMS / NEWEST_DIVISOR;
    let mut number = 0;
    items.retain(|item| {
        number += usize::from(item.source != ItemSource::Hand);
        item.source == ItemSource::Hand || number <= first || number > first + over
    });
    over as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: String, source: ItemSource) -> Item {
        Item { id: text.clone(), text, source, message_id: None }
    }

    fn items(count: usize, chars: usize) -> Vec<Item> {
        (0..count).map(|n| item(format!("item {n:04} {}", "word ".repeat(chars / 5)), ItemSource::Rule)).collect()
    }

    #[test]
    fn the_oldest_are_shortened_last() {
        let before = items(20, 200);
        let mut shown = before.clone();
        let most = items_bytes(&before) - 100;
        assert_eq!(condense(&mut shown, most, "decisions"), CondensedItems { shortened: 2, left_out: 0 });
        assert!(shown[..18] == before[..18] && items_bytes(&shown) <= most);
        assert!(shown[18..].iter().all(|item| item.text.ends_with("word…") && item.text.len() <= 160), "{shown:?}");
        let mut whole = before.clone();
        assert_eq!((condense(&mut whole, items_bytes(&before), "x").count(), whole), (0, before));
    }

    #[test]
    fn what_has_no_room_is_counted_in_its_place_and_the_ends_stay() {
        let mut shown = items(400, 40);
        let hand = item("by hand ".repeat(40), ItemSource::Hand);
        shown.insert(200, hand.clone());
        let done = condense(&mut shown, 4000, "decisions");
        assert!(items_bytes(&shown) <= 4000 && items_bytes(&shown) > 3800, "{}", items_bytes(&shown));
        assert_eq!(done.shortened + done.left_out, 401);
        let note = shown.iter().position(|item| item.id.is_empty()).unwrap();
        let text =
            format!("({} more decisions left out because of the size limit; the record has them)", done.left_out);
        assert_eq!(shown[note].text, text);
        assert!(shown[0].text.starts_with("item 0000") && shown[note - 1].text.starts_with("item 00"));
        assert!(shown.contains(&hand) && shown.last().unwrap().text.starts_with("item 0399"));
        let mut none = items(3, 400);
        assert_eq!(condense(&mut none, 0, "decisions").left_out, 3);
    }

    #[test]
    fn a_working_set_keeps_the_first_and_the_last_and_whatever_people_added() {
        let mut all = items(MAX_CARRIED_ITEMS + 40, 10);
        all.insert(400, item("hand".into(), ItemSource::Hand));
        assert_eq!(cap(&mut all), 40);
        assert_eq!(all.len(), MAX_CARRIED_ITEMS + 1);
        assert!(all[374].text.starts_with("item 0374") && all[375].text == "hand");
        assert!(all[376].text.starts_with("item 0415"), "{}", all[376].text);
        assert_eq!(cap(&mut all), 0);
    }
}
