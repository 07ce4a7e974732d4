//! The content of a message, in the shape that all agents share: a text, or a list of parts of which some are texts.

use crate::any_json::AnyJson;
use serde::Deserialize;

pub type Content<'a> = AnyJson<'a, Part<'a>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Part<'a> {
    #[serde(borrow)]
    pub text: AnyJson<'a>,
}

/// The texts of the content, in order.
pub fn texts<'c>(content: &'c Content<'_>) -> impl Iterator<Item = &'c str> {
    let parts = content.list().iter().filter_map(|part| part.text.text());
    content.text().into_iter().chain(parts)
}

/// Removes from `wanted` the marks that equal one of the texts, apart from white space around them. One text proves one
/// message: an answer that repeats the question is not proven by the question.
pub fn remove_found(content: &Content<'_>, wanted: &mut Vec<&str>) {
    for text in texts(content) {
        if let Some(found) = wanted.iter().position(|mark| mark.trim() == text.trim()) {
            wanted.remove(found);
        }
    }
}
