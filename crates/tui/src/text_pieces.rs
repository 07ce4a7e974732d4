//! A long text in pieces that are drawn one by one, so that text which is still being written costs only its new part,
//! and a huge text only its visible part. A piece ends with a block of Markdown. If no block ends for long, it ends
//! with a line, and a block of code that is cut in two continues as code.

/// From this length on an end of the piece is looked for.
const ENOUGH: usize = 2 * 1024;
/// A piece is never longer than this.
const LONGEST: usize = 32 * 1024;

/// A part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// The line that opened the block of code in which this piece begins.
    pub fence: Option<String>,
    /// It continues in the middle of a block: no blank row is drawn before it.
    pub joined: bool,
}

impl Piece {
    /// The text to be parsed.
    pub fn source(&self) -> String {
        match &self.fence {
            Some(fence) => format!("{fence}\n{}", self.text),
            None => self.text.clone(),
        }
    }

    /// Cuts off and returns the part that does not change when text is added; `self` becomes the rest.
    pub fn finished_part(&mut self) -> Option<Piece> {
        if self.text.len() < ENOUGH {
            return None;
        }
        let end = self.end()?;
        let rest = self.text.split_off(end.place);
        let next = Piece { text: rest, fence: end.fence, joined: end.joined };
        Some(std::mem::replace(self, next))
    }

    fn end(&self) -> Option<End> {
        let mut fence = self.fence.clone();
        let (mut place, mut blank) = (0, false);
        let (mut block, mut line_end) = (None, None);
        for line in self.text.split_inclusive('\n') {
            if place > LONGEST {
                break;
            }
            if blank && fence.is_none() && place >= ENOUGH / 2 && !line.starts_with(char::is_whitespace) {
                block = Some(End { place, fence: None, joined: false });
            }
            if place > 0 {
                line_end = Some(End { place, fence: fence.clone(), joined: true });
            }
            place += line.len();
            let text = line.trim();
            blank = text.is_empty();
            match &fence {
                None if text.starts_with("```") || text.starts_with("~~~") => fence = Some(text.to_owned()),
                Some(open) if closes(text, open) => fence = None,
                Some(_) | None => {}
            }
        }
        if self.text.len() <= LONGEST {
            return block;
        }
        let cut = (0..=LONGEST).rev().find(|place| self.text.is_char_boundary(*place)).unwrap_or(0);
        block.or(line_end).or(Some(End { place: cut, fence: self.fence.clone(), joined: true }))
    }
}

struct End {
    place: usize,
    fence: Option<String>,
    joined: bool,
}

fn closes(line: &str, open: &str) -> bool {
    let sign = open.chars().next().unwrap_or('`');
    let length = open.chars().take_while(|c| *c == sign).count();
    line.chars().count() >= length && line.chars().all(|c| c == sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<Piece> {
        let mut rest = Piece { text: text.to_owned(), ..Piece::default() };
        let mut pieces = Vec::new();
        while let Some(piece) = rest.finished_part() {
            pieces.push(piece);
        }
        pieces.push(rest);
        pieces
    }

    #[test]
    fn a_piece_ends_with_a_block_and_never_inside_code_that_is_short() {
        let text = format!("{}\n\nb\n\n```\nx\n\ny\n```\n\nend", "a ".repeat(600));
        let text = format!("{text}{}", " more".repeat(300));
        let pieces = split(&text);
        assert_eq!(pieces.len(), 2);
        assert!(pieces[1].text.starts_with("end") && pieces[0].text.ends_with("```\n\n"), "{pieces:?}");
    }

    #[test]
    fn code_that_is_cut_goes_on_as_code() {
        let text = format!("```rust\n{}```\nafter", "let x = 1;\n".repeat(10_000));
        let pieces = split(&text);
        assert!(pieces.len() > 2);
        assert!(pieces[1].joined && pieces[1].fence.as_deref() == Some("```rust"));
        assert!(pieces[1].source().starts_with("```rust\nlet x"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_piece_is_long(text in "[a-z表`\n ]{0,400}", times in 1usize..200) {
            let text = text.repeat(times);
            let pieces = split(&text);
            prop_assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
            prop_assert!(pieces.iter().all(|piece| piece.text.len() <= LONGEST + 400 * 4));
        }
    }
}
