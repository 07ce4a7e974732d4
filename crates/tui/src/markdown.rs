//! Markdown as rows of a terminal. The text is clean before it is parsed. A line break in the text stays a line break:
//! agents write for terminals.

use crate::code::Language;
use crate::table::{Cell, table};
use crate::theme::Theme;
use crate::wrap::{Break, spans_width, wrap};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

/// The rows of this text.
pub fn markdown(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        columns,
        theme,
        lines: Vec::new(),
        inside: Vec::new(),
        text: Vec::new(),
        styles: vec![Style::new()],
        links: Vec::new(),
        lists: Vec::new(),
        code: None,
        rows: None,
        begins: true,
    };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.flush();
    writer.lines
}

/// What a block is in: a quote, or an item of a list.
struct Container {
    /// Before the first row, until that is written.
    mark: Option<Span<'static>>,
    /// Before the other rows.
    rest: Span<'static>,
}

struct Code {
    language: String,
    text: String,
}

struct Rows {
    alignments: Vec<Alignment>,
    all: Vec<Vec<Cell>>,
}

struct Writer {
    columns: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
    inside: Vec<Container>,
    /// The spans of the line that is being built.
    text: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// The targets of the open links, and where their texts begin.
    links: Vec<(String, usize)>,
    /// The next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    code: Option<Code>,
    rows: Option<Rows>,
    /// Nothing has been written in the innermost container yet.
    begins: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.push(&text, Style::new()),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                // Without colour the signs mark it as code.
                let shown = if self.theme.colour { text.to_string() } else { format!("`{text}`") };
                self.push(&shown, self.theme.code());
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (number, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if number > 0 {
                        self.flush();
                    }
                    self.push(line, self.theme.dim());
                }
            }
            Event::SoftBreak | Event::HardBreak if self.rows.is_some() => self.push(" ", Style::new()),
            Event::SoftBreak | Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.room().min(40));
                self.push(&rule, self.theme.dim());
                self.flush();
            }
            Event::TaskListMarker(done) => self.push(if done { "☑ " } else { "☐ " }, Style::new()),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), Style::new()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.style(self.theme.heading(number(level)));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Span::styled("▎ ", self.theme.dim());
                self.inside.push(Container { mark: None, rest: bar });
                self.style(self.theme.italic());
                self.begins = true;
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(name) => name.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.flush();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let rest = Span::raw(" ".repeat(crate::wrap::width(&mark)));
                self.inside.push(Container { mark: Some(Span::styled(mark, self.theme.dim())), rest });
                self.begins = true;
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.rows = Some(Rows { alignments, all: Vec::new() });
            }
            Tag::TableHead => {
                self.style(self.theme.bold());
                self.new_row();
            }
            Tag::TableRow => self.new_row(),
            Tag::Emphasis => self.style(self.theme.italic()),
            Tag::Strong => self.style(self.theme.bold()),
            Tag::Strikethrough => self.style(self.theme.crossed_out()),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.text.len()));
                self.style(self.theme.link());
            }
            Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.text.len()));
                self.style(self.theme.italic());
            }
            Tag::HtmlBlock => self.begin_block(),
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.inside.pop();
                self.begins = false;
            }
            TagEnd::CodeBlock => self.write_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                // An item without text still has its mark.
                if self.inside.last().is_some_and(|item| item.mark.is_some()) && self.text.is_empty() {
                    self.text.push(Span::raw(""));
                }
                self.flush();
                self.inside.pop();
                self.begins = false;
            }
            TagEnd::Table => {
                if let Some(rows) = self.rows.take() {
                    let lines = table(&rows.all, &rows.alignments, self.room(), self.theme);
                    self.write(lines);
                }
            }
            TagEnd::TableHead => {
                self.styles.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.rows.as_mut().and_then(|rows| rows.all.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Writes the target after the link, so that a person can see when the text shows another address.
    fn end_link(&mut self) {
        self.styles.pop();
        if let Some((address, start)) = self.links.pop() {
            let spans = self.text.get(start..).unwrap_or_default();
            let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
            let known = address.strip_prefix("mailto:").unwrap_or(&address);
            if text != known && !address.is_empty() {
                self.push(&format!(" ({address})"), self.theme.dim());
            }
        }
    }

    fn new_row(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.all.push(Vec::new());
        }
    }

    fn style(&mut self, more: Style) {
        let now = self.styles.last().copied().unwrap_or_default();
        self.styles.push(now.patch(more));
    }

    fn push(&mut self, text: &str, more: Style) {
        let style = self.styles.last().copied().unwrap_or_default().patch(more);
        self.text.push(Span::styled(text.to_owned(), style));
    }

    /// Ends the line before, and adds a blank row unless the container begins here.
    fn begin_block(&mut self) {
        self.flush();
        if !self.begins && !self.lines.is_empty() {
            let before: Vec<_> = self.inside.iter().map(|container| container.rest.clone()).collect();
            let blank = before.iter().all(|span| span.content.trim().is_empty());
            self.lines.push(if blank { Line::default() } else { Line::from(before) });
        }
        self.begins = false;
    }

    fn room(&self) -> usize {
        let before: usize = self.inside.iter().map(|container| crate::wrap::width(&container.rest.content)).sum();
        self.columns.saturating_sub(before).max(1)
    }

    /// Writes the line that was built.
    fn flush(&mut self) {
        if self.text.is_empty() || self.rows.is_some() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let (first, rest) = self.before();
        self.lines.extend(wrap(&text, self.columns, &first, &rest, Break::Words));
        self.begins = false;
        for (_, start) in &mut self.links {
            *start = 0;
        }
    }

    /// What is written before the next row, and before the rows after it.
    fn before(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        // In a window with no room for text beside its containers, their marks are left out.
        let narrow = self.room() < 8;
        let mut first = Vec::new();
        let mut rest = Vec::new();
        for container in &mut self.inside {
            first.push(container.mark.take().unwrap_or_else(|| container.rest.clone()));
            rest.push(container.rest.clone());
        }
        if narrow { (first.into_iter().rev().take(1).collect(), Vec::new()) } else { (first, rest) }
    }

    fn write(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let (mut spans, _) = self.before();
            spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
            self.lines.push(Line::from(spans));
        }
        self.begins = false;
    }

    /// Code is indented by two columns, without a frame, so that it can be copied.
    fn write_code(&mut self) {
        let Some(Code { language, text }) = self.code.take() else {
            return;
        };
        let (mut in_comment, mut lines) = (false, Vec::new());
        let known = Language::named(&language);
        for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
            let spans = match &known {
                Some(known) => known.colour(line, self.theme, &mut in_comment),
                None if language == "diff" || language == "patch" => vec![diff_line(line, self.theme)],
                None => vec![Span::styled(line.to_owned(), self.theme.code())],
            };
            lines.extend(wrap(&spans, self.room(), &[Span::raw("  ")], &[Span::raw("  ")], Break::Anywhere));
        }
        lines.iter_mut().filter(|line| spans_width(&line.spans) == 2).for_each(|line| line.spans.clear());
        self.write(lines);
    }
}

/// A line of a unified diff.
pub fn diff_line(line: &str, theme: Theme) -> Span<'static> {
    let style = match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => theme.bold(),
        Some(b'+') => theme.good(),
        Some(b'-') => theme.bad(),
        Some(b'@') => theme.dim(),
        Some(_) | None => theme.plain(),
    };
    Span::styled(line.to_owned(), style)
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::style::Modifier;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        markdown(text, columns, Theme { colour: true })
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn blocks_stand_apart_and_lists_hang() {
        let text =
            "# Head\nFirst **bold** and `code`.\n- one\n- two is longer than the row\n  1. below\n  2. more\n\nend";
        assert_eq!(
            rows(text, 24),
            [
                "Head",
                "",
                "First bold and code.",
                "",
                "• one",
                "• two is longer than the",
                "  row",
                "  1. below",
                "  2. more",
                "",
                "end"
            ]
        );
    }

    #[test]
    fn weight_and_colour_say_what_a_text_is() {
        let styles = |colour, text| {
            let lines = markdown(text, 80, Theme { colour });
            lines[0].spans.iter().map(|span| (span.content.to_string(), span.style)).collect::<Vec<_>>()
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        assert_eq!(styles(true, "**b** `c`")[0], ("b".to_owned(), bold));
        assert_eq!(styles(true, "`c`")[0], ("c".to_owned(), Theme { colour: true }.code()));
        assert_eq!(styles(false, "`c`")[0].0, "`c`", "without colour the signs stay");
        assert_eq!(styles(true, "*i*")[0].1, Style::new().add_modifier(Modifier::ITALIC));
    }

    #[test]
    fn code_is_indented_and_keeps_its_lines() {
        assert_eq!(
            rows("x\n```rust\nfn a() {\n\n    b()\n}\n```\ny", 40),
            ["x", "", "  fn a() {", "", "      b()", "  }", "", "y"]
        );
        assert_eq!(rows("```\n123456789\n```", 8), ["  123456", "  789"]);
    }

    #[test]
    fn tables_fit_or_become_lists() {
        let text = "| Name | What it is |\n|---|---:|\n| a | short |\n| long name | b |\n";
        assert_eq!(
            rows(text, 40),
            ["Name      │ What it is", "──────────┼───────────", "a         │      short", "long name │          b"]
        );
        assert_eq!(rows(text, 18)[0..2], ["Name     │ What it", "         │      is"]);
        assert_eq!(
            rows(text, 10),
            ["Name: a", "What it", "  is:", "  short", "", "Name: long", "  name", "What it", "  is: b"]
        );
    }

    #[test]
    fn quotes_have_a_bar_and_links_show_where_they_lead() {
        assert_eq!(rows("> said\n> so\n>\n> twice", 40), ["▎ said", "▎ so", "▎", "▎ twice"]);
        assert_eq!(
            rows("[here](http://a.example/x) <http://b.example>", 60),
            ["here (http://a.example/x) http://b.example"]
        );
        assert_eq!(rows("- [x] done\n- [ ] open", 60), ["• ☑ done", "• ☐ open"]);
        assert_eq!(rows("a\nb<br>c", 60), ["a", "b<br>c"]);
    }
}
