//! What every command needs: where things live, who asks, and whom it talks to.

use crate::config::Config;
use crate::exit::{Failure, Result};
use crate::ui::style::Style;
use ostler_core::id::{SessionId, is_name};
use ostler_core::record::{Want, Wish};
use ostler_store::home::Home;
use ostler_sys::clock;
use std::io::IsTerminal;

pub struct Context {
    pub home: Home,
    pub config: Config,
    /// For standard output.
    pub style: Style,
}

impl Context {
    pub fn new() -> Result<Context> {
        let home = Home::find(&variable)
            .ok_or_else(|| Failure::ours("neither OSTLER_HOME nor HOME is set; set one of them"))?;
        Ok(Context { home, config: Config::load(&variable), style: Style::detect(std::io::stdout().is_terminal()) })
    }
}

/// A variable of our environment, when it is text.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Who asks, in words: a person or another session, and the process.
pub fn who() -> String {
    let pid = std::process::id();
    let session = variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id));
    let name = match session {
        Some(id) => format!("session {id}"),
        None => {
            let uid = rustix::process::getuid().as_raw();
            let told = ["USER", "LOGNAME"].into_iter().filter_map(variable).find(|name| is_name(name));
            told.or_else(|| ostler_sys::users::name_of(uid).filter(|name| is_name(name)))
                .unwrap_or_else(|| format!("uid {uid}"))
        }
    };
    format!("{name} (pid {pid})")
}

/// A wish of ours.
pub fn wish(run: u32, want: Want) -> Wish {
    Wish { id: uuid::Uuid::new_v4().to_string(), at: clock::now(), by: who(), run, want }
}
