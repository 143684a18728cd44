//! What the board shows: the plans, the open plan's steps, what is selected and what is typed. This module does not
//! access the terminal.

pub(crate) use planwatch::api::columns::Column;
use planwatch::api::views::{PlanShape, StepShape};
use planwatch::ops::run::WorkerOutput;
use planwatch::ops::show::{ShownPlan, ShownStep};
use planwatch::plan::model::PlanKind;
use planwatch::plan::time::Time;
use planwatch::plan::transitions::Verb;
use ratatui::layout::Rect;

use super::engine::{Action, Loaded, Reply, Request};
use super::prompt::{Prompt, PromptKind};
use super::worker::Run;
use crate::screens::plans;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Plans,
    Steps,
    Details,
}

/// How the open plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Columns,
    List,
    Graph,
    Timeline,
}

impl View {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Success,
    Error,
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
    /// Who makes the changes.
    pub(crate) by: String,
    pub(crate) plans: Vec<PlanShape>,
    /// Indices into `plans`, in the order of the screen, each with whether the plan is below its program.
    pub(crate) rows: Vec<(usize, bool)>,
    pub(crate) plan_id: Option<String>,
    pub(crate) plan: Option<Box<ShownPlan>>,
    /// The selected plan could not be read.
    is_missing: bool,
    /// The id of the selected plan, if `plans` contains it only because it is selected.
    pinned: Option<String>,
    pub(crate) step_id: Option<String>,
    pub(crate) step: Option<Box<ShownStep>>,
    pub(crate) focus: Focus,
    pub(crate) view: View,
    pub(crate) search: String,
    /// Whether the search is for plans or for steps.
    pub(crate) search_in: Focus,
    pub(crate) prompt: Option<Prompt>,
    /// The first visible line of the list of keys, while the list is open.
    pub(crate) help: Option<usize>,
    pub(crate) message: Option<(Severity, String)>,
    /// The last event.
    pub(crate) event: Option<String>,
    pub(crate) scroll: usize,
    pub(crate) is_mouse_on: bool,
    pub(crate) is_loaded: bool,
    pub(crate) shows_closed: bool,
    /// The run that this board started.
    pub(crate) run: Option<Run>,
    /// The worker's output, if a run works on the selected step.
    pub(crate) output: Option<WorkerOutput>,
    /// The drawn areas, each with what the mouse hits there, the topmost last.
    pub(crate) hits: Vec<(Rect, Hit)>,
    /// The step that is dragged, and the column under the mouse.
    pub(crate) dragged: Option<(String, Option<Column>)>,
}

impl Model {
    pub(crate) fn new(plan: Option<String>, by: String, now: Time) -> Self {
        let focus = if plan.is_some() { Focus::Steps } else { Focus::Plans };
        Self {
            now,
            by,
            plans: Vec::new(),
            rows: Vec::new(),
            plan_id: plan,
            plan: None,
            is_missing: false,
            pinned: None,
            step_id: None,
            step: None,
            focus,
            view: View::Columns,
            search: String::new(),
            search_in: Focus::Plans,
            prompt: None,
            help: None,
            message: None,
            event: None,
            scroll: 0,
            is_mouse_on: true,
            is_loaded: false,
            shows_closed: false,
            run: None,
            output: None,
            hits: Vec::new(),
            dragged: None,
        }
    }

    /// Stores what was read. The selected plan stays selected as long as it exists. The selected step stays selected as
    /// long as it exists and matches the search.
    pub(crate) fn apply_loaded(&mut self, loaded: Loaded) {
        self.now = loaded.now;
        self.is_loaded = true;
        if let Some(plans) = loaded.plans {
            self.put_plans(plans, loaded.plan.as_deref());
        }
        self.is_missing |=
            loaded.plan.is_none() && loaded.plan_asked.is_some() && loaded.plan_asked == self.plan_id;
        if let Some(plan) = loaded.plan.filter(|it| self.plan_id.as_ref() == Some(&it.plan.id)) {
            self.plan = Some(plan);
            self.keep_step_selected();
        }
        if let Some(step) = loaded.step.filter(|it| self.step_id.as_ref() == Some(&it.step.id)) {
            self.step = Some(step);
            self.output = loaded.output;
        }
        if let Some(error) = loaded.error {
            self.message = Some((Severity::Error, error));
        }
    }

    /// Stores the list of plans. The selected plan stays in the list as long as a plan with its id exists, even if the plan
    /// is closed. So the highlighted plan, the shown plan and the plan that keys change are always the same.
    fn put_plans(&mut self, plans: Vec<PlanShape>, read: Option<&ShownPlan>) {
        let own = self.plan_id.clone();
        let is_selected = |it: &PlanShape| Some(&it.id) == own.as_ref();
        let place = self.plan_rows().iter().position(|(it, _)| is_selected(it));
        let closed = match read {
            _ if plans.iter().any(is_selected) => None,
            Some(read) if is_selected(&read.plan) => Some(read.plan.clone()),
            // Another plan was read, so it is not known yet whether the selected one still exists.
            Some(_) => self.selected_plan().cloned(),
            None => None,
        };
        self.pinned = closed.as_ref().map(|it| it.id.clone());
        let is_gone = closed.is_none() && !plans.iter().any(is_selected);
        self.plans = plans.into_iter().chain(closed).collect();
        self.order();
        if is_gone {
            let rows = self.plan_rows();
            let next = rows.get(place.unwrap_or(0)).or(rows.last()).map(|(it, _)| it.id.clone());
            if self.plan_id.is_some() {
                // The plans get the focus, so that a key meant for a step of the removed plan cannot change a step of
                // another one.
                self.focus = Focus::Plans;
            }
            self.select_plan(next);
        }
    }

    /// Whether the selected plan is still being read and keys would act on its steps.
    pub(crate) fn is_reading(&self) -> bool {
        let is_wanted = self.plan_id.is_some() && self.plan.is_none() && !self.is_missing;
        self.is_loaded
            && is_wanted
            && self.focus != Focus::Plans
            && self.prompt.is_none()
            && self.help.is_none()
    }

    /// Whether the selected plan has steps. Until the plan is read, the list of plans determines this.
    pub(crate) fn has_steps(&self) -> bool {
        let of_list =
            || self.selected_plan().is_some_and(|it| it.steps_total > 0 && it.kind != PlanKind::Program);
        self.plan.as_ref().map_or_else(of_list, |it| !it.steps.is_empty())
    }

    /// Whether keys act on the plan, not on one of its steps.
    pub(crate) fn is_plan_target(&self) -> bool {
        self.focus == Focus::Plans || self.plan.as_ref().is_some_and(|it| it.steps.is_empty())
    }

    pub(crate) fn apply_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Done { text, steps } => {
                steps.into_iter().for_each(|it| self.put_step(&it));
                self.message = Some((Severity::Success, text));
            }
            Reply::Refused { text, step, again } => {
                step.into_iter().for_each(|it| self.put_step(&it));
                self.message = Some((Severity::Error, text));
                if let (None, Some(request)) = (&self.prompt, again) {
                    self.ask_words(request);
                }
            }
            Reply::Ask(prompt) => self.prompt = self.prompt.take().or(Some(prompt)),
        }
    }

    /// Asks for the text of a request. If the request already has a text, the user can edit that text.
    pub(crate) fn ask_words(&mut self, request: Request) {
        let (label, is_needed) = match request.action {
            Action::Move(Verb::Fail) => ("why does it fail", false),
            Action::Move(Verb::Block) => ("what blocks it", false),
            Action::Note => ("note", true),
            Action::Attempt => ("attempt (outcome: notes)", true),
            Action::Add => ("title of the new step", true),
            _ => ("text", false),
        };
        let label = format!("{label} · {}", request.id);
        let text = request.text.clone().unwrap_or_default();
        let kind = if is_needed { PromptKind::Needed(request) } else { PromptKind::Words(request) };
        self.prompt = Some(Prompt::new(label, kind).with_text(text));
    }

    fn put_step(&mut self, step: &StepShape) {
        let steps = self.plan.iter_mut().flat_map(|it| it.steps.iter_mut());
        for it in steps.filter(|it| it.id == step.id) {
            it.clone_from(step);
        }
    }

    /// Sorts the plans: first those that need attention, the most urgent at the top, then those with steps in progress,
    /// then those with ready steps, then the others. Children are below their program, in the same order. A program is as
    /// urgent as its most urgent child, if that is more urgent than the program itself.
    fn order(&mut self) {
        let urgency = |it: &PlanShape| {
            let rank = match () {
                () if it.steps_in_progress > 0 => 0,
                () if it.steps_ready > 0 => 1,
                () => 2,
            };
            // Plans that need no attention come after all others.
            (it.attention.is_none(), it.attention, rank)
        };
        let (mut tops, mut children) = plans::nested(&self.plans);
        let rank = |at: usize| {
            let own = urgency(&self.plans[at]);
            let below = children.get(self.plans[at].id.as_str()).into_iter().flatten();
            below.map(|it| urgency(&self.plans[*it])).min().map_or(own, |it| it.min(own))
        };
        let ranks: Vec<_> = (0..self.plans.len()).map(rank).collect();
        let by_rank = |at: &usize| ranks[*at];
        tops.sort_by_key(by_rank);
        children.values_mut().for_each(|it| it.sort_by_key(by_rank));
        let mut rows = Vec::new();
        for top in tops {
            rows.push((top, false));
            let below = children.get(self.plans[top].id.as_str()).into_iter().flatten();
            rows.extend(below.map(|it| (*it, true)));
        }
        self.rows = rows;
    }

    pub(crate) fn select_plan(&mut self, id: Option<String>) {
        if self.plan_id != id {
            self.plan = None;
            self.is_missing = false;
            self.select_step(None);
            if let Some(pinned) = self.pinned.take() {
                self.plans.retain(|it| it.id != pinned);
                self.order();
            }
            if self.search_in == Focus::Steps {
                self.search.clear();
            }
        }
        self.plan_id = id;
    }

    pub(crate) fn select_step(&mut self, id: Option<String>) {
        if self.step_id != id {
            (self.step, self.output) = (None, None);
            self.scroll = 0;
        }
        self.step_id = id;
    }

    pub(crate) fn steps(&self) -> &[StepShape] {
        self.plan.as_ref().map_or(&[], |it| it.steps.as_slice())
    }

    fn keep_step_selected(&mut self) {
        let shown = self.shown();
        let is_there = shown.iter().any(|it| Some(&it.id) == self.step_id.as_ref());
        if !is_there {
            // The first step of the first non-empty column, in this order of columns.
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

    /// The text of the search in lower case, if the search is for this part of the screen.
    fn search_in(&self, part: Focus) -> Option<String> {
        (self.search_in == part && !self.search.is_empty()).then(|| self.search.to_lowercase())
    }

    /// Changes the text of the search. The selection moves to a match, so that keys change only what is shown.
    pub(crate) fn search(&mut self, text: &str) {
        text.clone_into(&mut self.search);
        if self.search_in == Focus::Steps {
            return self.keep_step_selected();
        }
        let rows = self.plan_rows();
        let is_there = rows.iter().any(|(it, _)| Some(&it.id) == self.plan_id.as_ref());
        if let (false, Some((first, _))) = (is_there, rows.first()) {
            let first = first.id.clone();
            self.select_plan(Some(first));
        }
    }

    /// The steps that match the search; all steps if there is no search.
    pub(crate) fn shown(&self) -> Vec<&StepShape> {
        let steps = self.steps().iter();
        let Some(search) = self.search_in(Focus::Steps) else { return steps.collect() };
        let has = |text: &String| text.to_lowercase().contains(&search);
        let claimed = |it: &StepShape| it.claim.as_ref().and_then(|it| it.by.as_ref()).is_some_and(has);
        let people =
            |it: &StepShape| [&it.assignee, &it.held_by].into_iter().flatten().any(has) || claimed(it);
        steps.filter(|it| has(&it.id) || has(&it.title) || it.tags.iter().any(has) || people(it)).collect()
    }

    pub(crate) fn column(&self, column: Column) -> Vec<&StepShape> {
        self.shown().into_iter().filter(|it| Column::of(it) == column).collect()
    }

    /// The rows of plans that match the search; all rows if there is no search.
    pub(crate) fn plan_rows(&self) -> Vec<(&PlanShape, bool)> {
        let rows = self.rows.iter().map(|(at, is_child)| (&self.plans[*at], *is_child));
        let Some(search) = self.search_in(Focus::Plans) else { return rows.collect() };
        let has = |text: &String| text.to_lowercase().contains(&search);
        rows.filter(|(it, _)| has(&it.id) || has(&it.title) || it.people.iter().any(has)).collect()
    }

    /// Moves the selection by some lines within a column or a list, or scrolls the details.
    pub(crate) fn move_by(&mut self, by: isize) {
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
                let own = self.selected().map(Column::of).filter(|_| self.view == View::Columns);
                let steps = own.map_or_else(|| self.shown(), |it| self.column(it));
                let ids: Vec<_> = steps.iter().map(|it| &it.id).collect();
                let to = moved(&ids, self.step_id.as_ref());
                if to.is_some() {
                    self.select_step(to);
                }
            }
        }
    }

    /// Moves to the next non-empty column, if the columns have the focus. If they do not, or if there is no such column,
    /// moves to the next part of the screen.
    pub(crate) fn move_sideways(&mut self, is_right: bool) {
        if self.focus == Focus::Steps
            && self.view == View::Columns
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
            (Focus::Plans, true) if !self.has_steps() => Focus::Details,
            (Focus::Plans, true) => Focus::Steps,
            (Focus::Steps | Focus::Details, true) => Focus::Details,
            (Focus::Details, false) if self.step_id.is_some() => Focus::Steps,
            (_, false) => Focus::Plans,
        };
    }
}
