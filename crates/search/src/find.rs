//! Queries the index. It returns the passages that may contain what is searched for, the newest first. These are read
//! from their transcripts, and each message is checked by itself.

use crate::discover;
use crate::error::SearchError;
use crate::message::{Message, Role};
use crate::passages::Places;
use crate::query::Terms;
use crate::rows;
use crate::snippet::{self, Piece};
use crate::source::Kind;
use crate::unread::Collected;
use crate::update::first_id;
use jiff::Timestamp;
use ostler_agents::Agent;
use ostler_core::id::SessionId;
use ostler_view::database;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Query {
    /// As they were typed: words, "phrases", beginnings*, -exclusions.
    pub words: Vec<String>,
    /// Only conversations of these agents; empty: of all agents.
    pub agents: Vec<String>,
    /// Only messages from this time on.
    pub since: Option<Timestamp>,
    /// Only conversations in this folder or below it.
    pub below: Option<PathBuf>,
    /// Only messages with these roles; empty: with all roles.
    pub roles: Vec<Role>,
    /// Only sessions of ostler.
    pub ours: bool,
    /// The maximum number of hits.
    pub most: usize,
    /// The maximum number of hits from one conversation.
    pub most_of_each: usize,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            words: Vec::new(),
            agents: Vec::new(),
            since: None,
            below: None,
            roles: Vec::new(),
            ours: false,
            most: 20,
            most_of_each: 3,
        }
    }
}

/// A message that contains what was searched for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The agent that keeps the conversation.
    pub agent: String,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    /// The session of ostler that has this conversation.
    pub session: Option<SessionId>,
    /// The first prompt of the conversation.
    pub title: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// When the message was written, as far as that is known.
    pub at: Option<Timestamp>,
    /// The author of the message.
    pub role: Role,
    /// The part of the message with the words.
    pub snippet: Vec<Piece>,
    /// The transcript or the database; none for a session's own records.
    pub file: Option<PathBuf>,
}

/// How long passages are read and checked before the search gives up on the rest.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the index contains anything.
pub(crate) fn has_any(connection: &Connection) -> Result<bool, SearchError> {
    Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM passages)", [], |row| row.get(0))?)
}

/// The newest messages that contain what is searched for, and whether the search finished in time.
pub(crate) fn find(
    connection: &Connection,
    query: &Query,
    unread: &mut Collected,
) -> Result<(Vec<Hit>, bool), SearchError> {
    let terms = Terms::parse(query.words.iter().map(String::as_str));
    let Some(expression) = terms.expression() else {
        return Ok((Vec::new(), true));
    };
    let mut finder = Finder {
        query,
        terms,
        below: query.below.as_deref().map(real),
        folders: HashMap::new(),
        files: HashMap::new(),
        unread,
        hits: Vec::new(),
        seen: HashSet::new(),
        of_each: HashMap::new(),
    };
    let (sql, values) = question(query, expression);
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let begun = Instant::now();
    let mut complete = true;
    while let Some(row) = rows.next()? {
        let candidate = Candidate::of(row)?;
        if finder.has_enough(candidate.id) {
            break;
        }
        if begun.elapsed() > PATIENCE {
            complete = false;
            break;
        }
        finder.check(&candidate);
    }
    let hits = finder
        .newest()
        .into_iter()
        .map(|hit| session_of(connection, hit))
        .collect::<Result<Vec<Hit>, SearchError>>()?;
    Ok((hits, complete))
}

/// The SQL for the passages that may contain what is searched for, and its values.
fn question(query: &Query, expression: String) -> (String, Vec<Value>) {
    let mut sql =
        "SELECT passages.id, passages.role, passages.places, sources.id, sources.kind, sources.key, sources.agent,
                   sources.native_id, sources.title, sources.cwd
                   FROM words JOIN passages ON passages.id = words.rowid JOIN sources ON sources.id = passages.source
                   WHERE words MATCH ?"
            .to_owned();
    let mut values = vec![Value::from(expression)];
    if let Some(since) = query.since {
        sql.push_str(" AND words.rowid >= ?");
        values.push(Value::from(first_id(since.as_millisecond())));
    }
    let mut one_of = |column: &str, wanted: Vec<Value>| {
        if !wanted.is_empty() {
            let places = vec!["?"; wanted.len()].join(", ");
            sql.push_str(&format!(" AND {column} IN ({places})"));
            values.extend(wanted);
        }
    };
    one_of("sources.agent", query.agents.iter().cloned().map(Value::from).collect());
    one_of("passages.role", query.roles.iter().map(|role| Value::from(role.number())).collect());
    if query.ours {
        sql.push_str(
            " AND (sources.kind = 2 OR EXISTS (SELECT 1 FROM conversations WHERE conversations.agent = sources.agent
             AND conversations.native_id = sources.native_id))",
        );
    }
    sql.push_str(" ORDER BY words.rowid DESC");
    (sql, values)
}

/// A passage that may contain what is searched for.
struct Candidate {
    id: i64,
    role: Role,
    places: Places,
    source: i64,
    kind: Kind,
    key: String,
    agent: String,
    native_id: Option<String>,
    title: Option<String>,
    cwd: Option<String>,
}

impl Candidate {
    /// An index of this version contains only values that this version knows: anything else is damage.
    fn of(row: &Row<'_>) -> Result<Candidate, SearchError> {
        let (role, kind) = (Role::of_number(row.get(1)?), Kind::of_number(row.get(4)?));
        let places = serde_json::from_slice(row.get_ref(2)?.as_bytes().map_err(rusqlite::Error::from)?).ok();
        let (Some(role), Some(kind), Some(places)) = (role, kind, places) else {
            return Err(SearchError::Damaged { error: "a passage that cannot be read".to_owned() });
        };
        Ok(Candidate {
            id: row.get(0)?,
            role,
            places,
            source: row.get(3)?,
            kind,
            key: row.get(5)?,
            agent: row.get(6)?,
            native_id: row.get(7)?,
            title: row.get(8)?,
            cwd: row.get(9)?,
        })
    }
}

/// A path without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|known| Some((known, std::fs::canonicalize(known).ok()?)));
    match known {
        Some((known, found)) => found.join(path.strip_prefix(known).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}

/// A hit whose session is not looked up yet.
struct Raw {
    ms: i64,
    source: i64,
    hit: Hit,
}

struct Finder<'a> {
    query: &'a Query,
    terms: Terms,
    below: Option<PathBuf>,
    /// Whether these folders are below `below`.
    folders: HashMap<String, bool>,
    files: HashMap<i64, Option<File>>,
    unread: &'a mut Collected,
    hits: Vec<Raw>,
    /// What was found already: agents write some messages twice.
    seen: HashSet<(i64, Role, Option<Timestamp>, String)>,
    /// The times of the hits of each source.
    of_each: HashMap<i64, Vec<i64>>,
}

impl Finder<'_> {
    /// Whether no passage from this one on can contain a newer message than the last one that is shown.
    fn has_enough(&self, id: i64) -> bool {
        let most = self.query.most_of_each;
        self.hits.len() >= self.query.most
            && self.of_each.keys().map(|source| self.newer(*source, id).min(most)).sum::<usize>() >= self.query.most
    }

    /// How many of the found messages of a source are newer than any message in the passages from this one on.
    fn newer(&self, source: i64, id: i64) -> usize {
        self.of_each.get(&source).map_or(0, |times| times.iter().filter(|ms| first_id(**ms) >= id).count())
    }

    /// The hits to show.
    fn newest(self) -> Vec<Raw> {
        let mut hits = self.hits;
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.ms));
        let mut shown: HashMap<i64, usize> = HashMap::new();
        hits.retain(|hit| {
            let count = shown.entry(hit.source).or_default();
            *count += 1;
            *count <= self.query.most_of_each
        });
        hits.truncate(self.query.most);
        hits
    }

    fn is_below(&mut self, cwd: Option<&str>) -> bool {
        let (Some(below), Some(cwd)) = (&self.below, cwd) else { return self.below.is_none() };
        if let Some(known) = self.folders.get(cwd) {
            return *known;
        }
        let is_below = Path::new(cwd).starts_with(below) || real(Path::new(cwd)).starts_with(below);
        self.folders.insert(cwd.to_owned(), is_below);
        is_below
    }

    fn check(&mut self, candidate: &Candidate) {
        let most = self.query.most_of_each;
        if !self.is_below(candidate.cwd.as_deref()) || self.newer(candidate.source, candidate.id) >= most {
            return;
        }
        let mut found = 0;
        let passage_ms = candidate.id / 1024;
        // The newest message of a passage is its last.
        for message in self.messages(candidate).into_iter().rev().filter(|message| message.role == candidate.role) {
            if found >= most {
                return;
            }
            if self.query.since.is_some_and(|since| message.at.is_some_and(|at| at < since)) {
                continue;
            }
            let Some(places) = self.terms.find(&message.text) else { continue };
            let snippet = snippet::cut(&message.text, &places);
            let shown = snippet.iter().map(|piece| piece.text.as_str()).collect();
            if !self.seen.insert((candidate.source, message.role, message.at, shown)) {
                continue;
            }
            found += 1;
            let ms = message.at.map_or(passage_ms, Timestamp::as_millisecond);
            self.of_each.entry(candidate.source).or_default().push(ms);
            self.hits.push(Raw {
                ms,
                source: candidate.source,
                hit: Hit {
                    agent: candidate.agent.clone(),
                    native_id: candidate.native_id.clone(),
                    session: None,
                    title: candidate.title.clone(),
                    cwd: candidate.cwd.clone(),
                    at: message.at,
                    role: message.role,
                    snippet,
                    file: match candidate.kind {
                        Kind::File => Some(PathBuf::from(&candidate.key)),
                        Kind::Database => rows::database_of(&candidate.key).map(Path::to_owned),
                        Kind::Session => None,
                    },
                },
            });
            if candidate.kind == Kind::Session
                && let Some(last) = self.hits.last_mut()
            {
                last.hit.session = SessionId::parse(&candidate.key);
            }
        }
    }

    /// The messages of a passage as they are now. What is gone or was changed is left out.
    fn messages(&mut self, candidate: &Candidate) -> Vec<Message> {
        let Some(agent) = ostler_agents::find(&candidate.agent) else {
            // An agent that a person has named in the settings is known by its session only.
            return texts(&candidate.places, candidate.role);
        };
        match &candidate.places {
            Places::Texts(_) => texts(&candidate.places, candidate.role),
            Places::Lines(lines) => {
                let unread = &mut *self.unread;
                let open = || unread.note(&candidate.key, discover::open(&candidate.key)).flatten();
                let file = self.files.entry(candidate.source).or_insert_with(open);
                file.as_ref().map(|file| of_lines(agent, file, lines, &self.terms)).unwrap_or_default()
            }
            Places::Rows(ids) => of_rows(agent, &candidate.key, ids, &self.terms),
        }
    }
}

fn texts(places: &Places, role: Role) -> Vec<Message> {
    match places {
        Places::Texts(texts) => texts
            .iter()
            .map(|(ms, text)| Message {
                at: ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
                role,
                text: text.clone(),
            })
            .collect(),
        Places::Lines(_) | Places::Rows(_) => Vec::new(),
    }
}

/// The messages of the lines that can contain what is searched for.
fn of_lines(agent: &dyn Agent, file: &File, lines: &[(u64, u64)], terms: &Terms) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut line = Vec::new();
    for &(start, length) in lines {
        let Some(mut recording) = agent.recording() else { break };
        recording.begin_in_the_middle();
        line.resize(usize::try_from(length).unwrap_or(0), 0);
        if file.read_exact_at(&mut line, start).is_err() || !terms.may_be_in(&line) {
            continue;
        }
        let mut items = Vec::new();
        recording.line(&line, &mut items);
        messages.extend(items.into_iter().filter_map(Message::of_recorded));
    }
    messages
}

fn of_rows(agent: &dyn Agent, key: &str, ids: &[String], terms: &Terms) -> Vec<Message> {
    let mut messages = Vec::new();
    let (Some(queries), Some(path), Some(mut recording)) = (agent.queries(), rows::database_of(key), agent.recording())
    else {
        return messages;
    };
    recording.begin_in_the_middle();
    let mut items = Vec::new();
    // A database that cannot be read now has no hits; the conversation is still there the next time.
    let _ = database::rows_named(queries, path, ids, |row| {
        if !terms.may_be_in(row.part_data) {
            return;
        }
        recording.row(row, &mut items);
        messages.extend(items.drain(..).filter_map(Message::of_recorded));
    });
    messages
}

/// Adds the session of ostler that has the conversation: the newest of several.
fn session_of(connection: &Connection, raw: Raw) -> Result<Hit, SearchError> {
    let mut hit = raw.hit;
    if hit.session.is_none()
        && let Some(native_id) = &hit.native_id
    {
        let mut rows = connection.prepare("SELECT session FROM conversations WHERE agent = ?1 AND native_id = ?2")?;
        let mut rows = rows.query([&hit.agent, native_id])?;
        while let Some(row) = rows.next()? {
            hit.session = SessionId::parse(row.get_ref(0)?.as_str().unwrap_or_default()).or(hit.session);
        }
    }
    Ok(hit)
}
