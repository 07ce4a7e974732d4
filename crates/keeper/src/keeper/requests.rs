//! Working through the inbox: each request is granted or refused, once, and the journal says which.

use super::{About, Keeper, KeeperError};
use ostler_agents::speak::Answer;
use ostler_core::event::Event;
use ostler_core::fact::Ask;
use ostler_core::record::{Channel, Mode, RequestKind};
use ostler_core::view::Phase;
use ostler_store::inbox::{self, Placed};
use ostler_store::journal;
use ostler_sys::pause_points::{self, Point};

impl Keeper {
    pub(super) fn work_inbox(&mut self) -> Result<(), KeeperError> {
        let (requests, _) = inbox::read(self.folder.dir(), self.state.inbox)?;
        for Placed { request, at, end } in requests {
            // A request about a process does not carry over to the next process; a message does. For clients, the next
            // run of a session that continues by itself is the same run.
            let since = self.record.continues.unwrap_or(self.record.run);
            let stale = !(since..=self.record.run).contains(&request.run)
                && !matches!(
                    request.kind,
                    RequestKind::Message { .. } | RequestKind::Withdraw { .. } | RequestKind::Again { .. }
                );
            let event = if stale {
                refused(format!("it was meant for run {}, but this is run {}", request.run, self.record.run))
            } else {
                self.grant(&request.by, at, request.kind)?
            };
            let is_stop = matches!(event, Event::StopRequested { .. });
            pause_points::at(Point::RequestGranted);
            self.note_about(
                About { out: self.heard(), request: Some(request.id), inbox: Some(end), ..About::default() },
                event,
            )?;
            if is_stop {
                // Synced before any signal: from here on this session is not started again, whatever happens.
                self.journal.sync()?;
                pause_points::at(Point::StopSynced);
            }
        }
        Ok(())
    }

    /// How far the agent's output has been understood; this gives what people say its place within the output.
    pub(super) fn heard(&self) -> Option<u64> {
        self.reader.hears_output().then_some(self.state.output.understood)
    }

    fn grant(&mut self, by: &str, at: u64, kind: RequestKind) -> Result<Event, KeeperError> {
        let by = by.to_owned();
        Ok(match kind {
            RequestKind::Message { now, .. } => match self.record.plan.channel {
                Channel::Command => refused("a command takes no messages".to_owned()),
                Channel::Lines(_) | Channel::Tty(_) => {
                    Event::Accepted { n: self.state.mail.accepted + 1, place: at, by, now }
                }
            },
            RequestKind::Again { n } => match self.state.mail.maybe_delivered.iter().find(|message| message.n == n) {
                Some(message) => Event::Returned { n, place: message.at },
                None => refused(format!("message {n} is not one that may have been delivered")),
            },
            RequestKind::Withdraw { n } => {
                if self.state.mail.queue.iter().chain(&self.state.mail.maybe_delivered).any(|message| message.n == n) {
                    Event::Withdrawn { n, by }
                } else if self.state.feeding().is_some_and(|message| message.n == n) {
                    refused(format!("message {n} is just being delivered"))
                } else if n > self.state.mail.accepted || n == 0 {
                    refused(format!("there is no message {n}"))
                } else {
                    refused(format!("message {n} is no longer waiting"))
                }
            }
            RequestKind::Answer { request, allow, always, text } => {
                self.answer(by, request, &Answer { allow, always, text })?
            }
            RequestKind::Ask { ask } => match &self.session.job {
                Some(_) => Event::Asked { ask },
                None => refused("only a job asks by a request".to_owned()),
            },
            RequestKind::Interrupt if self.state.turn_running() => Event::InterruptRequested { by, why: None },
            RequestKind::Interrupt => refused("no turn is running".to_owned()),
            RequestKind::GoOn if self.state.phase() == Phase::Waiting => Event::WaitOver { by },
            RequestKind::GoOn => refused("it does not wait".to_owned()),
            RequestKind::Stop { how, grace_ms, why } => Event::StopRequested { by, why, how, grace_ms },
            RequestKind::Unknown => refused("this version of ostler does not know the request".to_owned()),
        })
    }

    fn answer(&mut self, by: String, request: Option<String>, answer: &Answer) -> Result<Event, KeeperError> {
        let asked = match &request {
            Some(request) => self.state.asks().iter().find(|ask| ask.request == *request),
            None => self.state.asks().first(),
        };
        let Some(ask) = asked.cloned() else {
            return Ok(refused(match request.map(|request| self.who_answered(&request)).transpose()?.flatten() {
                Some(by) => format!("it was already answered by {by}"),
                None => match self.state.asks().first() {
                    Some(open) => format!("there is no such question; the open one is {}", open.request),
                    None => "it is not asking anything".to_owned(),
                },
            }));
        };
        if self.state.breaks_off() {
            return Ok(refused("its turn is being interrupted".to_owned()));
        }
        if self.record.plan.mode() == Mode::Terminal {
            let why = format!("it asks on its own screen; answer it there: ostler attach {}", self.session.id);
            return Ok(refused(why));
        }
        let always = if answer.allow && answer.always { self.agent.longer(&ask) } else { None };
        if answer.always && always.is_none() {
            return Ok(refused("it offers nothing to allow for longer; allow it once, without --always".to_owned()));
        }
        // A job reads the answer in its inbox, where it was written.
        if self.session.job.is_none() {
            let Some(bytes) = self.agent.answer(&ask, answer) else {
                return Ok(refused("it takes no text with that; use --allow or --deny alone".to_owned()));
            };
            self.input.put(&answer_name(&ask), bytes)?;
        }
        Ok(Event::Answered { request: ask.request, by, allowed: answer.allow, always })
    }
}

impl Keeper {
    /// Who answered a question that is not open any more.
    fn who_answered(&self, asked: &str) -> Result<Option<String>, KeeperError> {
        let who = |event: &Event| match event {
            Event::Answered { request, by, .. } if request == asked => Some(by.clone()),
            _ => None,
        };
        match self.journal.unwritten().find_map(|entry| who(&entry.event)) {
            Some(by) => Ok(Some(by)),
            None => Ok(journal::newest(self.folder.dir(), |entry| who(&entry.event))?),
        }
    }
}

/// The name of an answer in the agent's input. One name for each question, so that only one answer is put in.
pub(super) fn answer_name(ask: &Ask) -> String {
    format!("answer-{}", ask.request)
}

fn refused(why: String) -> Event {
    Event::Refused { why }
}
