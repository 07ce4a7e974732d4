//! The record of a driver: what was done, by key. Each step is on the disk before it is taken.

use crate::error::JobError;
use ostler_core::id::SessionId;
use ostler_engine::job::{CHILD, LINE};
use ostler_engine::{Engine, Place};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The fields of a step, besides its child or line.
const KEY: &str = "key";
const REQUEST: &str = "request";
const VALUE: &str = "value";

/// The steps that were recorded.
#[derive(Debug, Default)]
pub struct Steps {
    children: HashMap<String, SessionId>,
    requests: HashMap<String, String>,
    values: HashMap<String, Value>,
    /// How often each line is in the record.
    lines: HashMap<String, usize>,
    /// How often this driver has reported each line. A driver starts from the beginning, and not always in the same
    /// order: what it waits for may have ended in another order.
    said: HashMap<String, usize>,
}

impl Steps {
    /// Reads the record. Of two steps with the same key the first counts: it is the one that was taken.
    pub fn read(engine: &Engine, place: &Place) -> Result<Steps, JobError> {
        let mut steps = Steps::default();
        engine.job_steps(place)?.into_iter().for_each(|step| steps.take_in(step));
        Ok(steps)
    }

    fn take_in(&mut self, step: Value) {
        if let Some(line) = step[LINE].as_str() {
            *self.lines.entry(line.to_owned()).or_default() += 1;
            return;
        }
        let Some(key) = step[KEY].as_str().map(str::to_owned) else { return };
        if let Some(id) = step[CHILD].as_str().and_then(SessionId::parse) {
            self.children.entry(key).or_insert(id);
        } else if let Some(request) = step[REQUEST].as_str() {
            self.requests.entry(key).or_insert_with(|| request.to_owned());
        } else if let Some(value) = step.get(VALUE) {
            self.values.entry(key).or_insert_with(|| value.clone());
        }
    }

    fn write(&mut self, engine: &Engine, place: &Place, key: &str, field: &str, value: Value) -> Result<(), JobError> {
        let mut step = Map::new();
        step.insert("at".to_owned(), json!(ostler_engine::process::now()));
        step.insert(KEY.to_owned(), json!(key));
        step.insert(field.to_owned(), value);
        let step = Value::Object(step);
        engine.note_job_step(place, &step)?;
        self.take_in(step);
        Ok(())
    }

    /// Notes a progress line, unless an earlier driver has noted it. True when it was noted.
    pub fn say(&mut self, engine: &Engine, place: &Place, line: &str) -> Result<bool, JobError> {
        let is_new = self.is_new(line);
        if is_new {
            let step = json!({ "at": ostler_engine::process::now(), LINE: line });
            engine.note_job_step(place, &step)?;
            self.take_in(step);
        }
        Ok(is_new)
    }

    /// Whether no driver has reported anything yet.
    pub fn has_no_lines(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether this driver has now reported the line more often than the record has it.
    fn is_new(&mut self, line: &str) -> bool {
        let said = self.said.entry(line.to_owned()).or_default();
        *said += 1;
        *said > self.lines.get(line).copied().unwrap_or(0)
    }

    /// The id of a child, reserved under this key.
    pub fn child(&mut self, engine: &Engine, place: &Place, key: &str) -> Result<SessionId, JobError> {
        if let Some(id) = self.children.get(key) {
            return Ok(*id);
        }
        let id = engine.reserve_session();
        self.write(engine, place, key, CHILD, json!(id))?;
        Ok(id)
    }

    /// The id that was reserved for a child under this key, if one was.
    pub fn reserved(&self, key: &str) -> Option<SessionId> {
        self.children.get(key).copied()
    }

    /// The id of a message, reserved under this key.
    pub fn request(&mut self, engine: &Engine, place: &Place, key: &str) -> Result<String, JobError> {
        if let Some(id) = self.requests.get(key) {
            return Ok(id.clone());
        }
        let id = engine.reserve_request();
        self.write(engine, place, key, REQUEST, json!(id))?;
        Ok(id)
    }

    /// What was noted under this key.
    pub fn noted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, JobError> {
        let read = |value: &Value| serde_json::from_value(value.clone());
        let error = |error| JobError::Step { key: key.to_owned(), error };
        self.values.get(key).map(read).transpose().map_err(error)
    }

    /// Notes a value, unless the key has one already.
    pub fn note<T: Serialize>(&mut self, engine: &Engine, place: &Place, key: &str, value: &T) -> Result<(), JobError> {
        if self.values.contains_key(key) {
            return Ok(());
        }
        let value = serde_json::to_value(value).map_err(|error| JobError::Step { key: key.to_owned(), error })?;
        self.write(engine, place, key, VALUE, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_begins_again_says_what_is_new_in_whatever_order() {
        let mut steps = Steps::default();
        for line in ["a: started", "b: started", "b: was interrupted", "a: succeeded"] {
            steps.take_in(json!({ LINE: line }));
        }
        let again = ["b: started", "b: was interrupted", "b: was interrupted", "a: succeeded", "b: succeeded"];
        let new: Vec<&str> = again.into_iter().filter(|line| steps.is_new(line)).collect();
        assert_eq!(new, ["b: was interrupted", "b: succeeded"]);
    }
}
