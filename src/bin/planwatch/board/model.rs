//! What the board shows: the plans, the open plan's steps, what is selected and what is typed. Knows no terminal.

use std::collections::{HashMap, HashSet, VecDeque};

use planwatch::api::views::{PlanShape, StepShape};
use planwatch::ops::show::{ShownPlan, ShownStep};
use planwatch::plan::model::PlanKind;
use planwatch::plan::time::Time;
use ratatui::layout::Rect;

use super::engine::{Act, Loaded, Said};
use super::worker::Run;

/// How many events the board remembers.
const MOST_EVENTS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Plans,
    Steps,
    Details,
}

/// How the open plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Columns,
    List,
    Graph,
    Timeline,
}

impl Sight {
    pub(crate) const ALL: [Self; 4] = [Self::Columns, Self::List, Self::Graph, Self::Timeline];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Columns => "board",
            Self::List => "list",
            Self::Graph => "graph",
            Self::Timeline => "timeline",
        }
    }

    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    Waiting,
    Ready,
    Doing,
    Stuck,
    Done,
}

impl Column {
    pub(crate) const ALL: [Self; 5] = [Self::Waiting, Self::Ready, Self::Doing, Self::Stuck, Self::Done];

    pub(crate) fn of(step: &StepShape) -> Self {
        match step.status.as_str() {
            "in_progress" => Self::Doing,
            _ if step.unverified => Self::Doing,
            "completed" | "skipped" => Self::Done,
            "pending" if step.ready => Self::Ready,
            "pending" => Self::Waiting,
            _ => Self::Stuck,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Ready => "Ready",
            Self::Doing => "In progress",
            Self::Stuck => "Blocked/Failed",
            Self::Done => "Done",
        }
    }
}

/// Words that are asked for at the foot of the screen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) label: String,
    pub(crate) text: String,
    pub(crate) what: Asked,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    /// The words become the act's text. Empty words are left out.
    Words(Act),
    /// As above, but the words must not be empty.
    Needed(Act),
    Command,
    Search,
    /// Enter does it.
    Yes(Act),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hit {
    Plan(String),
    Step(String),
    Column(Column),
    Steps,
    Details,
}

pub(crate) struct Model {
    pub(crate) now: Time,
    pub(crate) plans: Vec<PlanShape>,
    /// Positions in `plans` in the order of the screen, and whether each is below its program.
    pub(crate) rows: Vec<(usize, bool)>,
    pub(crate) plan_id: Option<String>,
    pub(crate) plan: Option<Box<ShownPlan>>,
    pub(crate) step_id: Option<String>,
    pub(crate) step: Option<Box<ShownStep>>,
    pub(crate) focus: Focus,
    pub(crate) sight: Sight,
    pub(crate) search: String,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) is_help: bool,
    pub(crate) message: Option<(Tone, String)>,
    pub(crate) events: VecDeque<String>,
    pub(crate) scroll: usize,
    pub(crate) is_mouse_on: bool,
    pub(crate) is_loaded: bool,
    pub(crate) shows_closed: bool,
    pub(crate) run: Option<Run>,
    /// Where things were drawn, the topmost last.
    pub(crate) hits: Vec<(Rect, Hit)>,
    /// The step that is dragged.
    pub(crate) dragged: Option<String>,
}

impl Model {
    pub(crate) fn new(plan: Option<String>, now: Time) -> Self {
        let focus = if plan.is_some() { Focus::Steps } else { Focus::Plans };
        Self {
            now,
            plans: Vec::new(),
            rows: Vec::new(),
            plan_id: plan,
            plan: None,
            step_id: None,
            step: None,
            focus,
            sight: Sight::Columns,
            search: String::new(),
            prompt: None,
            is_help: false,
            message: None,
            events: VecDeque::new(),
            scroll: 0,
            is_mouse_on: true,
            is_loaded: false,
            shows_closed: false,
            run: None,
            hits: Vec::new(),
            dragged: None,
        }
    }

    /// Takes what was read. What is selected stays selected as long as it exists.
    pub(crate) fn take(&mut self, loaded: Loaded) {
        self.now = loaded.now;
        self.is_loaded = true;
        if let Some(plans) = loaded.plans {
            self.plans = plans;
            self.order();
            let has = |id: &String| self.plans.iter().any(|it| it.id == *id);
            if !self.plan_id.as_ref().is_some_and(has) && loaded.plan.is_none() {
                let first = self.rows.first().map(|(at, _)| self.plans[*at].id.clone());
                self.select_plan(first);
            }
        }
        if let Some(plan) = loaded.plan.filter(|it| self.plan_id.as_ref() == Some(&it.plan.id)) {
            self.plan = Some(plan);
            self.keep_step();
        }
        if let Some(step) = loaded.step.filter(|it| self.step_id.as_ref() == Some(&it.step.id)) {
            self.step = Some(step);
        }
        if let Some(error) = loaded.error {
            self.message = Some((Tone::Bad, error));
        }
    }

    pub(crate) fn take_answer(&mut self, said: Said) {
        match said {
            Said::Done { text, steps } => {
                steps.into_iter().for_each(|it| self.put_step(&it));
                self.message = Some((Tone::Good, text));
            }
            Said::Refused { text, step } => {
                step.into_iter().for_each(|it| self.put_step(&it));
                self.message = Some((Tone::Bad, text));
            }
            Said::Ask(prompt) => self.prompt = self.prompt.take().or(Some(prompt)),
        }
    }

    fn put_step(&mut self, step: &StepShape) {
        let steps = self.plan.iter_mut().flat_map(|it| it.steps.iter_mut());
        for it in steps.filter(|it| it.id == step.id) {
            it.clone_from(step);
        }
    }

    pub(crate) fn note_event(&mut self, event: String) {
        self.events.push_back(event);
        if self.events.len() > MOST_EVENTS {
            self.events.pop_front();
        }
    }

    /// Sorts the plans: what needs attention comes first, then what can be worked on; children stand below their program.
    fn order(&mut self) {
        let urgency = |it: &PlanShape| match () {
            () if it.steps_failed + it.steps_blocked > 0 => 0,
            () if it.steps_in_progress > 0 => 1,
            () if it.steps_ready > 0 => 2,
            () => 3,
        };
        let programs: HashSet<_> =
            self.plans.iter().filter(|it| it.kind == PlanKind::Program).map(|it| &it.id).collect();
        let mut children: HashMap<&String, Vec<usize>> = HashMap::new();
        let mut tops = Vec::new();
        for (at, plan) in self.plans.iter().enumerate() {
            match plan.program.as_ref().filter(|it| **it != plan.id && programs.contains(it)) {
                Some(program) => children.entry(program).or_default().push(at),
                None => tops.push(at),
            }
        }
        let rank = |at: &usize| {
            let own = urgency(&self.plans[*at]);
            let below = children.get(&self.plans[*at].id).into_iter().flatten();
            below.map(|it| urgency(&self.plans[*it])).min().map_or(own, |it| it.min(own))
        };
        tops.sort_by_key(rank);
        let mut rows = Vec::new();
        for top in tops {
            rows.push((top, false));
            let below = children.get(&self.plans[top].id).into_iter().flatten();
            rows.extend(below.map(|it| (*it, true)));
        }
        self.rows = rows;
    }

    pub(crate) fn select_plan(&mut self, id: Option<String>) {
        if self.plan_id != id {
            (self.plan, self.step, self.step_id) = (None, None, None);
            self.scroll = 0;
        }
        self.plan_id = id;
    }

    pub(crate) fn select_step(&mut self, id: Option<String>) {
        if self.step_id != id {
            self.step = None;
            self.scroll = 0;
        }
        self.step_id = id;
    }

    pub(crate) fn steps(&self) -> &[StepShape] {
        self.plan.as_ref().map_or(&[], |it| it.steps.as_slice())
    }

    fn keep_step(&mut self) {
        let shown = self.shown();
        let is_there = shown.iter().any(|it| Some(&it.id) == self.step_id.as_ref());
        if !is_there {
            // The step to do next, else the first.
            let best = [Column::Doing, Column::Ready, Column::Stuck, Column::Waiting, Column::Done];
            let first = best.iter().find_map(|column| shown.iter().find(|it| Column::of(it) == *column));
            let first = first.map(|it| it.id.clone());
            self.select_step(first);
        }
    }

    pub(crate) fn selected(&self) -> Option<&StepShape> {
        self.steps().iter().find(|it| Some(&it.id) == self.step_id.as_ref())
    }

    pub(crate) fn selected_plan(&self) -> Option<&PlanShape> {
        let of_list = || self.plans.iter().find(|it| Some(&it.id) == self.plan_id.as_ref());
        self.plan.as_ref().map(|it| &it.plan).or_else(of_list)
    }

    fn fits(&self, text: &[&str]) -> bool {
        let wanted = self.search.to_lowercase();
        wanted.is_empty() || text.iter().any(|it| it.to_lowercase().contains(&wanted))
    }

    /// The steps that the search leaves.
    pub(crate) fn shown(&self) -> Vec<&StepShape> {
        let steps = self.steps().iter();
        // A search that is about plans leaves the steps of the open one alone.
        let found: Vec<_> =
            steps.clone().filter(|it| self.fits(&[&it.id, &it.title, &it.tags.join(" ")])).collect();
        if found.is_empty() && self.focus == Focus::Plans { steps.collect() } else { found }
    }

    pub(crate) fn column(&self, column: Column) -> Vec<&StepShape> {
        self.shown().into_iter().filter(|it| Column::of(it) == column).collect()
    }

    /// The rows of plans that the search leaves; all while steps are searched.
    pub(crate) fn plan_rows(&self) -> Vec<(&PlanShape, bool)> {
        let rows = self.rows.iter().map(|(at, is_child)| (&self.plans[*at], *is_child));
        rows.filter(|(it, _)| self.focus != Focus::Plans || self.fits(&[&it.id, &it.title])).collect()
    }

    /// Moves the selection by some lines within a column or a list.
    pub(crate) fn step_by(&mut self, by: isize) {
        let moved = |ids: &[&String], now: Option<&String>| {
            let at = ids.iter().position(|it| Some(*it) == now).unwrap_or(0);
            let to = at.saturating_add_signed(by).min(ids.len().saturating_sub(1));
            ids.get(to).map(|it| (*it).clone())
        };
        match self.focus {
            Focus::Details => self.scroll = self.scroll.saturating_add_signed(by),
            Focus::Plans => {
                let rows = self.plan_rows();
                let ids: Vec<_> = rows.iter().map(|(it, _)| &it.id).collect();
                let to = moved(&ids, self.plan_id.as_ref());
                if to.is_some() {
                    self.select_plan(to);
                }
            }
            Focus::Steps => {
                let own = self.selected().map(Column::of).filter(|_| self.sight == Sight::Columns);
                let steps = own.map_or_else(|| self.shown(), |it| self.column(it));
                let ids: Vec<_> = steps.iter().map(|it| &it.id).collect();
                let to = moved(&ids, self.step_id.as_ref());
                if to.is_some() {
                    self.select_step(to);
                }
            }
        }
    }

    /// Moves to the next column that holds something, else to the part of the screen beside.
    pub(crate) fn aside(&mut self, is_right: bool) {
        if self.focus == Focus::Steps
            && self.sight == Sight::Columns
            && let Some(own) = self.selected().map(Column::of)
        {
            let row = self.column(own).iter().position(|it| Some(&it.id) == self.step_id.as_ref());
            let others: Vec<_> = match is_right {
                true => Column::ALL.into_iter().filter(|it| *it > own).collect(),
                false => Column::ALL.into_iter().rev().filter(|it| *it < own).collect(),
            };
            if let Some(to) = others.into_iter().map(|it| self.column(it)).find(|it| !it.is_empty()) {
                let at = row.unwrap_or(0).min(to.len() - 1);
                let id = to[at].id.clone();
                return self.select_step(Some(id));
            }
        }
        self.focus = match (self.focus, is_right) {
            (Focus::Plans, true) if self.plan.as_ref().is_none_or(|it| it.steps.is_empty()) => Focus::Details,
            (Focus::Plans, true) => Focus::Steps,
            (Focus::Steps | Focus::Details, true) => Focus::Details,
            (Focus::Details, false) if self.step_id.is_some() => Focus::Steps,
            (_, false) => Focus::Plans,
        };
    }
}
