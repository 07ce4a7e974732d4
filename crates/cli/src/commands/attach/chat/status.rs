//! The dim line between the conversation and what the person writes: what the session does, and what can be done.

use crate::commands::attach::longer;
use crate::ui::table::cut;
use ostler_core::id::SessionId;
use ostler_core::view::{Phase, View};
use ostler_screen::printable;

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
        let mut parts = vec![format!("{} {}", self.id, state(view))];
        if view.queued > 0 {
            parts.push(format!("{} queued", view.queued));
        }
        match &self.notice {
            Some(notice) => parts.push(printable(notice).into_owned()),
            None => parts.push(self.hint(view)),
        }
        cut(&parts.join(" · ").replace('\n', " "), columns).to_string()
    }

    fn hint(&self, view: &View) -> String {
        let leave = format!("{} leaves", self.leave_key);
        if self.read_only {
            return leave;
        }
        match view.state {
            Phase::Asking => {
                let always = longer(view).map(|what| format!(", a: always {}", printable(&what))).unwrap_or_default();
                format!("y or n answers{always}, {leave}")
            }
            Phase::Starting | Phase::Working => format!("Ctrl-C interrupts, {leave}"),
            Phase::Idle => format!("Enter sends, {leave}"),
            Phase::Stopping | Phase::Ended => leave,
        }
    }
}

fn state(view: &View) -> String {
    match (view.state, &view.asking) {
        (Phase::Asking, Some(ask)) => {
            let tool = ask.tool.as_deref().map(|tool| format!("{}: ", printable(tool))).unwrap_or_default();
            format!("asks: {tool}{}", printable(&ask.text))
        }
        (Phase::Working, _) => "working…".to_owned(),
        (Phase::Stopping, _) => "stopping…".to_owned(),
        (phase @ (Phase::Starting | Phase::Idle | Phase::Asking | Phase::Ended), _) => phase.word().to_owned(),
    }
}
