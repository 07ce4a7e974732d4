//! The dim line between the conversation and what the person writes: what the session does, and what can be done.

use crate::commands::attach::longer;
use crate::ui::table::cut;
use ostler_core::asking::Shown;
use ostler_core::id::SessionId;
use ostler_core::view::{Phase, View};
use ostler_core::visible::visible;
use ostler_screen::printable;
use unicode_width::UnicodeWidthStr;

pub struct Status {
    id: SessionId,
    leave_key: String,
    read_only: bool,
    /// Said once, until the next key.
    notice: Option<String>,
}

impl Status {
    pub fn new(id: SessionId, detach_key: u8, read_only: bool) -> Status {
        let letter = char::from(if detach_key < 0x1b { detach_key | 0x60 } else { detach_key | 0x40 });
        Status { id, leave_key: format!("Ctrl-{}", letter.to_ascii_uppercase()), read_only, notice: None }
    }

    pub fn notice(&mut self, words: String) {
        self.notice = Some(words);
    }

    pub fn forget_notice(&mut self) {
        self.notice = None;
    }

    /// One line that fits.
    pub fn line(&self, view: &View, columns: usize) -> String {
        let mut rest = String::new();
        if view.queued > 0 {
            rest.push_str(&format!(" · {} queued", view.queued));
        }
        let hint = self.notice.as_ref().map_or_else(|| self.hint(view), |notice| printable(notice).into_owned());
        rest.push_str(&format!(" · {hint}"));
        let id = format!("{} ", self.id);
        let used = id.width() + "asks: ".len() + rest.width();
        let line = format!("{id}{}{rest}", state(view, columns.saturating_sub(used)));
        cut(&line.replace('\n', " "), columns)
    }

    fn hint(&self, view: &View) -> String {
        let leave = format!("{} leaves", self.leave_key);
        if self.read_only {
            return leave;
        }
        match view.state {
            Phase::Asking => {
                let always = longer(view).map(|what| format!(", a: always {}", visible(&what))).unwrap_or_default();
                format!("y or n answers{always}, {leave}")
            }
            Phase::Starting | Phase::Working | Phase::Running => format!("Ctrl-C interrupts, {leave}"),
            Phase::Idle => format!("Enter sends, {leave}"),
            Phase::Stopping | Phase::Ended => leave,
        }
    }
}

fn state(view: &View, columns: usize) -> String {
    match (view.state, &view.asking) {
        (Phase::Asking, Some(ask)) => format!("asks: {}", Shown::of(ask).line(columns.max(20)).asked),
        (Phase::Working, _) => "working…".to_owned(),
        (Phase::Stopping, _) => "stopping…".to_owned(),
        (phase @ (Phase::Starting | Phase::Running | Phase::Idle | Phase::Asking | Phase::Ended), _) => {
            phase.word().to_owned()
        }
    }
}
