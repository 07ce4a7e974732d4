//! What is shown of the selected session without attaching: the end of its conversation, its screen, or its output,
//! live.

use super::keys::Scroll;
use super::printed_text::PrintedText;
use super::row::Row;
use crate::exit::{Failure, Result};
use ostler_core::id::SessionId;
use ostler_engine::content::{self, Item, Kind, Piece, Printed, ProgramScreen};
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::{Engine, Place};
use ostler_tui::clean::clean_output;
use ostler_tui::{Buffer, Conversation, Rect, Theme, program_screen, rows_of};

/// About how much of the end of a conversation is read. Attaching shows all of it.
const LATELY: u64 = 192 << 10;
/// How much of the end of a command's output is read. It is more than is kept, because of long lines.
const READ: u64 = 1 << 20;

/// What the preview shows.
enum Content {
    Nothing,
    Talk { reader: Box<content::Conversation>, widget: Box<Conversation> },
    Screen { screen: Box<ProgramScreen>, above: Option<Vec<Vec<ostler_screen::Piece>>>, up: usize },
    Text { printed: Printed, text: PrintedText, up: usize },
    Failed(String),
}

pub struct Preview {
    /// Which session, and which run of it.
    of: Option<(SessionId, u32)>,
    content: Content,
    watch: Option<SessionWatch>,
    model: Option<String>,
    height: usize,
}

impl Preview {
    pub fn empty() -> Preview {
        Preview { of: None, content: Content::Nothing, watch: None, model: None, height: 0 }
    }

    /// Whether it shows this session, in its current run.
    pub fn is_of(&self, row: Option<&Row>) -> bool {
        self.of == row.map(|row| (row.id, row.run))
    }

    /// Opens the preview of another session.
    pub fn open(engine: &Engine, row: Option<&Row>, theme: Theme) -> Preview {
        let Some(row) = row else { return Preview::empty() };
        let of = Some((row.id, row.run));
        let opened = if row.damaged || row.run == 0 { Ok(Preview::empty()) } else { Preview::load(engine, row, theme) };
        // An error is shown in place of the content.
        let failed = |failure: Failure| Preview { content: Content::Failed(failure.to_string()), ..Preview::empty() };
        Preview { of, ..opened.unwrap_or_else(failed) }
    }

    fn load(engine: &Engine, row: &Row, theme: Theme) -> Result<Preview> {
        let place = engine.select(row.id.as_str())?;
        // Watch first, look afterwards: what happens in between is reported.
        let watch = if row.ended { None } else { Some(SessionWatch::new(&place)?) };
        let model = engine.record(&place)?.model;
        let content = Preview::content(engine, &place, row, theme)?;
        let mut preview = Preview { of: None, content, watch, model, height: 0 };
        preview.read(Some(row))?;
        Ok(preview)
    }

    fn content(engine: &Engine, place: &Place, row: &Row, theme: Theme) -> Result<Content> {
        Ok(match engine.kind(place)? {
            Kind::Conversation => {
                let (reader, all) = engine.conversation_lately(place, LATELY)?;
                let mut widget = Box::new(Conversation::new(theme, &row.cwd));
                if !all {
                    widget.note(&format!("… what was said before: ostler logs {}, or Enter", row.id));
                }
                Content::Talk { reader: Box::new(reader), widget }
            }
            Kind::Terminal => Content::Screen { screen: Box::new(engine.program_screen(place)?), above: None, up: 0 },
            Kind::Command => {
                let printed = engine.printed_lately(place, READ)?;
                Content::Text { printed, text: PrintedText::default(), up: 0 }
            }
        })
    }

    /// Readable when there may be more to show.
    pub fn watch(&self) -> Option<&SessionWatch> {
        self.watch.as_ref()
    }

    /// Reads what is new; an error is shown in its place.
    pub fn refresh(&mut self, row: Option<&Row>) {
        if self.of.is_some()
            && let Err(failure) = self.read(row)
        {
            self.content = Content::Failed(failure.to_string());
        }
    }

    fn read(&mut self, row: Option<&Row>) -> Result<()> {
        if let Some(watch) = &mut self.watch {
            watch.take_news()?;
        }
        match &mut self.content {
            Content::Nothing | Content::Failed(_) => {}
            Content::Talk { reader, widget } => {
                reader.read(|item, _| -> Result<()> {
                    match &item {
                        Item::Told { text, .. } => widget.told(text),
                        Item::Answered { request, by, allowed, always } => {
                            widget.answered(request, by, *allowed, always.as_deref());
                        }
                        Item::Agent(fact) => widget.fact(fact),
                    }
                    Ok(())
                })?;
                widget.asks(row.and_then(|row| row.asking.as_deref()));
            }
            Content::Screen { screen, .. } => screen.read()?,
            Content::Text { printed, text, .. } => printed.read(|_, piece| -> Result<()> {
                match piece {
                    Piece::Bytes(bytes) => text.print(bytes),
                    Piece::Dropped(bytes) => text.dropped(bytes),
                }
                Ok(())
            })?,
        }
        Ok(())
    }

    /// Connects again, after the session has got another keeper or its first one.
    pub fn find_keeper(&mut self, engine: &Engine, row: &Row) {
        if row.ended || self.watch.as_ref().is_some_and(SessionWatch::has_keeper) {
            return;
        }
        // Without a watch the preview is not updated; the list shows what is wrong with the session.
        self.watch = engine.select(row.id.as_str()).and_then(|place| SessionWatch::new(&place)).ok();
    }

    pub fn model(&self) -> Option<&str> {
        match &self.content {
            Content::Talk { widget, .. } => widget.model().or(self.model.as_deref()),
            Content::Nothing | Content::Screen { .. } | Content::Text { .. } | Content::Failed(_) => {
                self.model.as_deref()
            }
        }
    }

    /// The notice that the end is not in view.
    pub fn notice(&self) -> Option<String> {
        let follows = match &self.content {
            Content::Talk { widget, .. } => widget.follows(),
            Content::Screen { up, .. } | Content::Text { up, .. } => *up == 0,
            Content::Nothing | Content::Failed(_) => true,
        };
        (!follows).then(|| "↓ more below".to_owned())
    }

    pub fn scroll(&mut self, scroll: Scroll) {
        let half = isize::try_from(self.height / 2).unwrap_or(1).max(1);
        let rows = match scroll {
            Scroll::Rows(rows) => rows,
            Scroll::HalfPages(pages) => pages * half,
            Scroll::Start => isize::MIN,
            Scroll::End => isize::MAX,
            Scroll::UnfoldAll => {
                if let Content::Talk { widget, .. } = &mut self.content {
                    widget.toggle_all();
                }
                return;
            }
        };
        match &mut self.content {
            Content::Nothing | Content::Failed(_) => {}
            Content::Talk { widget, .. } => match rows {
                isize::MIN => widget.to_start(),
                isize::MAX => widget.to_end(),
                up if up < 0 => widget.scroll_up(up.unsigned_abs()),
                down => widget.scroll_down(down.unsigned_abs()),
            },
            Content::Screen { screen, above, up } => {
                if above.is_none() && rows < 0 {
                    // What cannot be read cannot be scrolled to.
                    *above = Some(screen.scrolled_off().unwrap_or_default());
                }
                *up = up.saturating_add_signed(rows.saturating_neg());
                if *up == 0 {
                    *above = None;
                }
            }
            Content::Text { up, .. } => *up = up.saturating_add_signed(rows.saturating_neg()),
        }
    }

    /// A click on this row.
    pub fn click(&mut self, row: u16) {
        if let Content::Talk { widget, .. } = &mut self.content {
            widget.click(usize::from(row));
        }
    }

    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        self.height = usize::from(area.height);
        let height = self.height;
        match &mut self.content {
            Content::Nothing => {}
            Content::Failed(words) => {
                for (line, y) in rows_of(words, area.width).iter().zip(area.top()..area.bottom()) {
                    buffer.set_stringn(area.x, y, line, usize::from(area.width), theme.bad());
                }
            }
            Content::Talk { widget, .. } => widget.render(area, buffer),
            Content::Screen { screen, above, up } => {
                let mut rows = above.clone().unwrap_or_default();
                let shown = screen.rows();
                // The empty rows below the last used row are not shown.
                let used = shown.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
                rows.extend(shown.into_iter().take(used.max(1)));
                let most = rows.len().saturating_sub(height);
                *up = (*up).min(most);
                program_screen::render(&rows[most - *up..], area, buffer, theme);
            }
            Content::Text { text, up, .. } => {
                let rows = rows_of(clean_output(&text.text()).trim_end(), area.width);
                let most = rows.len().saturating_sub(height);
                *up = (*up).min(most);
                for (row, y) in rows[most - *up..].iter().zip(area.top()..area.bottom()) {
                    buffer.set_stringn(area.x, y, row, usize::from(area.width), theme.plain());
                }
            }
        }
    }
}
