//! Removes random differences between two recordings of the same agent: pauses, and the order in which its output, its
//! errors and its transcript are interleaved. A new recording takes both over from the earlier one wherever the
//! contents are the same, so that a diff shows only what an agent says now and did not say before.

use ostler_replay::{Action, Recording, Run, Step};

/// A pause that has become this much longer or shorter is worth a line in a diff.
const MUCH: u64 = 10;
const LONG_MS: u64 = 2000;

/// Streams of events that are independent of each other. Within one of them the order is the agent's own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strand {
    /// Input and output, where one follows from the other.
    Dialogue,
    Complaints,
    Transcript,
}

const STRANDS: [Strand; 3] = [Strand::Dialogue, Strand::Complaints, Strand::Transcript];

fn strand(action: &Action) -> Strand {
    match action {
        Action::Reads(_) | Action::InputEnds | Action::Interrupted | Action::Prints(_) | Action::Ends(_) => {
            Strand::Dialogue
        }
        Action::PrintsError(_) => Strand::Complaints,
        Action::Saves(_) => Strand::Transcript,
    }
}

/// The positions of the steps, one strand after the other.
pub fn strand_by_strand(steps: &[Step]) -> Vec<usize> {
    STRANDS.into_iter().flat_map(|one| places(steps, one)).collect()
}

fn places(steps: &[Step], of: Strand) -> Vec<usize> {
    (0..steps.len()).filter(|&place| strand(&steps[place].action) == of).collect()
}

/// Gives a new recording the order and the pauses of the earlier one, where the contents are the same.
pub fn keep(new: &mut Recording, before: &Recording) {
    for (run, before) in new.runs.iter_mut().zip(&before.runs) {
        keep_order(run, before);
    }
    round(new);
    for (run, before) in new.runs.iter_mut().zip(&before.runs) {
        let every = |run: &Run| (0..run.steps.len()).collect::<Vec<_>>();
        for (at, old) in common(&run.steps, &every(run), &before.steps, &every(before)) {
            let (now, then) = (&mut run.steps[at].pause_ms, before.steps[old].pause_ms);
            if !is_of_another_order(*now, then) {
                *now = then;
            }
        }
    }
}

/// Rounds pauses to 1, 2 or 5 times a power of ten, and very short ones to 0.
pub fn round(recording: &mut Recording) {
    for step in recording.runs.iter_mut().flat_map(|run| &mut run.steps) {
        let mut steps = (0..6).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
        step.pause_ms = steps.rfind(|rounded| (5..=step.pause_ms).contains(rounded)).unwrap_or(0);
    }
}

fn is_of_another_order(one: u64, other: u64) -> bool {
    let (short, long) = (one.min(other), one.max(other));
    long > LONG_MS && long > short.saturating_mul(MUCH)
}

/// Puts every step where the same step was before; a new step comes after the step of its strand that it follows.
fn keep_order(run: &mut Run, before: &Run) {
    let mut wanted = vec![0; run.steps.len()];
    for one in STRANDS {
        let (new, old) = (places(&run.steps, one), places(&before.steps, one));
        let same = common(&run.steps, &new, &before.steps, &old);
        let mut last = 0;
        for place in new {
            last = same.iter().find(|(at, _)| *at == place).map_or(last, |(_, old)| *old);
            wanted[place] = last;
        }
    }
    let times = run.steps.iter().scan(0, |time, step| {
        *time += step.pause_ms;
        Some(*time)
    });
    let mut steps: Vec<(usize, u64, Action)> = wanted
        .into_iter()
        .zip(times)
        .zip(&run.steps)
        .map(|((at, time), step)| (at, time, step.action.clone()))
        .collect();
    steps.sort_by_key(|(at, _, _)| *at);
    let mut reached = 0;
    run.steps = steps
        .into_iter()
        .map(|(_, time, action)| {
            let pause_ms = time.saturating_sub(reached);
            reached = reached.max(time);
            Step { pause_ms, action }
        })
        .collect();
}

/// A longest common subsequence of some steps of both recordings, as pairs of positions.
fn common(new: &[Step], these: &[usize], old: &[Step], those: &[usize]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| new[these[i]].action == old[those[j]].action;
    let width = those.len() + 1;
    let mut longest = vec![0u32; (these.len() + 1) * width];
    for i in (0..these.len()).rev() {
        for j in (0..those.len()).rev() {
            longest[i * width + j] = if same(i, j) {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut pairs, mut i, mut j) = (Vec::new(), 0, 0);
    while i < these.len() && j < those.len() {
        if same(i, j) {
            pairs.push((these[i], those[j]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_replay::Text;

    /// `>a`: the agent prints a; `+a`: it saves a.
    fn recording(steps: &[(u64, &str)]) -> Recording {
        let step = |(pause_ms, words): &(u64, &str)| {
            let (kind, text) = words.split_at(1);
            let text = Text::line(text);
            let action = if kind == "+" { Action::Saves(text) } else { Action::Prints(text) };
            Step { pause_ms: *pause_ms, action }
        };
        Recording {
            agent: String::new(),
            version: String::new(),
            scene: String::new(),
            conversation: String::new(),
            runs: vec![Run { steps: steps.iter().map(step).collect(), ..Run::default() }],
        }
    }

    #[test]
    fn what_says_the_same_is_the_same_whatever_the_order_and_the_pauses() {
        let before = recording(&[(200, ">a"), (5, "+x"), (10, ">b"), (100, "+y")]);
        let mut new = recording(&[(700, ">a"), (20, ">b"), (50, "+x"), (0, "+y")]);
        keep(&mut new, &before);
        assert_eq!(new, before);
    }

    #[test]
    fn what_is_new_stands_behind_what_it_follows_and_what_took_much_longer_shows() {
        let before = recording(&[(200, ">a"), (5, "+x"), (10, ">b"), (100, "+y")]);
        let mut new = recording(&[(200, ">a"), (20, ">new"), (5000, ">b"), (0, "+x"), (0, "+more"), (100, "+y")]);
        keep(&mut new, &before);
        let kept = [(200, ">a"), (20, ">new"), (5, "+x"), (0, "+more"), (10, ">b"), (100, "+y")];
        let texts =
            |recording: &Recording| recording.runs[0].steps.iter().map(|step| step.action.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&new), texts(&recording(&kept)));
    }

    #[test]
    fn pauses_are_rounded_down() {
        let pauses = [0, 4, 7, 19, 99, 100, 470, 5100].map(|pause| (pause, ">a"));
        let mut recording = recording(&pauses);
        round(&mut recording);
        let rounded: Vec<u64> = recording.runs[0].steps.iter().map(|step| step.pause_ms).collect();
        assert_eq!(rounded, [0, 0, 5, 10, 50, 100, 200, 5000]);
    }
}
