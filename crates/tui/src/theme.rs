//! How each kind of text looks. Only the sixteen colours of the terminal itself, none for ordinary text, and no
//! background, so that it can be read on light and dark backgrounds. Where there is no colour (`NO_COLOR`), weight and
//! signs show the same.

use ratatui_core::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub colour: bool,
}

impl Theme {
    fn fg(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    #[must_use]
    pub fn plain(self) -> Style {
        Style::new()
    }

    #[must_use]
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    #[must_use]
    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    #[must_use]
    pub fn italic(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    #[must_use]
    pub fn crossed_out(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    #[must_use]
    pub fn heading(self, level: u8) -> Style {
        if level <= 2 { self.bold().add_modifier(Modifier::UNDERLINED) } else { self.bold() }
    }

    #[must_use]
    pub fn link(self) -> Style {
        // No colour: the usual blue is hard to read on black.
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    #[must_use]
    pub fn code(self) -> Style {
        self.fg(Color::Cyan)
    }

    #[must_use]
    pub fn keyword(self) -> Style {
        self.fg(Color::Magenta)
    }

    #[must_use]
    pub fn string(self) -> Style {
        self.fg(Color::Green)
    }

    #[must_use]
    pub fn number(self) -> Style {
        self.fg(Color::Cyan)
    }

    #[must_use]
    pub fn good(self) -> Style {
        self.fg(Color::Green)
    }

    #[must_use]
    pub fn bad(self) -> Style {
        self.fg(Color::Red)
    }

    /// What runs, or asks for attention. Not yellow, which is invisible on white.
    #[must_use]
    pub fn mark(self) -> Style {
        self.fg(Color::Magenta)
    }

    /// An accent: the person's own messages and input, commands, frames.
    #[must_use]
    pub fn own(self) -> Style {
        self.fg(Color::Cyan)
    }

    /// What is selected, or a line of ours over the conversation.
    #[must_use]
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
