//! Sets of plans. Finds steps across plans, and problems that depend on several files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use unicode_normalization::UnicodeNormalization;

use crate::plan::claims::Claims;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::ranges::Runs;
use crate::plan::time::Time;
use crate::text::line_index::Place;
use crate::text::typed::shell_word;

/// The end of the message for a dependency on a missing step. The problem of an invalid reference has the same code, but its
/// message does not end with these words.
const COUNTS_AS_OPEN: &str = ", so it counts as not completed";

const NAME_A_PROGRAM: &str = "name a plan with `kind: program`";

/// A set of plans: all of a plans directory, or those that one query needs.
#[derive(Debug, Clone, Default)]
pub struct Plans {
    plans: Vec<Plan>,
    live: HashMap<PlanId, usize>,
    archived: HashMap<PlanId, usize>,
    claims: Claims,
    /// Maps the index of each plan that has steps with ranges to the indices of its open steps.
    open: BTreeMap<usize, Vec<usize>>,
}

impl Plans {
    /// Accepts plans in any order, and sorts them by id, live plans first.
    ///
    /// Problems between files are not detected here; see [`Plans::judged`].
    pub fn new(mut plans: Vec<Plan>) -> Self {
        plans.sort_unstable_by(|a, b| {
            (a.is_archived, &a.id, a.id.as_str()).cmp(&(b.is_archived, &b.id, b.id.as_str()))
        });
        let mut sorted = Self { plans, ..Self::default() };
        for (at, plan) in sorted.plans.iter().enumerate() {
            let map = if plan.is_archived { &mut sorted.archived } else { &mut sorted.live };
            map.entry(plan.id.clone()).or_insert(at);
        }
        let open = |(at, plan): (usize, &Plan)| Some((at, plan.open_places(|it| !it.is_closed())?));
        sorted.open = sorted.plans.iter().enumerate().filter_map(open).collect();
        sorted
    }

    /// Returns the first open steps in the ranges of a step, at most `most`.
    pub(crate) fn open_in_ranges<'a>(&self, plan: &'a Plan, step: &Step, most: usize) -> Vec<&'a Step> {
        if step.ranges.is_empty() {
            return Vec::new();
        }
        let map = if plan.is_archived { &self.archived } else { &self.live };
        let is_here = |at: &&usize| self.plans.get(**at).is_some_and(|it| std::ptr::eq(it, plan));
        let noted = map.get(&plan.id).filter(is_here).and_then(|at| self.open.get(at));
        // `plan` may be a version that is not in this set, such as the plan after a change.
        let found = || plan.open_places(|it| !it.is_closed()).unwrap_or_default();
        let open = noted.map_or_else(|| Cow::Owned(found()), |it| Cow::Borrowed(&**it));
        plan.in_ranges(step, &open).take(most).map(|at| &plan.steps[at]).collect()
    }

    /// Returns whether [`Plans::judged`] found the problem. Such a problem depends on several files.
    pub fn is_between_files(problem: &Problem) -> bool {
        let is_missing = problem.code == Code::DependencyMissing && problem.message.ends_with(COUNTS_AS_OPEN);
        is_missing || matches!(problem.code, Code::DependencyCycle | Code::ProgramMissing | Code::NameClash)
    }

    /// Adds to all plans of a plans directory the problems that depend on several files.
    pub fn judged(plans: Vec<Plan>) -> Self {
        Self::judged_with(plans, true, None)
    }

    /// Like [`Plans::judged`], for plans of which one may lack steps. So it is not known which step precedes another one, and
    /// cycles through the order of a sequential plan are not found. `whole` is that plan with all steps; the hints for missing
    /// steps name them.
    pub(crate) fn judged_in_part(plans: Vec<Plan>, whole: Option<&Plan>) -> Self {
        Self::judged_with(plans, false, whole)
    }

    fn judged_with(plans: Vec<Plan>, has_all_steps: bool, whole: Option<&Plan>) -> Self {
        let mut judged = Self::new(plans);
        let graph = Graph::of(&judged, has_all_steps);
        let found = [judged.missing_dependencies(&graph, whole), judged.cycles(&graph)].concat();
        for (plan, step, problem) in found {
            judged.plans[plan].steps[step].problems.push(problem);
        }
        for (plan, problem) in [judged.missing_programs(), judged.name_clashes()].concat() {
            judged.plans[plan].problems.push(problem);
        }
        judged
    }

    /// Adds the records of claims, which are not in the files. Plans that were just parsed have none.
    ///
    /// If a step's file has lost a claim of this working tree that is still in force, the step gets a problem.
    #[must_use]
    pub fn with_claims(mut self, claims: Claims) -> Self {
        for step in self.plans.iter_mut().filter(|it| !it.is_archived).flat_map(|it| &mut it.steps) {
            step.problems.retain(|it| it.code != Code::TakenBack);
            step.run = claims.run(step);
            if step.claim_in_force().is_some() {
                step.problems.retain(|it| it.code != Code::StaleClaim);
            }
            // An unreadable file may still contain the claim, so its step does not get this problem.
            let Some(held) = claims.taken_back(step).filter(|_| step.unreadable().is_none()) else {
                continue;
            };
            let by = held.by.as_deref().unwrap_or("another worker");
            let is_in_file = step.has_claim(&held.claim);
            let message = match is_in_file {
                true => format!(
                    "the claim `{}` of {by} is still in force, but the step is not `in_progress`",
                    held.claim
                ),
                false => {
                    format!(
                        "the claim `{}` of {by} is no longer in the file, but is still in force",
                        held.claim
                    )
                }
            };
            let word = shell_word(&step.id);
            let hint = format!("{by} ends it with `planwatch release {word}`, others with `--force`");
            if is_in_file {
                step.problems.retain(|it| it.code != Code::StaleClaim);
            }
            let problem = Problem::of_file(&step.path, Code::TakenBack, message, hint);
            step.problems.push(problem);
        }
        self.claims = claims;
        for (plan, open) in &mut self.open {
            *open = self.plans[*plan].open_places(|it| !it.is_closed()).unwrap_or_default();
        }
        self
    }

    /// Whether no claim lapses between two times. Recorded claims do not count: whether they have lapsed was decided when
    /// the records were read.
    pub fn is_steady(&self, now: Time, soon: Time) -> bool {
        let mut steps = self.live().flat_map(|it| &it.steps);
        steps.all(|it| self.claims.lapse(it, now) == self.claims.lapse(it, soon))
    }

    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    pub fn iter(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter()
    }

    pub fn live(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter().filter(|it| !it.is_archived)
    }

    pub fn into_vec(self) -> Vec<Plan> {
        self.plans
    }

    /// Returns the plan of this id; a live one wins over an archived one.
    pub fn get(&self, id: &PlanId) -> Option<&Plan> {
        self.place(id).map(|at| &self.plans[at])
    }

    fn place(&self, id: &PlanId) -> Option<usize> {
        self.live.get(id).or_else(|| self.archived.get(id)).copied()
    }

    /// Returns the index of the plan that the id of the plan at index `at` means.
    fn meant_at(&self, at: usize) -> usize {
        let plan = &self.plans[at];
        if plan.is_archived {
            return self.place(&plan.id).unwrap_or(at);
        }
        // Live plans with the same id are next to each other, so this needs no look-up in a map (benchmark T3).
        let before = self.plans[..at].iter().rev().take_while(|it| it.id == plan.id);
        at - before.count()
    }

    /// Returns the archived plan of this id, even if a live one has the same id.
    pub fn archived(&self, id: &PlanId) -> Option<&Plan> {
        self.archived.get(id).map(|at| &self.plans[*at])
    }

    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.get(&id.plan)?.find(id)
    }

    /// Returns the live plans that name this one as their program.
    pub fn children(&self, program: &PlanId) -> impl Iterator<Item = &Plan> {
        self.live().filter(move |it| it.program.as_ref() == Some(program))
    }

    /// Returns the archived plans that name this one as their program, except those whose id a live plan has.
    pub fn archived_children(&self, program: &PlanId) -> impl Iterator<Item = &Plan> {
        let archived = self.plans.iter().filter(|it| it.is_archived && !self.live.contains_key(&it.id));
        archived.filter(move |it| it.program.as_ref() == Some(program))
    }

    fn missing_dependencies(&self, graph: &Graph<'_>, whole: Option<&Plan>) -> Vec<(usize, usize, Problem)> {
        let problem = |(node, nth): &(usize, usize)| {
            let (step, (plan, at)) = (graph.steps[*node], graph.places[*node]);
            let missing = &step.depends[*nth];
            let named = whole.filter(|it| it.id == missing.plan).or_else(|| self.get(&missing.plan));
            (plan, at, missing_dependency(step, *nth, missing, named))
        };
        graph.missing.iter().map(problem).collect()
    }

    fn missing_programs(&self) -> Vec<(usize, Problem)> {
        let report = |(at, plan): (usize, &Plan)| {
            let program = plan.program.as_ref()?;
            let (problem, hint) = match self.get(program) {
                None => (format!("there is no plan `{program}`"), NAME_A_PROGRAM),
                Some(it) if it.kind != PlanKind::Program => {
                    (format!("`{program}` is not a program"), NAME_A_PROGRAM)
                }
                Some(_) if plan.kind == PlanKind::Program => {
                    let problem =
                        format!("`{}` is a program, and a program cannot belong to a program", plan.id);
                    (problem, "remove `program` or `kind`")
                }
                Some(_) => return None,
            };
            let place = plan.program_at.unwrap_or(Place::START);
            Some((at, Problem::at(&plan.path, place, Code::ProgramMissing, problem, hint)))
        };
        self.plans.iter().enumerate().filter_map(report).collect()
    }

    /// Plans whose names are the same on a file system that ignores case or normalizes Unicode.
    fn name_clashes(&self) -> Vec<(usize, Problem)> {
        let plans = self.plans.iter().enumerate();
        let mut folded: Vec<_> =
            plans.map(|(at, it)| (it.is_archived, folded_name(it.id.as_str()), at)).collect();
        // The names of most plans are sorted already, and a stable sort makes use of that.
        folded.sort();
        let report = |at: usize, same: &[(bool, Cow<'_, str>, usize)]| {
            let others = same.iter().map(|it| it.2).filter(|it| *it != at);
            let others = others.map(|it| format!("`{}`", self.plans[it].id));
            let message =
                format!("the name is another spelling of {}", others.collect::<Vec<_>>().join(", "));
            let hint = "on some systems both are the same directory; rename one";
            (at, Problem::of_file(&self.plans[at].path, Code::NameClash, message, hint))
        };
        let same = folded.chunk_by(|a, b| (a.0, &a.1) == (b.0, &b.1)).filter(|it| it.len() > 1);
        same.flat_map(|all| all.iter().map(|it| report(it.2, all))).collect()
    }

    fn cycles(&self, graph: &Graph<'_>) -> Vec<(usize, usize, Problem)> {
        let mut found = Vec::new();
        for cycle in graph.cycles() {
            // Each step of the cycle gets this message, so a long cycle is not spelled out.
            let named = cycle.iter().take(6).map(|it| graph.steps[*it].id.to_string());
            let mut names = named.collect::<Vec<_>>().join(", ");
            if cycle.len() > 6 {
                names = format!("{names} and {} more", cycle.len() - 6);
            }
            let members: std::collections::HashSet<_> = cycle.iter().map(|it| &graph.steps[*it].id).collect();
            for node in &cycle {
                let step = graph.steps[*node];
                let message = format!("the step waits for itself through {names}");
                let (plan, nth) = graph.places[*node];
                let hint = hint_for_cycle(self.plans[plan].order);
                let inside = step.depends.iter().position(|it| members.contains(it));
                let place = inside.and_then(|it| step.depends_at.get(it)).copied().unwrap_or(Place::START);
                found.push((plan, nth, Problem::at(&step.path, place, Code::DependencyCycle, message, hint)));
            }
        }
        found
    }
}

/// The problem of a dependency on a missing step. `named` is the plan of that step.
fn missing_dependency(step: &Step, nth: usize, missing: &StepId, named: Option<&Plan>) -> Problem {
    let message = format!("the dependency `{missing}` does not exist{COUNTS_AS_OPEN}");
    let hint = match named {
        Some(plan) if plan.steps.is_empty() => format!("`{}` has no steps", plan.id),
        Some(plan) => {
            let numbers = plan.steps.iter().take(20).map(|it| it.id.number.to_string()).collect::<Vec<_>>();
            let more = match plan.steps.len().saturating_sub(numbers.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("the steps of `{}` are {}{more}", plan.id, numbers.join(", "))
        }
        None => format!("there is no plan `{}`", missing.plan),
    };
    let place = step.depends_at.get(nth).copied().unwrap_or(Place::START);
    Problem::at(&step.path, place, Code::DependencyMissing, message, hint)
}

/// The hint for a step that waits for itself.
pub(crate) fn hint_for_cycle(order: Order) -> &'static str {
    match order {
        Order::Dependencies => "remove one dependency",
        Order::Sequential => {
            "remove one dependency; in a sequential plan, each step also waits for the one before it"
        }
    }
}

/// A name as seen by file systems that ignore case and normalize Unicode.
pub fn folded_name(name: &str) -> Cow<'_, str> {
    if !name.is_ascii() {
        Cow::Owned(name.nfkc().flat_map(char::to_lowercase).collect())
    } else if name.bytes().any(|it| it.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

struct Graph<'a> {
    steps: Vec<&'a Step>,
    places: Vec<(usize, usize)>,
    edges: Vec<Vec<usize>>,
    /// The dependencies on missing steps: the node of the waiting step, and the index of the dependency.
    missing: Vec<(usize, usize)>,
    /// For each plan, whether its steps wait only for earlier ones. The steps of such a plan have no edges here.
    is_sound: Vec<bool>,
}

/// Numbers the steps of all plans consecutively, as the nodes of a graph. Finds the node of the step that an id means.
pub(super) struct Finder<'a> {
    plans: &'a Plans,
    /// The node of each plan's first step.
    firsts: Vec<usize>,
}

impl<'a> Finder<'a> {
    pub(super) fn of(plans: &'a Plans) -> Self {
        let count = |n: &mut usize, plan: &Plan| Some(std::mem::replace(n, *n + plan.steps.len()));
        Self { plans, firsts: plans.plans.iter().scan(0, count).collect() }
    }

    /// The live plans, each with the index of the plan that its id means.
    pub(super) fn live(&self) -> impl Iterator<Item = (&'a Plan, usize)> {
        let all = self.plans.plans.iter().enumerate();
        all.take_while(|(_, it)| !it.is_archived).map(|(at, it)| (it, self.plans.meant_at(at)))
    }

    /// For each live plan with ranges, its [`Runs`], whose inner nodes are numbered from `free` on.
    pub(super) fn runs(&self, free: usize) -> Vec<(&'a Plan, Runs)> {
        let mut free = free;
        let mut all = Vec::new();
        for at in self.plans.open.keys().copied().filter(|at| !self.plans.plans[*at].is_archived) {
            let plan = &self.plans.plans[at];
            let runs = Runs::new(self.firsts[at], plan.steps.len(), free);
            free += runs.n_inner();
            all.push((plan, runs));
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        let last = self.plans.plans.last().map_or(0, |it| it.steps.len());
        self.firsts.last().map_or(0, |first| first + last)
    }

    pub(super) fn find(&self, id: &StepId) -> Option<usize> {
        let at = self.plans.place(&id.plan)?;
        self.plans.plans[at].place_of(&id.number).map(|nth| self.firsts[at] + nth)
    }

    /// Finds the node of `id`, which a step of `plan` names. `own` is the index of the plan that the id of `plan` means.
    /// Passing it saves a look-up, because most dependencies are within one plan.
    pub(super) fn node(&self, plan: &Plan, own: usize, id: &StepId) -> Option<usize> {
        let is_own = id.plan.is_spelled_as(&plan.id);
        let at = if is_own { own } else { self.plans.place(&id.plan)? };
        self.plans.plans[at].place_of(&id.number).map(|nth| self.firsts[at] + nth)
    }
}

impl<'a> Graph<'a> {
    fn of(plans: &'a Plans, has_all_steps: bool) -> Self {
        let finder = Finder::of(plans);
        let (steps, places, edges, missing) = Default::default();
        let mut graph =
            Self { steps, places, edges, missing, is_sound: Vec::with_capacity(plans.plans.len()) };
        for (at, plan) in plans.plans.iter().enumerate() {
            let own = plans.meant_at(at);
            // If each step waits only for earlier steps of its plan, none of its dependencies is missing and no cycle leads
            // through the plan. So its steps need no edges. A range never contains the step itself or a later one, and the step
            // before it in a sequential plan is an earlier one, too. This check takes less time than the search for cycles
            // (benchmark T16).
            let is_sound = own == at && (plan.waits_inside || plan.is_waiting_inside());
            graph.is_sound.push(is_sound);
            for (nth, step) in plan.steps.iter().enumerate() {
                graph.steps.push(step);
                graph.places.push((at, nth));
                let node = graph.edges.len();
                if is_sound {
                    graph.edges.push(Vec::new());
                    continue;
                }
                let mut edges = Vec::with_capacity(step.depends.len());
                for (n, id) in step.depends.iter().enumerate() {
                    match finder.node(plan, own, id) {
                        Some(found) => edges.push(found),
                        None => graph.missing.push((node, n)),
                    }
                }
                // A closed step waits for nothing, so the order of the plan adds no edge to it.
                let before =
                    plan.before(step).filter(|it| has_all_steps && !step.is_closed() && !it.is_closed());
                edges.extend(before.and_then(|it| finder.node(plan, own, &it.id)));
                graph.edges.push(edges);
            }
        }
        graph.add_ranges(plans, &finder);
        graph
    }

    fn add_ranges(&mut self, plans: &Plans, finder: &Finder<'_>) {
        for &at in plans.open.keys() {
            if self.is_sound[at] {
                continue;
            }
            let (plan, first) = (&plans.plans[at], finder.firsts[at]);
            let runs = Runs::new(first, plan.steps.len(), self.edges.len());
            // If two files have the same number, the first is meant.
            let is_first = |node: &usize| match node.checked_sub(first) {
                Some(nth) if nth > 0 && nth < plan.steps.len() => {
                    plan.steps[nth - 1].id.number != plan.steps[nth].id.number
                }
                _ => true,
            };
            let children = runs.inner().map(|(_, children)| children.into_iter().filter(is_first).collect());
            self.edges.extend(children);
            for (nth, step) in plan.steps.iter().enumerate() {
                for range in &step.ranges {
                    let nodes = runs.of(&plan.places_in(range)).into_iter();
                    self.edges[first + nth].extend(nodes.filter(is_first));
                }
            }
        }
    }

    /// Returns the groups of steps that wait for each other. They are the strongly connected components, found by Tarjan's
    /// algorithm (SIAM J. Comput. 1, 1972). It is implemented without recursion, because a chain of dependencies can be as
    /// long as a plan.
    fn cycles(&self) -> Vec<Vec<usize>> {
        let n = self.edges.len();
        let (mut order, mut low, mut on_stack) = (vec![usize::MAX; n], vec![0; n], vec![false; n]);
        let (mut stack, mut cycles, mut count) = (Vec::new(), Vec::new(), 0);
        for root in 0..n {
            if order[root] != usize::MAX || self.edges[root].is_empty() {
                continue;
            }
            let mut work = vec![(root, 0)];
            while let Some((node, edge)) = work.pop() {
                if edge == 0 {
                    (order[node], low[node]) = (count, count);
                    count += 1;
                    stack.push(node);
                    on_stack[node] = true;
                }
                if let Some(&next) = self.edges[node].get(edge) {
                    work.push((node, edge + 1));
                    if order[next] == usize::MAX {
                        work.push((next, 0));
                    } else if on_stack[next] {
                        low[node] = low[node].min(order[next]);
                    }
                    continue;
                }
                if let Some(&(parent, _)) = work.last() {
                    low[parent] = low[parent].min(low[node]);
                }
                if low[node] == order[node] {
                    cycles.extend(self.component(node, &mut stack, &mut on_stack));
                }
            }
        }
        cycles
    }

    fn component(&self, root: usize, stack: &mut Vec<usize>, on_stack: &mut [bool]) -> Option<Vec<usize>> {
        let start = stack.iter().rposition(|it| *it == root)?;
        let mut members = stack.split_off(start);
        for member in &members {
            on_stack[*member] = false;
        }
        // An inner node of a segment tree (`Runs`) is not a step.
        members.retain(|it| *it < self.steps.len());
        members.sort_unstable();
        let is_cycle = members.len() > 1 || self.edges[root].contains(&root);
        is_cycle.then_some(members)
    }
}
