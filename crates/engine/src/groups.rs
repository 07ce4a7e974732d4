//! Groups: sessions that were started together for one task, each in a worktree of its own, to be compared.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::session_ref::SessionRef;
use ostler_core::comparison::{Checked, Compared};
use ostler_core::record::Session;
use ostler_core::view::View;
use ostler_store::home::{NotFound, Place};
use ostler_sys::clock;
use std::os::fd::BorrowedFd;

/// The kind of the job that starts a group.
pub const KIND: &str = "group";

/// The name of a group: the name of its job, or the job's id.
#[must_use]
pub fn name_of(job: &Session) -> String {
    job.name.clone().unwrap_or_else(|| job.id.to_string())
}

impl Engine {
    /// The members of a group, including archived ones, in the order in which they began. `word`: the group's name,
    /// with or without `group:` before it, or its job.
    pub fn group(&self, word: &str) -> Result<Vec<Place>> {
        let name = match word.strip_prefix("group:") {
            Some(name) => name.to_owned(),
            None => self.group_of_job(word)?.unwrap_or_else(|| word.to_owned()),
        };
        let mut found = Vec::new();
        for place in self.home.live_places()?.into_iter().chain(self.home.archived_places()?) {
            // A session that cannot be read is in no group.
            let Ok(session) = place.open().and_then(|folder| folder.session()) else { continue };
            if session.group.as_ref() == Some(&name) {
                found.push((session.created, session.parent, place));
            }
        }
        found.sort_by_key(|(created, _, place)| (*created, place.id));
        // When several groups have had this name one after the other, the newest is meant.
        let newest = found.last().and_then(|(_, job, _)| *job);
        found.retain(|(_, job, _)| *job == newest);
        if found.is_empty() {
            return Err(Error::NotFound { error: NotFound::None(word.to_owned()), nearest: None });
        }
        Ok(found.into_iter().map(|(_, _, place)| place).collect())
    }

    /// The sessions that have to end before everything that these words name has ended. For a group this includes its
    /// job, which knows of members that do not exist yet.
    pub fn select_to_the_end(&self, words: &[String]) -> Result<Vec<Place>> {
        crate::engine::each_once(words, |word| {
            let jobs = match word.strip_prefix("group:") {
                Some(name) => self.jobs_of_group(name)?,
                None => Vec::new(),
            };
            match self.select_several(word) {
                Ok(members) => Ok(jobs.into_iter().chain(members).collect()),
                Err(Error::NotFound { .. }) if !jobs.is_empty() => Ok(jobs),
                Err(error) => Err(error),
            }
        })
    }

    fn jobs_of_group(&self, name: &str) -> Result<Vec<Place>> {
        let is_its_job = |place: &Place| {
            // A session that cannot be read is in no group.
            let session = place.open().and_then(|folder| folder.session());
            session.is_ok_and(|session| session.job.as_deref() == Some(KIND) && name_of(&session) == name)
        };
        Ok(self.home.live_places()?.into_iter().filter(is_its_job).collect())
    }

    /// Refuses a name for a new group when another group has it whose sessions are not all archived.
    pub fn check_new_group(&self, name: &str) -> Result<()> {
        match self.group(&format!("group:{name}")) {
            Ok(places) => match places.into_iter().find(|place| !place.archived) {
                Some(place) => Err(Error::NameTaken { name: name.to_owned(), id: place.id }),
                None => Ok(()),
            },
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The group that a job has started, or that a session is in.
    fn group_of_job(&self, word: &str) -> Result<Option<String>> {
        let place = match self.select(word) {
            Ok(place) => place,
            Err(Error::NotFound { .. } | Error::MeansSeveral { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let session = place.open()?.session()?;
        Ok((session.job.as_deref() == Some(KIND)).then(|| name_of(&session)).or(session.group))
    }

    /// The other members of the group that a session is in.
    pub fn others_in_group(&self, place: &Place) -> Result<Vec<Place>> {
        let session = place.open()?.session()?;
        let refused = SessionRef::at(place);
        if session.job.as_deref() == Some(KIND) {
            let members = self.group(&format!("group:{}", name_of(&session)))?;
            let members = members.iter().map(|member| SessionRef::at(member).name.unwrap_or(member.id.to_string()));
            let members = members.collect();
            return Err(Error::IsTheGroup { session: refused, members });
        }
        let group = session.group.ok_or(Error::InNoGroup { session: refused })?;
        let all = self.group(&format!("group:{group}"))?;
        Ok(all.into_iter().filter(|other| other.id != place.id).collect())
    }

    /// What a member has done and, with a check command, the result of the check. A member that has not ended is not
    /// checked. When `leave` can be read, the check is ended, and the result is [`Error::Left`].
    pub fn compared(&self, place: &Place, check: Option<&str>, leave: Option<BorrowedFd<'_>>) -> Result<Compared> {
        let view = self.view(place)?;
        let session = place.open()?.session()?;
        let tree = view.worktree.as_deref();
        let changes = match tree {
            Some(tree) => self.changed_lines(tree)?,
            None => None,
        };
        let check = match (check, changes) {
            (Some(command), Some(_)) if view.ended => Some(self.checked(&view, command, leave)?),
            (Some(_) | None, _) => None,
        };
        let until = if view.ended { view.since } else { clock::now() };
        let seconds = until.duration_since(view.created).as_secs();
        let answer = view.outcome.as_ref().and_then(|outcome| outcome.text.clone()).filter(|text| !text.is_empty());
        Ok(Compared {
            id: view.id,
            agent: view.agent.clone(),
            model: session.model,
            status: view.status.to_owned(),
            ended: view.ended,
            seconds: u64::try_from(seconds).unwrap_or(0),
            tokens: view.tokens,
            cost_usd: view.cost_usd,
            changes,
            check,
            last: answer.or(view.last),
            branch: tree.map(|tree| tree.branch.clone()),
            path: tree.map(|tree| tree.path.clone()),
            name: view.name,
            outcome: view.outcome,
            labels: view.labels,
            archived: view.archived,
        })
    }

    fn checked(&self, view: &View, command: &str, leave: Option<BorrowedFd<'_>>) -> Result<Checked> {
        Ok(match self.check_work(view, command, leave)? {
            None => Checked { passed: true, cause: None, session: None },
            Some(failed) => {
                Checked { passed: false, cause: failed.outcome.map(|outcome| outcome.cause), session: Some(failed.id) }
            }
        })
    }
}
