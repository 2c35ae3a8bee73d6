//! Pictures for web pages: bars by day, bars by anything else, and a tree, each as an SVG element. `page` makes a file of them
//! that needs no other.
//!
//! The pictures have no script, no font and no color of their own: classes, which [`STYLE`] defines for light and dark. So a page
//! may forbid inline styles, and serve [`STYLE`] as a file beside its own. Each bar and row has a tooltip, which screen readers read, too.
//!
//! Invariant: pure functions of their arguments; every text is escaped, whatever it contains.
//!
//! Absent on purpose: requests, files, the clock, and what the numbers mean.

#![warn(unreachable_pub)]

mod bars;
mod days;
mod markup;
mod page;
mod tree;

pub use bars::bars;
pub use days::days;
pub use markup::escape;
pub use page::{page, section, table};
pub use tree::{Mark, TreeRow, tree};

/// The style of the pictures. It changes nothing else on a page.
pub const STYLE: &str = include_str!("picture.css");

/// A bar of a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bar {
    /// Name of the bar, such as a day or a model.
    pub label: String,
    /// The length. What is not a positive number is drawn as nothing.
    pub value: f64,
    /// The value with its unit.
    pub text: String,
    /// More about it, for the tooltip; may be empty.
    pub details: String,
    /// Address of a page about it.
    pub link: Option<String>,
}

impl Bar {
    fn length(&self) -> f64 {
        if self.value.is_finite() { self.value.max(0.0) } else { 0.0 }
    }

    fn tooltip(&self) -> String {
        let parts = [&*self.label, &*self.text, &*self.details];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}
