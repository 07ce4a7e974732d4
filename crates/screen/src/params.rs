//! The numbers of a control sequence, `1;38:5:9` in `ESC [ 1;38:5:9 m`, in a fixed amount of memory.

use crate::ascii::push;
use serde::{Deserialize, Serialize};

/// More than any real sequence has; further values are dropped.
const LIMIT: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Params {
    values: [u16; LIMIT],
    length: u8,
    /// Bit n: a colon joined value n to the value before it.
    joined: u32,
    overflowed: bool,
}

impl Params {
    pub(crate) fn digit(&mut self, digit: u8) {
        if self.overflowed {
            return;
        }
        self.length = self.length.max(1);
        if let Some(value) = self.values.get_mut(usize::from(self.length) - 1) {
            *value = value.saturating_mul(10).saturating_add(u16::from(digit));
        }
    }

    pub(crate) fn semicolon(&mut self) {
        self.start_value(false);
    }

    pub(crate) fn colon(&mut self) {
        self.start_value(true);
    }

    fn start_value(&mut self, joined: bool) {
        let index = self.length.max(1);
        if usize::from(index) >= LIMIT {
            self.overflowed = true;
            return;
        }
        self.joined |= u32::from(joined) << index;
        self.length = index + 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn has_colons(&self) -> bool {
        self.joined != 0
    }

    pub(crate) fn values(&self) -> &[u16] {
        self.values.get(..usize::from(self.length)).unwrap_or(&self.values)
    }

    /// The value at `index`; an absent or empty value is 0.
    pub(crate) fn get(&self, index: usize) -> u16 {
        self.values().get(index).copied().unwrap_or(0)
    }

    /// A count or a position: absent and 0 both mean 1.
    pub(crate) fn at_least_one(&self, index: usize) -> usize {
        usize::from(self.get(index).max(1))
    }

    /// The parameters between semicolons, each with its colon-separated parts.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u16]> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = self.values().get(start..).filter(|rest| !rest.is_empty())?;
            let joined = (start + 1..).take_while(|&index| index < LIMIT && self.joined >> index & 1 == 1).count();
            let group = rest.get(..=joined).unwrap_or(rest);
            start += group.len();
            Some(group)
        })
    }

    /// Writes the parameters as they were read.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (group_index, group) in self.groups().enumerate() {
            for (index, value) in group.iter().enumerate() {
                match (group_index, index) {
                    (0, 0) => push(out, format_args!("{value}")),
                    (_, 0) => push(out, format_args!(";{value}")),
                    (_, _) => push(out, format_args!(":{value}")),
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Params {
        let mut params = Params::default();
        for byte in text.bytes() {
            match byte {
                b'0'..=b'9' => params.digit(byte - b'0'),
                b';' => params.semicolon(),
                _ => params.colon(),
            }
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Vec<Vec<u16>> {
        Params::of(text).groups().map(<[u16]>::to_vec).collect()
    }

    #[test]
    fn colons_join_and_semicolons_part() {
        assert_eq!(groups("1;38:5:9;4"), [vec![1], vec![38, 5, 9], vec![4]]);
        assert_eq!(groups(""), Vec::<Vec<u16>>::new());
        assert_eq!(groups(";"), [vec![0], vec![0]]);
        assert_eq!(groups("4:"), [vec![4, 0]]);
    }

    #[test]
    fn parameters_are_written_as_they_were_read() {
        for text in ["", "1", "1;38:5:9;4", "0;0", "4:3;2"] {
            let mut out = Vec::new();
            Params::of(text).write(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn numbers_saturate_and_further_ones_are_dropped() {
        assert_eq!(Params::of("99999999").get(0), u16::MAX);
        let many = Params::of(&"7;".repeat(100));
        assert_eq!(many.values(), [7; LIMIT]);
        assert_eq!(groups(&"7:".repeat(100)), [vec![7; LIMIT]]);
    }
}
