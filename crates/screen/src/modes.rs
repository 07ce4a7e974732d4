//! What a program set in the terminal besides drawing: how keys, mouse, focus and paste are reported, how the cursor
//! looks. None of it changes the cells; all of it has to be restored when a person attaches.

use crate::ascii::push;
use serde::{Deserialize, Serialize};

/// Private modes that are on or off and matter only to the real terminal, with their usual setting.
const SWITCHES: [(u16, bool); 7] = [
    (1, false),    // cursor keys send application sequences
    (5, false),    // whole screen in reverse video
    (25, true),    // cursor visible
    (1004, false), // report focus
    (2004, false), // bracket pastes
    (2031, false), // report changes of the colour scheme
    (2048, false), // report changes of the size
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MouseTracking {
    #[default]
    Off,
    Press,
    PressAndRelease,
    Drag,
    Motion,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MouseEncoding {
    #[default]
    Bytes,
    Utf8,
    Sgr,
    Urxvt,
    SgrPixels,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Modes {
    /// Bit n: switch n is not as usual.
    unusual: u16,
    mouse: MouseTracking,
    mouse_encoding: MouseEncoding,
    /// Keys of the number pad send application sequences.
    pub(crate) keypad: bool,
    /// DECSCUSR, 0 to 6.
    cursor_style: u8,
    /// modifyOtherKeys, 0 to 3.
    other_keys: u8,
}

impl Modes {
    /// `CSI ? mode h` and `CSI ? mode l`. Modes not listed here are handled by the emulator or ignored.
    pub(crate) fn set_private(&mut self, mode: u16, on: bool) {
        match mode {
            9 => self.mouse = tracking(on, MouseTracking::Press),
            1000 => self.mouse = tracking(on, MouseTracking::PressAndRelease),
            1002 => self.mouse = tracking(on, MouseTracking::Drag),
            1003 => self.mouse = tracking(on, MouseTracking::Motion),
            1005 => self.mouse_encoding = encoding(on, MouseEncoding::Utf8),
            1006 => self.mouse_encoding = encoding(on, MouseEncoding::Sgr),
            1015 => self.mouse_encoding = encoding(on, MouseEncoding::Urxvt),
            1016 => self.mouse_encoding = encoding(on, MouseEncoding::SgrPixels),
            66 => self.keypad = on,
            _ => {
                if let Some(index) = SWITCHES.iter().position(|&(number, _)| number == mode) {
                    let unusual = u16::from(on != SWITCHES[index].1);
                    self.unusual = self.unusual & !(1 << index) | unusual << index;
                }
            }
        }
    }

    pub(crate) fn set_cursor_style(&mut self, style: u16) {
        if let Ok(style @ 0..=6) = u8::try_from(style) {
            self.cursor_style = style;
        }
    }

    pub(crate) fn set_other_keys(&mut self, level: u16) {
        if let Ok(level @ 0..=3) = u8::try_from(level) {
            self.other_keys = level;
        }
    }

    /// Writes what differs from a terminal that has just been reset.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (index, &(number, usual)) in SWITCHES.iter().enumerate() {
            if self.unusual >> index & 1 == 1 {
                push(out, format_args!("\x1b[?{number}{}", if usual { 'l' } else { 'h' }));
            }
        }
        let tracking = match self.mouse {
            MouseTracking::Off => None,
            MouseTracking::Press => Some(9),
            MouseTracking::PressAndRelease => Some(1000),
            MouseTracking::Drag => Some(1002),
            MouseTracking::Motion => Some(1003),
        };
        let encoding = match self.mouse_encoding {
            MouseEncoding::Bytes => None,
            MouseEncoding::Utf8 => Some(1005),
            MouseEncoding::Sgr => Some(1006),
            MouseEncoding::Urxvt => Some(1015),
            MouseEncoding::SgrPixels => Some(1016),
        };
        for mode in tracking.into_iter().chain(encoding) {
            push(out, format_args!("\x1b[?{mode}h"));
        }
        if self.keypad {
            out.extend_from_slice(b"\x1b=");
        }
        if self.cursor_style != 0 {
            push(out, format_args!("\x1b[{} q", self.cursor_style));
        }
        if self.other_keys != 0 {
            push(out, format_args!("\x1b[>4;{}m", self.other_keys));
        }
    }
}

/// Turning off any kind of tracking turns the mouse off.
fn tracking(on: bool, way: MouseTracking) -> MouseTracking {
    if on { way } else { MouseTracking::Off }
}

fn encoding(on: bool, encoding: MouseEncoding) -> MouseEncoding {
    if on { encoding } else { MouseEncoding::Bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(modes: &Modes) -> String {
        let mut out = Vec::new();
        modes.write(&mut out);
        String::from_utf8_lossy(&out).replace('\x1b', "^")
    }

    #[test]
    fn only_what_is_unusual_is_written() {
        let mut modes = Modes::default();
        assert_eq!(written(&modes), "");
        for mode in [1, 25, 1000, 1006, 2004] {
            modes.set_private(mode, true);
        }
        assert_eq!(written(&modes), "^[?1h^[?2004h^[?1000h^[?1006h");
        modes.set_private(25, false);
        modes.set_private(1003, true);
        modes.set_private(2004, false);
        assert_eq!(written(&modes), "^[?1h^[?25l^[?1003h^[?1006h");
        modes.set_private(1000, false);
        assert_eq!(written(&modes), "^[?1h^[?25l^[?1006h");
    }

    #[test]
    fn keys_and_cursor_style_are_written_and_nonsense_is_ignored() {
        let mut modes = Modes::default();
        modes.set_private(66, true);
        modes.set_cursor_style(5);
        modes.set_cursor_style(77);
        modes.set_other_keys(2);
        modes.set_other_keys(9);
        modes.set_private(31337, true);
        assert_eq!(written(&modes), "^=^[5 q^[>4;2m");
    }
}
