//! The conversation in the rows of opencode's database.

use super::output::ToolState;
use crate::any_json::AnyJson;
use crate::recorded::{Items, Recorded, RecordedRow, Recording, time};
use crate::stream_json::tool_detail;
use ostler_core::fact::{Call, Fact};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    role: AnyJson<'a>,
    time: AnyJson<'a, Times<'a>>,
    /// Set on the summary that replaces everything before it.
    summary: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Times<'a> {
    #[serde(borrow)]
    created: AnyJson<'a>,
    start: AnyJson<'a>,
    end: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    text: AnyJson<'a>,
    synthetic: AnyJson<'a>,
    tool: AnyJson<'a>,
    #[serde(rename = "callID")]
    call_id: AnyJson<'a>,
    state: AnyJson<'a, ToolState<'a>>,
    time: AnyJson<'a, Times<'a>>,
}

#[derive(Debug, Default)]
pub struct Rows;

impl Recording for Rows {
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        if let Some(row) = RecordedRow::of_line(line) {
            self.row(&row, items);
        }
    }

    fn row(&mut self, row: &RecordedRow<'_>, items: &mut Vec<Recorded>) {
        let message = serde_json::from_slice::<Message<'_>>(row.message_data).unwrap_or_default();
        let part = serde_json::from_slice::<Part<'_>>(row.part_data).unwrap_or_default();
        let begun = part.time.object().and_then(|times| time(&times.start));
        let at = begun.or_else(|| message.time.object().and_then(|times| time(&times.created)));
        let mut items = Items { at, items };
        let text = part.text.text().unwrap_or_default();
        match part.kind.text() {
            Some("text") if part.synthetic.flag() == Some(true) => {}
            Some("text") if message.role.is("user") => items.told(text),
            Some("text") if message.summary.flag() == Some(true) => {
                items.thought("the conversation was compacted here; the agent continues with a summary");
            }
            Some("text") => items.said(text),
            Some("reasoning") => items.thought(text),
            Some("tool") => tool(&part, &mut items),
            Some(_) | None => {}
        }
    }

    fn is_whole(&self, row: &RecordedRow<'_>) -> bool {
        let message = serde_json::from_slice::<Message<'_>>(row.message_data).unwrap_or_default();
        let part = serde_json::from_slice::<Part<'_>>(row.part_data).unwrap_or_default();
        let has_end = || part.time.object().is_some_and(|times| times.end.count().is_some());
        match part.kind.text() {
            Some("text" | "reasoning") => message.role.is("user") || has_end(),
            Some("tool") => part.state.object().is_some_and(is_over),
            Some(_) | None => true,
        }
    }
}

fn is_over(state: &ToolState<'_>) -> bool {
    matches!(state.status.text(), Some("completed" | "error"))
}

fn tool(part: &Part<'_>, items: &mut Items<'_>) {
    let none = ToolState::default();
    let state = part.state.object().unwrap_or(&none);
    let id = part.call_id.text().map(str::to_owned);
    items.fact(Fact::ToolCalled {
        name: part.tool.text().unwrap_or("tool").to_owned(),
        detail: tool_detail(&state.input),
        call: Call { id: id.clone(), ..Call::default() },
    });
    if is_over(state) {
        let text = state.output.text().or(state.error.text()).unwrap_or_default().to_owned();
        items.fact(Fact::ToolReturned { text, failed: state.failed(), call: id });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::What;

    fn read(role: &str, part: &str) -> (Vec<What>, bool) {
        let message = format!(r#"{{"role":"{role}","time":{{"created":1794809265000}}}}"#);
        let row = RecordedRow { message_data: message.as_bytes(), part_data: part.as_bytes() };
        let mut items = Vec::new();
        Rows.row(&row, &mut items);
        assert!(items.iter().all(|item| item.at.is_some()));
        (items.into_iter().map(|item| item.what).collect(), Rows.is_whole(&row))
    }

    #[test]
    fn a_part_that_still_grows_is_known() {
        let said = |text: &str| vec![What::Agent(Fact::Said { text: text.to_owned() })];
        assert_eq!(read("assistant", r#"{"type":"text","text":"do","time":{"start":1}}"#), (said("do"), false));
        assert_eq!(
            read("assistant", r#"{"type":"text","text":"done","time":{"start":1,"end":2}}"#),
            (said("done"), true)
        );
        let told = vec![What::Told { text: "fix it".to_owned() }];
        assert_eq!(read("user", r#"{"type":"text","text":"fix it"}"#), (told, true));
        let tool = |state: &str| read("assistant", &format!(r#"{{"type":"tool","tool":"bash","state":{state}}}"#));
        assert_eq!(tool(r#"{"status":"running","input":{"command":"ls"}}"#).0.len(), 1);
        assert!(!tool(r#"{"status":"running"}"#).1);
        let (items, whole) = tool(r#"{"status":"completed","input":{"command":"ls"},"output":"a.rs"}"#);
        assert!(whole && items.len() == 2, "{items:?}");
        assert_eq!(read("user", r#"{"type":"text","text":"by itself","synthetic":true}"#).0, []);
    }

    #[test]
    fn a_copy_of_rows_tells_the_same() {
        let message = br#"{"role":"assistant"}"#;
        let part = br#"{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"false"},"output":"no","metadata":{"exit":1}}}"#;
        let row = RecordedRow { message_data: message, part_data: part };
        let (mut of_row, mut of_line) = (Vec::new(), Vec::new());
        Rows.row(&row, &mut of_row);
        let line = row.as_line().unwrap_or_default();
        Rows.line(line.trim_ascii_end(), &mut of_line);
        assert_eq!(of_line, of_row);
        assert_eq!(of_line.len(), 2, "the call and what came back");
        assert_eq!(RecordedRow { message_data: b"{", part_data: part }.as_line(), None);
    }
}
