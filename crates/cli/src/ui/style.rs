//! Colour on a terminal; none on a pipe or where `NO_COLOR` is set.

use crate::context::variable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    pub fn detect(terminal: bool) -> Style {
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|term| term == "dumb");
        Style { colour: terminal && !unwanted && !dumb }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub fn magenta(self, text: &str) -> String {
        self.paint("35", text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}
