//! One session in full: its view, and what is too long for a list.

use crate::engine::Engine;
use crate::error::Result;
use crate::launch::COMMAND;
use crate::queues::Places;
use crate::turns::TurnsKept;
use crate::worktrees::Standing;
use ostler_core::fact::Tokens;
use ostler_core::id::SessionId;
use ostler_core::record::Adopted;
use ostler_core::review::Review;
use ostler_core::spending::Spent;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_sys::cgroup::bounds;
use ostler_view::look::{Depth, look, look_to, spent, spent_lately};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How many turns are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Every one.
    All,
    /// The newest, of which a person is shown a few.
    Newest,
}

/// Everything that is known about a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Details {
    /// What a list shows of it.
    #[serde(flatten)]
    pub view: View,
    /// What each turn used.
    pub spent: Vec<Spent>,
    /// The sessions that came from it.
    pub children: Vec<SessionId>,
    /// What the sessions of a job have done together, including the sessions of its jobs. `turns`, `tokens` and
    /// `cost_usd` of the job itself are only those of its driver, so that sums over sessions count nothing twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
    /// What it uses now, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Where ostler has overridden its agent's own defaults for its newest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force: Option<&'static str>,
    /// Where it came from, when it was begun outside ostler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adopted>,
    /// The state of its worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Standing>,
    /// The reviews of its changes, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// The turns of which there are snapshots of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<TurnsKept>,
    /// Its relatives, as they are now.
    #[serde(skip)]
    pub family: Family,
    /// Where its files are.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Its agent's transcript was deleted.
    #[serde(skip)]
    pub transcript_is_gone: bool,
}

/// What several sessions have done together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Total {
    /// How many there are. Checks are not counted.
    pub sessions: u32,
    /// All their turns.
    pub turns: u32,
    /// All their tokens, as far as agents report them.
    pub tokens: Option<Tokens>,
    /// What they cost, as far as agents report it.
    pub cost_usd: Option<f64>,
}

impl Total {
    fn add(&mut self, view: &View) {
        self.sessions += 1;
        self.turns = self.turns.saturating_add(view.turns);
        if let Some(tokens) = view.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
        if let Some(usd) = view.cost_usd {
            *self.cost_usd.get_or_insert_default() += usd;
        }
    }
}

/// What the processes of a session use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Bytes.
    pub memory: Option<u64>,
    /// How many processes there are.
    pub processes: Option<u64>,
    /// Processor time so far, in seconds.
    pub cpu_s: Option<f64>,
}

/// The relatives of a session, without those that were purged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// The session that it comes from.
    pub parent: Option<View>,
    /// The sessions that came from it.
    pub children: Vec<View>,
}

impl Engine {
    /// Looks at a session.
    pub fn show(&self, place: &Place, turns: Turns) -> Result<Details> {
        self.details(place, look(place)?, turns)
    }

    /// The same for a caller that has looked already.
    pub fn details(&self, place: &Place, mut view: View, turns: Turns) -> Result<Details> {
        Places::default().fill(&self.home, &mut view);
        let folder = place.open()?;
        let family = self.family(&view)?;
        let spent = match turns {
            Turns::All => spent(&folder)?,
            Turns::Newest => spent_lately(&folder)?,
        };
        Ok(Details {
            spent,
            total: view.job.as_ref().map(|_| self.total(&family.children)).transpose()?,
            children: family.children.iter().map(|child| child.id).collect(),
            usage: usage(place, &view),
            in_force: in_force(place, &view),
            adopted: folder.session()?.adopted,
            // Git or the repository may not exist any more.
            changes: self.standing(&view).ok().flatten(),
            reviews: self.reviews_among(&family.children)?,
            snapshots: self.turns_kept(place)?,
            family,
            folder: place.path.clone(),
            transcript_is_gone: view.transcript.as_ref().is_some_and(|path| !Path::new(path).exists()),
            view,
        })
    }

    /// What the sessions of a job have done, given its children.
    fn total(&self, children: &[View]) -> Result<Total> {
        let mut total = Total::default();
        let mut left = children.to_vec();
        while let Some(child) = left.pop() {
            if !child.driven {
                continue;
            }
            if child.job.is_some() {
                let further = self.home.children_of(child.id)?;
                left.extend(further.iter().filter_map(|place| look_to(Depth::Standing, place).ok()));
            } else if child.agent != COMMAND {
                total.add(&child);
            }
        }
        Ok(total)
    }

    fn family(&self, view: &View) -> Result<Family> {
        let look = |place: &Place| look_to(Depth::Standing, place).ok();
        let parent = view.parent.map(|id| self.home.place_of(id)).transpose()?.flatten();
        let mut children = self.home.children_of(view.id)?;
        if view.job.is_some() {
            // A copy that a job has made is also the child of the session that it is a copy of.
            for id in self.begun_by_job(view.id)? {
                let place = self.home.place_of(id)?.filter(|place| !children.contains(place));
                children.extend(place);
            }
        }
        Ok(Family { parent: parent.as_ref().and_then(look), children: children.iter().filter_map(look).collect() })
    }
}

/// What a session that runs uses now. If the record changes meanwhile, the next look shows it.
fn usage(place: &Place, view: &View) -> Option<Usage> {
    if view.ended {
        return None;
    }
    let record = place.open().and_then(|folder| folder.run(view.run)).and_then(|run| run.record()).ok()?;
    let now = ostler_store::limits::usage(&record);
    let bounds::Usage { memory, processes, cpu_us } = now;
    (now != bounds::Usage::default()).then(|| Usage { memory, processes, cpu_s: cpu_us.map(|us| us as f64 / 1e6) })
}

fn in_force(place: &Place, view: &View) -> Option<&'static str> {
    let record = place.open().and_then(|folder| folder.run(view.run)).and_then(|run| run.record()).ok()?;
    ostler_agents::find(&view.agent)?.in_force(&record.argv)
}
