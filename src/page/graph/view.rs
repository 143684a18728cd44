//! Which part of a plan is drawn: all of it, its phases, one phase, or the neighbourhood of a step.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;

use super::{Graph, Kind, Node};
use crate::api::views::{PlanShape, RangeShape, StepShape};
use crate::page::look::Look;
use crate::plan::id::StepId;
use crate::plan::model::Order;

/// [`View::readable`] draws a plan with more steps than this by phase, or around one step. This is also the maximum number
/// of steps that are drawn around one step.
pub const MOST_READABLE: usize = 60;
/// The maximum number of steps or phases of a plan in one drawing. Steps of other plans are added while there are fewer
/// than `MOST_WHOLE + MOST_READABLE` nodes.
pub const MOST_WHOLE: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View<'a> {
    Whole,
    /// A node for each phase.
    Phases,
    /// The steps of a phase, and the steps of other phases that they wait for or that wait for them. `None` means the
    /// steps without a phase.
    Phase(Option<&'a str>),
    /// A step, and the steps up to two dependencies before it and up to two after it.
    Around(&'a str),
}

impl<'a> View<'a> {
    /// Like [`View::fitting`], except for a plan that has more than [`MOST_READABLE`] steps and is not drawn by phase.
    /// Such a plan is drawn around one step: the first step that is in progress, or else ready, failed, blocked or waiting,
    /// in this order. If there is none, it is drawn around the first step of all.
    pub fn readable(steps: &'a [StepShape]) -> Option<Self> {
        let whole = View::fitting(steps);
        if steps.len() <= MOST_READABLE || whole == Some(View::Phases) {
            return whole;
        }
        let order = [Look::InProgress, Look::Ready, Look::Failed, Look::Blocked, Look::Waiting];
        let first = order.iter().find_map(|look| steps.iter().find(|it| Look::of(it) == *look));
        first.or(steps.first()).map(|it| View::Around(&it.id))
    }
}

impl View<'_> {
    /// Returns the view that shows a plan best. `None`: the plan has no steps, or no view shows all of them.
    pub fn fitting(steps: &[StepShape]) -> Option<Self> {
        let phases: BTreeSet<_> = steps.iter().map(|it| it.phase.as_deref()).collect();
        let n = steps.len();
        if n > MOST_READABLE && (2..=MOST_WHOLE).contains(&phases.len()) {
            return Some(Self::Phases);
        }
        (1..=MOST_WHOLE).contains(&n).then_some(Self::Whole)
    }
}

pub(super) fn select(plan: &PlanShape, steps: &[StepShape], view: View<'_>) -> Option<Graph> {
    let all = Dependencies::of(plan, steps);
    match view {
        View::Whole => {
            (steps.len() <= MOST_WHOLE).then(|| all.drawn(&(0..steps.len()).collect(), &Foreign::Shown))
        }
        View::Phases => all.phases(),
        View::Phase(phase) => {
            let is_own = |it: &usize| steps[*it].phase.as_deref() == phase;
            let own: BTreeSet<usize> = (0..steps.len()).filter(is_own).collect();
            if own.is_empty() || own.len() > MOST_WHOLE {
                return None;
            }
            let (near, left_out) = all.next_to(&own, MOST_WHOLE - own.len());
            let graph = all.drawn(&own.union(&near).copied().collect(), &Foreign::Shown);
            Some(Graph { left_out: left_out + graph.left_out, ..graph })
        }
        View::Around(id) => {
            let start = steps.iter().position(|it| it.id == id)?;
            let (near, left_out) = all.around(start, 2, MOST_READABLE);
            let centre = near.iter().position(|it| *it == start);
            let graph = all.drawn(&near, &Foreign::Of(start));
            Some(Graph { left_out: left_out + graph.left_out, centre, ..graph })
        }
    }
}

/// Which steps of other plans are shown.
enum Foreign {
    Shown,
    /// Only those that the step with this index waits for.
    Of(usize),
}

/// What each step waits for. Steps of the same plan are indexes into `steps`; the others, in `foreign`, are ids.
struct Dependencies<'a> {
    steps: &'a [StepShape],
    before: Vec<Vec<usize>>,
    /// Ranges are not expanded, because they may contain very many steps.
    ranges: Vec<Vec<RangeInclusive<usize>>>,
    foreign: Vec<Vec<String>>,
}

impl<'a> Dependencies<'a> {
    fn of(plan: &PlanShape, steps: &'a [StepShape]) -> Self {
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (nth, step) in steps.iter().enumerate() {
            places.entry(&step.id).or_insert(nth);
        }
        let mut all = Self { steps, before: Vec::new(), ranges: Vec::new(), foreign: Vec::new() };
        for (nth, step) in steps.iter().enumerate() {
            let mut before = Vec::new();
            let mut foreign = Vec::new();
            for id in &step.depends {
                let id = id.to_string();
                match places.get(id.as_str()) {
                    Some(at) => before.push(*at),
                    None => foreign.push(id),
                }
            }
            if plan.order == Order::Sequential && nth > 0 {
                before.push(nth - 1);
            }
            let range = |it: &RangeShape| {
                let place = |id: &StepId| places.get(id.to_string().as_str()).copied();
                let (first, last) = (place(&it.first)?, place(&it.last)?);
                (first <= last).then_some(first..=last)
            };
            all.ranges.push(step.depends_ranges.iter().filter_map(range).collect());
            all.before.push(before);
            all.foreign.push(foreign);
        }
        all
    }

    fn waits(&self, step: usize, before: usize) -> bool {
        self.before[step].contains(&before) || self.ranges[step].iter().any(|it| it.contains(&before))
    }

    /// The steps that a step waits for: first the single steps in reverse order, then those of each range in reverse order.
    fn before(&self, step: usize) -> impl Iterator<Item = usize> {
        let ranges = self.ranges[step].iter().flat_map(|it| it.clone().rev());
        self.before[step].iter().rev().copied().chain(ranges).filter(move |it| *it != step)
    }

    /// The graph of these steps, the dependencies between them, and the steps of other plans that `foreign` selects.
    fn drawn(&self, shown: &BTreeSet<usize>, foreign: &Foreign) -> Graph {
        let mut graph = Graph::default();
        let places: HashMap<usize, usize> = shown.iter().enumerate().map(|(nth, it)| (*it, nth)).collect();
        graph.nodes.extend(shown.iter().map(|it| node(&self.steps[*it])));
        let mut others: HashMap<&str, usize> = HashMap::new();
        let mut left_out: BTreeSet<&str> = BTreeSet::new();
        for (to, step) in shown.iter().enumerate() {
            graph.edges.extend(shown.iter().filter(|it| self.waits(*step, **it)).map(|it| (places[it], to)));
        }
        for step in shown {
            let is_shown = match foreign {
                Foreign::Shown => true,
                Foreign::Of(it) => it == step,
            };
            for id in self.foreign[*step].iter().filter(|_| is_shown) {
                if graph.nodes.len() >= MOST_WHOLE + MOST_READABLE && !others.contains_key(id.as_str()) {
                    left_out.insert(id);
                    continue;
                }
                let at = *others.entry(id.as_str()).or_insert_with(|| {
                    graph.nodes.push(other(id));
                    graph.nodes.len() - 1
                });
                graph.edges.insert((at, places[step]));
            }
        }
        graph.left_out = left_out.len();
        graph
    }

    /// Finds the other steps that a step of `own` waits for, and those that wait for a step of `own`. Returns at most `most`
    /// of them, and the number of those that did not fit.
    fn next_to(&self, own: &BTreeSet<usize>, most: usize) -> (BTreeSet<usize>, usize) {
        let before = own.iter().flat_map(|it| self.before(*it));
        let is_after = |it: &usize| own.iter().any(|own| self.waits(*it, *own));
        let after = (0..self.steps.len()).filter(is_after);
        let (mut near, mut left_out) = (BTreeSet::new(), BTreeSet::new());
        for step in before.chain(after).filter(|it| !own.contains(it)) {
            if near.len() < most {
                near.insert(step);
            } else if !near.contains(&step) {
                left_out.insert(step);
            }
        }
        (near, left_out.len())
    }

    /// Returns `start` and the steps up to `far` dependencies before and after it, and the number of steps that did not fit.
    ///
    /// At most `most` steps are returned; nearer steps are preferred. `start` and the steps before it are at most two thirds
    /// of `most`.
    fn around(&self, start: usize, far: usize, most: usize) -> (BTreeSet<usize>, usize) {
        let mut seen = BTreeSet::from([start]);
        let mut left_out = BTreeSet::new();
        for is_ahead in [false, true] {
            let most = if is_ahead { most } else { most * 2 / 3 };
            let mut open = VecDeque::from([(start, 0)]);
            while let Some((step, distance)) = open.pop_front() {
                if distance == far {
                    continue;
                }
                let next: Vec<usize> = if is_ahead {
                    (0..self.steps.len()).filter(|it| *it != step && self.waits(*it, step)).collect()
                } else {
                    self.before(step).collect()
                };
                for it in next.into_iter().filter(|it| !seen.contains(it)).collect::<BTreeSet<_>>() {
                    if seen.len() < most {
                        seen.insert(it);
                        open.push_back((it, distance + 1));
                    } else {
                        left_out.insert(it);
                    }
                }
            }
        }
        let left_out = left_out.difference(&seen).count();
        (seen, left_out)
    }

    /// A node for each phase, in the order of the steps, and an edge between two phases if a step of one waits for a step of
    /// the other.
    fn phases(&self) -> Option<Graph> {
        let mut members: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        for (nth, step) in self.steps.iter().enumerate() {
            let phase = step.phase.as_deref();
            let at = *places.entry(phase).or_insert_with(|| {
                members.push((phase, Vec::new()));
                members.len() - 1
            });
            members[at].1.push(nth);
        }
        if members.is_empty() || members.len() > MOST_WHOLE {
            return None;
        }
        let mut graph = Graph::default();
        for (phase, own) in &members {
            graph.nodes.push(phase_node(*phase, own.iter().map(|it| &self.steps[*it])));
        }
        for (nth, step) in self.steps.iter().enumerate() {
            let to = places[&step.phase.as_deref()];
            let from = |it: &usize| places[&self.steps[*it].phase.as_deref()];
            graph.edges.extend(self.before[nth].iter().map(|it| (from(it), to)));
            for range in &self.ranges[nth] {
                let has_one = |own: &Vec<usize>| {
                    let first = own.partition_point(|it| it < range.start());
                    own.get(first).is_some_and(|it| it <= range.end())
                };
                let inside = members.iter().enumerate().filter(|(_, it)| has_one(&it.1));
                graph.edges.extend(inside.map(|(from, _)| (from, to)));
            }
        }
        Some(graph)
    }
}

fn node(step: &StepShape) -> Node {
    Node {
        id: step.id.clone(),
        number: step.number.clone(),
        title: step.title.clone(),
        look: Look::of(step),
        kind: Kind::Step,
    }
}

fn other(id: &str) -> Node {
    Node {
        id: id.to_owned(),
        number: String::new(),
        title: id.to_owned(),
        look: Look::Unknown,
        kind: Kind::Foreign,
    }
}

fn phase_node<'a>(phase: Option<&str>, steps: impl Iterator<Item = &'a StepShape>) -> Node {
    let looks: Vec<Look> = steps.map(Look::of).collect();
    let is_closed = |it: &&Look| matches!(it, Look::Completed | Look::Skipped);
    let closed = looks.iter().filter(is_closed).count();
    // The most urgent look comes first.
    let order = [Look::Failed, Look::Blocked, Look::InProgress, Look::Unknown, Look::Ready, Look::Waiting];
    let look = order.into_iter().find(|it| looks.contains(it)).unwrap_or(Look::Completed);
    Node {
        id: phase.unwrap_or_default().to_owned(),
        number: String::new(),
        title: phase.unwrap_or("Without a phase").to_owned(),
        look,
        kind: Kind::Phase { closed, total: looks.len() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(nth: usize) -> StepShape {
        serde_json::from_value(json!({
            "id": format!("p:{nth}"), "plan": "p", "number": nth.to_string(), "step_number": nth, "title": "T",
            "status": "pending", "unverified": false, "ready": false, "depends": [], "waits_for": [], "phase": null,
            "type": null, "assignee": null, "priority": "medium", "due": null, "tags": [], "created_at": null,
            "created_by": "user", "claim": null, "lapsed": false, "confirm": false, "confirmed": null, "verify": [],
            "touches": null, "result": null, "attempts": [], "notes": [], "metadata": {}, "tasks_done": 0,
            "tasks_total": 0, "last_activity": null, "last_activity_source": null, "path": "plans/p/step.md",
            "etag": null, "problems": [], "custom": {},
        }))
        .unwrap()
    }

    #[test]
    fn steps_that_do_not_fit_are_counted_once() {
        let steps: Vec<_> = (0..12).map(step).collect();
        let mut all = Dependencies {
            steps: &steps,
            before: vec![Vec::new(); 12],
            ranges: vec![Vec::new(); 12],
            foreign: vec![Vec::new(); 12],
        };
        let shown = BTreeSet::from([0, 1]);
        let foreign: Vec<_> = (0..300).map(|it| format!("q:{it}")).collect();
        all.foreign[0].clone_from(&foreign);
        all.foreign[1] = foreign;
        let drawn = all.drawn(&shown, &Foreign::Shown);
        assert_eq!(drawn.nodes.len() + drawn.left_out, 2 + 300);
        // The first step waits for nine steps, and one step waits for it.
        all.before[0] = (3..12).collect();
        all.before[2] = vec![0];
        for (most, left_out) in [(0, 10), (4, 6), (10, 0), (20, 0)] {
            let (near, n) = all.next_to(&shown, most);
            assert_eq!((near.len(), n), (10 - left_out, left_out), "{most}");
        }
    }
}
