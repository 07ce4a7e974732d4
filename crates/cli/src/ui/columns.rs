//! Which columns of a table a window has room for, and how wide each of them is.

use super::table::Cell;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub head: &'static str,
    /// With less than this it is not worth showing; shorter contents need less.
    pub min: usize,
    /// The column never gets more than this, however wide the window is.
    pub max: usize,
    /// When there is no room for all, the columns with the highest number are left out first; 0 is never left out.
    pub spare: u8,
}

/// Between two columns.
pub const GAP: usize = 2;

/// Leaves out the columns for which there is no room and cuts the cells of the others. `rows` have a cell for each
/// column. Without a width nothing is left out, so scripts always get the same columns. Returns whether the last column
/// is still there.
pub fn fit(columns: &[Column], rows: &mut [Vec<Cell>], width: Option<usize>) -> bool {
    let natural: Vec<usize> = (0..columns.len())
        .map(|place| rows.iter().map(|row| row[place].width()).max().unwrap_or(0).min(columns[place].max))
        .collect();
    let Some(width) = width else {
        cut(rows, &natural.iter().map(|&width| Some(width)).collect::<Vec<_>>());
        return true;
    };
    let needs = |place: usize| natural[place].min(columns[place].min);
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let taken = |kept: &[usize]| kept.iter().map(|&place| needs(place) + GAP).sum::<usize>().saturating_sub(GAP);
    while taken(&kept) > width {
        let Some(first) =
            kept.iter().copied().filter(|&place| columns[place].spare > 0).max_by_key(|&p| columns[p].spare)
        else {
            break;
        };
        kept.retain(|&place| place != first);
    }
    let mut widths: Vec<Option<usize>> = vec![None; columns.len()];
    for &place in &kept {
        widths[place] = Some(needs(place));
    }
    // The remaining width goes to the columns that are cut, one by one in turn.
    let mut left = width.saturating_sub(taken(&kept));
    loop {
        let before = left;
        for &place in &kept {
            if let Some(has) = widths[place].as_mut().filter(|has| left > 0 && **has < natural[place]) {
                *has += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    cut(rows, &widths);
    widths.last().is_some_and(Option::is_some)
}

/// Cuts each cell to its width; a column without a width is removed.
fn cut(rows: &mut [Vec<Cell>], widths: &[Option<usize>]) {
    for row in rows {
        let cells = std::mem::take(row).into_iter().zip(widths);
        *row = cells.filter_map(|(cell, width)| width.map(|width| cell.cut(width))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::table::lay_out;

    const COLUMNS: [Column; 3] = [
        Column { head: "NAME", min: 4, max: 10, spare: 0 },
        Column { head: "COST", min: 5, max: 5, spare: 2 },
        Column { head: "LAST", min: 8, max: 30, spare: 1 },
    ];

    fn shown(width: Option<usize>) -> String {
        let mut rows = vec![
            COLUMNS.map(|column| Cell::new(column.head)).into(),
            vec![
                Cell::new("a name that is long"),
                Cell::new("$1.00"),
                Cell::new("twelve words and then some more of it"),
            ],
            vec![Cell::new("short"), Cell::new(""), Cell::new("ok")],
        ];
        fit(&COLUMNS, &mut rows, width);
        lay_out(&rows, width)
    }

    #[test]
    fn every_line_fits_and_what_matters_least_goes_first() {
        insta::assert_snapshot!([None, Some(40), Some(20), Some(14), Some(8)].map(shown).join("\n"), @r"
        NAME        COST   LAST
        a name th…  $1.00  twelve words and then some mo…
        short              ok

        NAME        COST   LAST
        a name th…  $1.00  twelve words and the…
        short              ok

        NAME     LAST
        a name…  twelve wor…
        short    ok

        NAME  LAST
        a n…  twelve …
        sho…  ok

        NAME
        a name …
        short
        ");
    }
}
