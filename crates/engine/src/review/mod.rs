//! Reviews: another agent, which can only read, judges what a session has changed. Its verdict is recorded once, in the
//! folder of the session that reviewed; `show` of the reviewed session includes it.
//!
//! Nothing is lost when the caller is killed: the same request finds the review that has begun, and nothing is paid for
//! twice.
//!
//! * `prompt`: what the agent is told.

mod prompt;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::{COMMAND, Launch, Relative};
use crate::notice::Notice;
use crate::queues::StartLater;
use crate::session_ref::SessionRef;
use crate::wait::{Until, Wait};
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::record::{Mode, Origin};
use ostler_core::review::{Review, ReviewVerdict, Said, parse};
use ostler_core::view::{Phase, View};
use ostler_git::state::Fingerprint;
use ostler_store::home::Place;
use ostler_store::review::{self, Begun};
use ostler_sys::clock;
use std::path::Path;

/// A request for a review.
#[derive(Clone, Debug, Default)]
pub struct ReviewRequest {
    /// The agent that reviews. `None`: the agent of the session.
    pub by: Option<String>,
    /// The beginning of its prompt instead of the usual one. The task, the changes and the form of the verdict follow
    /// in any case.
    pub prompt: Option<String>,
    /// When it starts.
    pub start: StartLater,
    /// The id of the session that reviews, when the caller has reserved one.
    pub id: Option<SessionId>,
}

/// The state of a review.
#[derive(Debug)]
pub enum Reviewed {
    /// It is over.
    Done(Box<Review>),
    /// The session that reviews asks a question, and waits.
    Asks(Place),
}

impl Engine {
    /// Has a session reviewed, and waits for the verdict.
    pub fn review(&self, place: &Place, request: &ReviewRequest, tell: &mut dyn FnMut(Notice)) -> Result<Reviewed> {
        let reviewer = self.start_review(place, request, tell)?;
        self.finish_review(&reviewer)
    }

    /// The session that reviews: the one that has begun already, or a new one.
    pub fn start_review(&self, place: &Place, request: &ReviewRequest, tell: &mut dyn FnMut(Notice)) -> Result<Place> {
        if let Some(begun) = request.id.map(|id| self.settled(id)).transpose()?.flatten() {
            return Ok(begun);
        }
        let view = self.view(place)?;
        let session = SessionRef::from(&view);
        let tree = view.worktree.clone().ok_or_else(|| Error::NoWorktree { session: session.clone() })?;
        if !view.ended && view.state != Phase::Idle {
            return Err(Error::StillWorks { session });
        }
        let by = request.by.clone().unwrap_or_else(|| view.agent.clone());
        self.check_reviewer(&by)?;
        if request.id.is_none()
            && let Some(begun) = self.unfinished_review(&view, &by)?
        {
            return Ok(begun);
        }
        if request.id.is_none() {
            self.check_changed(&view)?;
        }
        let before = Fingerprint::of(&self.git(), Path::new(&tree.path))?;
        let before = serde_json::to_value(&before).map_err(std::io::Error::from)?;
        let launched = self.launch(
            Launch {
                prompt: Some(self.review_prompt(place, &tree, request.prompt.as_deref())?),
                agent: by,
                cwd: Some(view.cwd.clone().into()),
                mode: Some(Mode::Headless),
                id: request.id,
                relative: Some(Relative { parent: view.id, origin: Origin::Review, worktree: None }),
                read_only: true,
                start: request.start.clone(),
                ..Launch::default()
            },
            tell,
        )?;
        review::write_begun(&launched.place.open()?, &Begun { of: view.id, before })?;
        Ok(launched.place)
    }

    /// Refuses an agent that cannot be kept from writing.
    pub fn check_reviewer(&self, agent: &str) -> Result<()> {
        if agent == COMMAND || self.config.own_agent(agent)?.is_some() {
            return Err(Error::CannotOnlyRead { agent: agent.to_owned() });
        }
        let known = ostler_agents::find(agent).ok_or_else(|| Error::UnknownAgent { agent: agent.to_owned() })?;
        if !known.can_only_read() {
            return Err(Error::CannotOnlyRead { agent: agent.to_owned() });
        }
        crate::prepare::check_installed(&self.environment, known)
    }

    /// A review by the same agent whose verdict is not recorded: the command that started it was killed, or returned
    /// because of a question.
    fn unfinished_review(&self, view: &View, by: &str) -> Result<Option<Place>> {
        for child in self.home.children_of(view.id)?.into_iter().rev() {
            let folder = child.open()?;
            let session = folder.session()?;
            let same = session.origin == Some(Origin::Review) && session.agent == by && !child.archived;
            if same && review::verdict(&folder)?.is_none() {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// Waits for the end of a session that reviews, and records the verdict.
    pub fn finish_review(&self, reviewer: &Place) -> Result<Reviewed> {
        if let Some(review) = review::verdict(&reviewer.open()?)? {
            return Ok(Reviewed::Done(Box::new(review)));
        }
        let wait = Wait { until: Until::Ended, any: false, through_questions: false, limit: None, last: false };
        let (_, waited) = self.wait(vec![reviewer.clone()], &wait)?;
        let Some(view) = waited.into_iter().next().map(|waited| waited.view).filter(|view| view.ended) else {
            return Ok(Reviewed::Asks(reviewer.clone()));
        };
        let folder = reviewer.open()?;
        let judged = self.judge(&view, review::begun(&folder)?)?;
        // Another process may have been faster: the first verdict counts.
        if review::publish_verdict(&folder, &judged)? {
            return Ok(Reviewed::Done(Box::new(judged)));
        }
        let first = review::verdict(&folder)?.unwrap_or(judged);
        Ok(Reviewed::Done(Box::new(first)))
    }

    /// The verdict of a review that has ended.
    fn judge(&self, view: &View, begun: Option<Begun>) -> Result<Review> {
        let unsure = |reason: String| Review {
            id: view.id,
            by: view.agent.clone(),
            verdict: ReviewVerdict::Unsure,
            findings: Vec::new(),
            summary: None,
            reason: Some(reason),
            at: clock::now(),
        };
        let before = begun.and_then(|begun| serde_json::from_value::<Fingerprint>(begun.before).ok());
        let Some(before) = before else {
            return Ok(unsure("it is not known what the tree was before the review".to_owned()));
        };
        let changed = before.changed_since(&self.git())?;
        let outcome = view.outcome.as_ref();
        let said = match outcome {
            Some(outcome) if outcome.kind == Kind::Succeeded => parse(outcome.text.as_deref().unwrap_or_default()),
            Some(outcome) => Err(format!("the review {}: {}", outcome.kind.word(), outcome.cause)),
            None => Err("it is not known how the review ended".to_owned()),
        };
        if !changed.is_empty() {
            let words = format!("the tree was changed during the review: {}", changed.join(", "));
            let findings = said.map(|said| said.findings).unwrap_or_default();
            return Ok(Review { findings, ..unsure(words) });
        }
        Ok(match said {
            Ok(Said { verdict, findings, summary }) => {
                Review { verdict, findings, summary, reason: None, ..unsure(String::new()) }
            }
            Err(words) => unsure(words),
        })
    }

    /// The reviews of a session that are over, the oldest first.
    pub(crate) fn reviews_among(&self, children: &[View]) -> Result<Vec<Review>> {
        let mut reviews = Vec::new();
        for child in children.iter().filter(|child| child.origin == Some(Origin::Review)) {
            let Some(place) = self.home.place_of(child.id)? else { continue };
            // A review that cannot be read is left out; the others are still returned.
            reviews.extend(place.open().and_then(|folder| review::verdict(&folder)).ok().flatten());
        }
        Ok(reviews)
    }
}
