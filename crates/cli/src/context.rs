//! What every command needs: the engine, and how standard output is written.

use crate::exit::{Failure, Result};
use crate::say::tell;
use crate::ui::style::Style;
use ostler_engine::{Engine, Environment};
use std::io::IsTerminal;

pub struct Context {
    pub engine: Engine,
    /// For standard output.
    pub style: Style,
}

impl Context {
    pub fn new() -> Result<Context> {
        let size = || {
            ostler_engine::process::window(std::io::stdout())
                .or_else(|| ostler_engine::process::window(std::io::stdin()))
        };
        let mut environment = Environment::of_process();
        environment.window = size();
        Ok(Context { engine: Engine::open(environment)?, style: Style::detect(std::io::stdout().is_terminal()) })
    }
}

impl Context {
    /// Says in one line what is wrong with config.toml.
    pub fn warn(&self) {
        if let [first, more @ ..] = self.engine.config.mistakes.as_slice() {
            let more = match more.len() {
                0 => String::new(),
                count => format!(" ({count} more: ostler doctor)"),
            };
            let words = Failure::usage(format!("{}{more}", first.in_a_line()));
            tell!("ostler: {words}");
        }
    }
}

/// A variable of our environment, when it is text. Only for what concerns how output looks.
pub fn variable(name: &str) -> Option<String> {
    ostler_engine::process::variable(name)
}
