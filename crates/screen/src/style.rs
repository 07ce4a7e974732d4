//! How a character looks: colours and attributes, read from SGR sequences and written as SGR sequences.
//!
//! A style is small and copied into every cell, so that no table of styles has to be kept, bounded or cleaned up.

use crate::ascii::push;
use crate::params::Params;
use crate::styled_pieces::Look;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Colour {
    #[default]
    #[serde(rename = "d")]
    Default,
    #[serde(rename = "i")]
    Indexed(u8),
    #[serde(rename = "rgb")]
    Rgb(u8, u8, u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Underline {
    #[default]
    None,
    Single,
    Double,
    Curly,
    Dotted,
    Dashed,
}

/// The attributes that are simply on or off, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes(u8);

impl Attributes {
    const BOLD: u8 = 1;
    const DIM: u8 = 1 << 1;
    const ITALIC: u8 = 1 << 2;
    const BLINK: u8 = 1 << 3;
    const INVERSE: u8 = 1 << 4;
    const HIDDEN: u8 = 1 << 5;
    const CROSSED_OUT: u8 = 1 << 6;
    const OVERLINED: u8 = 1 << 7;

    /// Each attribute with the SGR parameter that turns it on.
    const ALL: [(u8, u8); 8] = [
        (Self::BOLD, 1),
        (Self::DIM, 2),
        (Self::ITALIC, 3),
        (Self::BLINK, 5),
        (Self::INVERSE, 7),
        (Self::HIDDEN, 8),
        (Self::CROSSED_OUT, 9),
        (Self::OVERLINED, 53),
    ];

    fn on(&mut self, bits: u8) {
        self.0 |= bits;
    }

    fn off(&mut self, bits: u8) {
        self.0 &= !bits;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Style {
    #[serde(rename = "fg", skip_serializing_if = "is_default")]
    foreground: Colour,
    #[serde(rename = "bg", skip_serializing_if = "is_default")]
    background: Colour,
    #[serde(rename = "uc", skip_serializing_if = "is_default")]
    underline_colour: Colour,
    #[serde(rename = "u", skip_serializing_if = "is_default")]
    underline: Underline,
    #[serde(rename = "a", skip_serializing_if = "is_default")]
    attributes: Attributes,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Style {
    /// The style of an erased cell: the background colour and nothing else.
    pub(crate) fn erased(self) -> Style {
        Style { background: self.background, ..Style::default() }
    }

    pub(crate) fn look(self) -> Look {
        let has = |bit| self.attributes.0 & bit != 0;
        Look {
            foreground: self.foreground.into(),
            background: self.background.into(),
            bold: has(Attributes::BOLD),
            dim: has(Attributes::DIM),
            italic: has(Attributes::ITALIC),
            underlined: self.underline != Underline::None,
            inverse: has(Attributes::INVERSE),
            hidden: has(Attributes::HIDDEN),
            crossed_out: has(Attributes::CROSSED_OUT),
        }
    }

    /// Applies one SGR sequence.
    pub(crate) fn apply(&mut self, params: &Params) {
        if params.is_empty() {
            *self = Style::default();
            return;
        }
        let mut groups = params.groups();
        while let Some(group) = groups.next() {
            let (&code, details) = match group.split_first() {
                Some(split) => split,
                None => continue,
            };
            match code {
                38 | 48 | 58 => {
                    let colour = if details.is_empty() {
                        colour_in_following_params(&mut groups)
                    } else {
                        colour_in_subparams(details)
                    };
                    if let Some(colour) = colour {
                        *self.colour_slot(code) = colour;
                    }
                }
                4 => self.underline = underline(details.first().copied()),
                _ => self.apply_simple(code),
            }
        }
    }

    fn colour_slot(&mut self, code: u16) -> &mut Colour {
        match code {
            38 => &mut self.foreground,
            48 => &mut self.background,
            _ => &mut self.underline_colour,
        }
    }

    fn apply_simple(&mut self, code: u16) {
        match code {
            0 => *self = Style::default(),
            1 => self.attributes.on(Attributes::BOLD),
            2 => self.attributes.on(Attributes::DIM),
            3 => self.attributes.on(Attributes::ITALIC),
            5 | 6 => self.attributes.on(Attributes::BLINK),
            7 => self.attributes.on(Attributes::INVERSE),
            8 => self.attributes.on(Attributes::HIDDEN),
            9 => self.attributes.on(Attributes::CROSSED_OUT),
            21 => self.underline = Underline::Double,
            22 => self.attributes.off(Attributes::BOLD | Attributes::DIM),
            23 => self.attributes.off(Attributes::ITALIC),
            24 => self.underline = Underline::None,
            25 => self.attributes.off(Attributes::BLINK),
            27 => self.attributes.off(Attributes::INVERSE),
            28 => self.attributes.off(Attributes::HIDDEN),
            29 => self.attributes.off(Attributes::CROSSED_OUT),
            30..=37 => self.foreground = Colour::Indexed((code - 30) as u8),
            39 => self.foreground = Colour::Default,
            40..=47 => self.background = Colour::Indexed((code - 40) as u8),
            49 => self.background = Colour::Default,
            53 => self.attributes.on(Attributes::OVERLINED),
            55 => self.attributes.off(Attributes::OVERLINED),
            59 => self.underline_colour = Colour::Default,
            90..=97 => self.foreground = Colour::Indexed((code - 90 + 8) as u8),
            100..=107 => self.background = Colour::Indexed((code - 100 + 8) as u8),
            _ => {}
        }
    }

    /// Writes the sequence that sets exactly this style, whatever was set before.
    pub(crate) fn write_sgr(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (bit, code) in Attributes::ALL {
            if self.attributes.0 & bit != 0 {
                push(out, format_args!(";{code}"));
            }
        }
        if self.underline != Underline::None {
            out.extend_from_slice(b";4");
        }
        write_colour(out, self.foreground, 30);
        write_colour(out, self.background, 40);
        out.push(b'm');
        // Colons only in sequences of their own: a terminal that does not know them drops the sequence and still has
        // the plain underline. With semicolons it would read the numbers as other attributes.
        match self.underline {
            Underline::None | Underline::Single => {}
            Underline::Double => out.extend_from_slice(b"\x1b[4:2m"),
            Underline::Curly => out.extend_from_slice(b"\x1b[4:3m"),
            Underline::Dotted => out.extend_from_slice(b"\x1b[4:4m"),
            Underline::Dashed => out.extend_from_slice(b"\x1b[4:5m"),
        }
        match self.underline_colour {
            Colour::Default => {}
            Colour::Indexed(index) => push(out, format_args!("\x1b[58:5:{index}m")),
            Colour::Rgb(red, green, blue) => push(out, format_args!("\x1b[58:2::{red}:{green}:{blue}m")),
        }
    }
}

fn write_colour(out: &mut Vec<u8>, colour: Colour, base: u8) {
    match colour {
        Colour::Default => {}
        Colour::Indexed(index @ 0..=7) => push(out, format_args!(";{}", base + index)),
        Colour::Indexed(index @ 8..=15) => push(out, format_args!(";{}", base + 60 + index - 8)),
        Colour::Indexed(index) => push(out, format_args!(";{};5;{index}", base + 8)),
        Colour::Rgb(red, green, blue) => push(out, format_args!(";{};2;{red};{green};{blue}", base + 8)),
    }
}

fn underline(kind: Option<u16>) -> Underline {
    match kind {
        Some(0) => Underline::None,
        Some(2) => Underline::Double,
        Some(3) => Underline::Curly,
        Some(4) => Underline::Dotted,
        Some(5) => Underline::Dashed,
        None | Some(_) => Underline::Single,
    }
}

/// `38;5;n` and `38;2;r;g;b`: the rest of the colour is in the following parameters.
fn colour_in_following_params<'a>(groups: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let mut next = || groups.next().and_then(|group| group.first().copied());
    match next()? {
        5 => indexed(next()?),
        2 => rgb(next()?, next()?, next()?),
        _ => None,
    }
}

/// `38:5:n`, `38:2:r:g:b` and `38:2:space:r:g:b`.
fn colour_in_subparams(details: &[u16]) -> Option<Colour> {
    match *details {
        [5, index, ..] => indexed(index),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => rgb(red, green, blue),
        _ => None,
    }
}

fn indexed(index: u16) -> Option<Colour> {
    u8::try_from(index).ok().map(Colour::Indexed)
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Colour> {
    Some(Colour::Rgb(u8::try_from(red).ok()?, u8::try_from(green).ok()?, u8::try_from(blue).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style_of(parameters: &str) -> Style {
        let mut style = Style::default();
        style.apply(&Params::of(parameters));
        style
    }

    fn written(style: Style) -> String {
        let mut out = Vec::new();
        style.write_sgr(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn semicolon_and_colon_colours_mean_the_same() {
        assert_eq!(style_of("38;5;200"), style_of("38:5:200"));
        assert_eq!(style_of("48;2;1;2;3"), style_of("48:2:1:2:3"));
        assert_eq!(style_of("48;2;1;2;3"), style_of("48:2::1:2:3"));
    }

    #[test]
    fn a_cut_off_colour_changes_nothing() {
        assert_eq!(style_of("38;2;1;2"), Style::default());
        assert_eq!(style_of("38"), Style::default());
        assert_eq!(style_of("38;5;300"), Style::default());
    }

    #[test]
    fn an_empty_sequence_resets() {
        let mut style = style_of("1;31");
        style.apply(&Params::of(""));
        assert_eq!(style, Style::default());
    }

    #[test]
    fn what_is_written_sets_the_same_style_again() {
        for parameters in ["1;3;5;7;8;9;53", "2;4;91;107", "4:3;58:2::9:8:7", "21;58:5:3", "38;5;77;48;2;4;5;6", "4:5"]
        {
            let style = style_of(parameters);
            let mut again = style_of("1;2;3;4;5;6;7;8;9;31;41");
            for sequence in written(style).split("\x1b[").skip(1) {
                again.apply(&Params::of(sequence.trim_end_matches('m')));
            }
            assert_eq!(again, style, "{parameters}");
        }
    }

    #[test]
    fn erasing_keeps_only_the_background() {
        assert_eq!(style_of("1;4;31;44").erased(), style_of("44"));
    }
}
