//! Runs pages in a real headless browser, if one is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ctl::run_command;
use crate::{Home, skip};

const BROWSER_NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Flags that keep the browser from making network requests of its own.
pub(crate) const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--dump-dom",
];

/// An installed browser.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
}

impl Browser {
    /// Finds an installed browser; skips the test and returns `None` if there is none.
    #[must_use]
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).flat_map(|dir| BROWSER_NAMES.map(|name| dir.join(name)));
        let found = places.into_iter().find(|path| path.is_file());
        if found.is_none() {
            skip("no chromium here");
        }
        Some(Self { program: found? })
    }

    /// Returns the path of its program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Opens a page and returns its DOM after loading.
    #[must_use]
    pub fn dump_dom(&self, home: &Home, page: &Path) -> String {
        let profile = tempfile::Builder::new().prefix("profile").tempdir_in(home.temp_dir()).expect("a profile");
        let mut command = Command::new(&self.program);
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display()));
        command.env("HOME", &home.user_home).arg(format!("file://{}", page.display()));
        run_command(command, b"").expect_success()
    }

    /// Opens `page` in a frame of this width and returns the JSON value of `script`, which can use the page's
    /// `document` and `window`. The script runs outside the frame, so the page's own policy does not restrict it.
    #[must_use]
    pub fn evaluate(&self, home: &Home, page: &str, width: u32, script: &str) -> Value {
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        let around = format!(
            "<!doctype html><meta charset=\"utf-8\"><iframe id=\"frame\" width=\"{width}\" height=\"844\" \
             style=\"border:0\" srcdoc=\"{page}\"></iframe><script>\n\
             const frame = document.getElementById('frame');\n\
             const look = (document, window) => {{ {script} }};\n\
             frame.onload = () => {{\n\
               const found = JSON.stringify(look(frame.contentDocument, frame.contentWindow));\n\
               document.title = Array.from(new TextEncoder().encode(found), b => b.toString(16).padStart(2, '0')).join('');\n\
             }};</script>"
        );
        let file = home.temp_dir().join("around.html");
        fs::write(&file, around).expect("the page around it");
        let dom = self.dump_dom(home, &file);
        let (_, title) = dom.split_once("<title>").unwrap_or_else(|| panic!("the script failed: {dom:.2000}"));
        let hex = title.split('<').next().unwrap_or_default().as_bytes();
        let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a digit") as u8;
        let found: Vec<u8> =
            hex.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit_| byte << 4 | digit(digit_))).collect();
        serde_json::from_slice(&found).expect("JSON")
    }
}
