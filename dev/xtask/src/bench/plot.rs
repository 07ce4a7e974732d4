//! The table as a picture for the README: a few bars for each row. Ours comes first, with the length 1; the others are
//! as many times as long as they need more time or memory. Shorter is better everywhere.
//!
//! The file is looked at on white and on black pages, and an image does not know which: there is no background, and
//! every colour was chosen to be readable on both.

use std::fmt::Write as _;

use super::measure::{Contender, Samples};
use super::row::Row;

const PANEL_WIDTH: f64 = 440.0;
const PANELS_PER_LINE: usize = 2;
const GAP: f64 = 24.0;
const NAME_WIDTH: f64 = 92.0;
const FIGURE_WIDTH: f64 = 108.0;
const TITLE_HEIGHT: f64 = 30.0;
const BAR_STEP: f64 = 22.0;
const BAR_HEIGHT: f64 = 13.0;
/// Bars longer than so many times ours are cut, with a gap that shows it; the figure beside them says how long.
const LONGEST: f64 = 8.0;

const STYLE: &str = "\
text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #6e7781; } \
.title { font-weight: 600; font-size: 13px; } .ours { fill: #2f81f7; } .theirs { fill: #8c959f; opacity: .6; } \
.name-ours { fill: #2f81f7; font-weight: 600; } .axis { stroke: #6e7781; opacity: .5; }";

struct Bar {
    who: Contender,
    ratio: f64,
    figure: String,
}

struct Panel<'a> {
    title: &'a str,
    bars: Vec<Bar>,
}

pub fn svg(table: &[Row]) -> String {
    // A bar alone compares nothing: rows without a second figure are in the table only.
    let panels: Vec<Panel<'_>> = table.iter().map(panel).filter(|panel| panel.bars.len() > 1).collect();
    let mut body = String::new();
    let mut top = 34.0;
    for line in panels.chunks(PANELS_PER_LINE) {
        let mut left = 0.0;
        let mut height: f64 = 0.0;
        for panel in line {
            draw_panel(&mut body, panel, left, top);
            left += PANEL_WIDTH + GAP;
            height = height.max(panel_height(panel));
        }
        top += height + GAP;
    }
    let width = PANEL_WIDTH * 2.0 + GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {top}\" width=\"{width}\" height=\"{top}\" \
         role=\"img\" aria-label=\"ostler beside dtach, tmux, shpool and pueue: time and memory, shorter is better\">\n\
         <style>{STYLE}</style>\n\
         <text x=\"0\" y=\"14\">Times what ostler takes: shorter is better. Medians of one run; figures and how \
         they were measured in docs/benchmarks.md.</text>\n{body}</svg>\n"
    )
}

fn panel(row: &Row) -> Panel<'_> {
    let bar = |who: Contender, samples: &Samples| {
        let ratio = row.ratio_to_ours(who)?;
        ratio.is_finite().then(|| Bar { who, ratio, figure: row.unit.show(samples.median()) })
    };
    let measured = row.measured.iter().filter_map(|one| bar(one.who, one.samples.as_ref().ok()?));
    Panel { title: &row.title, bars: measured.collect() }
}

fn panel_height(panel: &Panel<'_>) -> f64 {
    panel.bars.iter().fold(TITLE_HEIGHT, |height, _| height + BAR_STEP)
}

// Writing to a String cannot fail.
fn draw_panel(svg: &mut String, panel: &Panel<'_>, left: f64, top: f64) {
    let room = PANEL_WIDTH - NAME_WIDTH - FIGURE_WIDTH;
    let longest = panel.bars.iter().map(|bar| bar.ratio).fold(1.0, f64::max).min(LONGEST);
    let start = left + NAME_WIDTH;
    let _ = writeln!(svg, "<text class=\"title\" x=\"{left}\" y=\"{:.0}\">{}</text>", top + 14.0, escape(panel.title));
    let mut y = top + TITLE_HEIGHT;
    for bar in &panel.bars {
        let (class, name_class) = match bar.who {
            Contender::Ostler => ("ours", "name-ours"),
            Contender::Dtach
            | Contender::Tmux
            | Contender::TmuxCold
            | Contender::Shpool
            | Contender::Pueue
            | Contender::PueueFollow
            | Contender::Cat
            | Contender::Ripgrep => ("theirs", "name"),
        };
        let length = (bar.ratio.min(longest) / longest * room).max(1.5);
        let text_y = y + BAR_HEIGHT - 2.5;
        let _ = writeln!(
            svg,
            "<text class=\"{name_class}\" x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{}</text>",
            start - 8.0,
            bar.who.name()
        );
        draw_bar(svg, class, (start, y, length), bar.ratio > LONGEST);
        let _ = writeln!(
            svg,
            "<text class=\"{name_class}\" x=\"{:.1}\" y=\"{text_y:.1}\">{}</text>",
            start + length + 7.0,
            label(bar)
        );
        y += BAR_STEP;
    }
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{start:.1}\" y1=\"{:.1}\" x2=\"{start:.1}\" y2=\"{:.1}\"/>",
        top + TITLE_HEIGHT - 4.0,
        y - BAR_STEP + BAR_HEIGHT + 4.0
    );
}

fn draw_bar(svg: &mut String, class: &str, (x, y, length): (f64, f64, f64), cut: bool) {
    let mut piece = |x: f64, length: f64| {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
        );
    };
    if cut {
        piece(x, length - 24.0);
        piece(x + length - 19.0, 19.0);
    } else {
        piece(x, length);
    }
}

/// The figure, and how it compares.
fn label(bar: &Bar) -> String {
    match bar.who {
        Contender::Ostler => bar.figure.clone(),
        Contender::Dtach
        | Contender::Tmux
        | Contender::TmuxCold
        | Contender::Shpool
        | Contender::Pueue
        | Contender::PueueFollow
        | Contender::Cat
        | Contender::Ripgrep => {
            // Two digits that mean something, whatever the size.
            let decimals = match bar.ratio {
                large if large >= 9.95 => 0,
                medium if medium >= 0.995 => 1,
                _ => 2,
            };
            format!("{} · {:.decimals$}×", bar.figure, bar.ratio)
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::Unit;
    use crate::bench::row::tests::row;

    #[test]
    fn a_bar_that_is_far_too_long_is_cut_and_its_label_says_how_long_it_is() {
        let picture = svg(&[row(Unit::Milliseconds, &[(Contender::Ostler, 2.0), (Contender::Pueue, 1000.0)])]);
        assert_eq!(picture.matches("<rect").count(), 3);
        assert!(picture.contains("1.00 s · 500×"), "{picture}");
    }

    #[test]
    fn a_row_without_another_tool_is_not_drawn() {
        assert!(!svg(&[row(Unit::Milliseconds, &[(Contender::Ostler, 2.0)])]).contains("<rect"));
    }
}
