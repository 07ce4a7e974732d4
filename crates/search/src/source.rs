//! One conversation, as the index knows it: what it is, and how far it has been read.

use crate::discover::Stamp;
use crate::message::{Message, Role};
use rusqlite::{Statement, params};

/// The maximum length of a conversation's title in characters.
const TITLE: usize = 120;

/// What a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A transcript in a file.
    File,
    /// A conversation in a database.
    Database,
    /// The records of a session, where no transcript is found.
    Session,
}

impl Kind {
    pub fn number(self) -> i64 {
        match self {
            Kind::File => 0,
            Kind::Database => 1,
            Kind::Session => 2,
        }
    }

    pub fn of_number(number: i64) -> Option<Kind> {
        [Kind::File, Kind::Database, Kind::Session].into_iter().find(|kind| kind.number() == number)
    }
}

/// One conversation, and how far it has been read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub id: i64,
    /// The path of a file; of a database the path and the conversation; the id of a session.
    pub key: String,
    pub kind: Kind,
    pub agent: String,
    pub native_id: Option<String>,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub stamp: Stamp,
    /// The position after the last complete line.
    pub position: i64,
    /// For a database, the last row that was read. For a file, a hash of the bytes before `position`, and how far a
    /// line that is too long was read.
    pub mark: Option<String>,
}

pub(crate) const PUT_SOURCE: &str = "
INSERT INTO sources (id, key, kind, agent, native_id, cwd, title, inode, size, changed, position, mark)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (id) DO UPDATE SET native_id = ?5, cwd = ?6, title = ?7, inode = ?8, size = ?9, changed = ?10, position = ?11, mark = ?12";

impl Source {
    pub fn new(id: i64, key: String, kind: Kind, agent: &str) -> Source {
        Source {
            id,
            key,
            kind,
            agent: agent.to_owned(),
            native_id: None,
            cwd: None,
            title: None,
            stamp: Stamp::default(),
            position: 0,
            mark: None,
        }
    }

    /// Sets the title: the first line of the first prompt.
    pub fn note_title(&mut self, message: &Message) {
        if self.title.is_none() && message.role == Role::User {
            let line = message.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            self.title = Some(ostler_screen::printable(line).chars().take(TITLE).collect());
        }
    }

    pub fn put(&self, insert: &mut Statement<'_>) -> rusqlite::Result<()> {
        insert
            .execute(params![
                self.id,
                self.key,
                self.kind.number(),
                self.agent,
                self.native_id,
                self.cwd,
                self.title,
                self.stamp.inode,
                self.stamp.size,
                self.stamp.changed,
                self.position,
                self.mark
            ])
            .map(drop)
    }
}
