//! The addresses in a page: links lead to plans and steps on the page itself or on other pages of the site, and images in
//! the plans directory are embedded.

use std::collections::BTreeSet;
use std::path::Path;

use crate::api::context::Context;
use crate::page::address::{self, Target, encoded};
use crate::page::images;
use crate::page::markdown::Addresses;
use crate::plan::id::{PlanId, StepId, read_step_id};

/// The pages of a site, as seen from one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    /// The plans that have a page.
    pub(super) plans: &'a BTreeSet<String>,
    /// The relative address of the directory of the plans' pages, as seen from the page.
    pub(super) way: &'static str,
}

/// What a page can link to.
pub(super) struct Reach<'a> {
    pub(super) context: &'a Context,
    /// The plan that the page is about, and the numbers of its steps.
    pub(super) own: Option<(String, BTreeSet<String>)>,
    /// None: the page stands alone.
    pub(super) site: Option<Site<'a>>,
}

impl Reach<'_> {
    /// The address of a step.
    pub(super) fn step(&self, id: &str) -> Option<String> {
        self.step_of(&read_step_id(id)?)
    }

    fn step_of(&self, id: &StepId) -> Option<String> {
        let number = id.number.to_string();
        match &self.own {
            Some((plan, numbers)) if id.plan.as_str() == plan => {
                numbers.contains(&number).then(|| format!("#step-{number}"))
            }
            _ => Some(format!("{}#step-{number}", self.page(id.plan.as_str())?)),
        }
    }

    pub(super) fn plan(&self, id: &str) -> Option<String> {
        match &self.own {
            Some((plan, _)) if plan == id => Some("#top".to_owned()),
            _ => self.page(id),
        }
    }

    /// The address of another page of the site.
    fn page(&self, plan: &str) -> Option<String> {
        let site = self.site.filter(|it| it.plans.contains(plan))?;
        Some(format!("{}{}.html", site.way, encoded(plan)))
    }
}

/// Resolves the links and images in a file's text. `directory` is the file's directory, relative to the plans
/// directory.
pub(super) struct InText<'a> {
    pub(super) reach: &'a Reach<'a>,
    pub(super) directory: &'a str,
}

impl Addresses for InText<'_> {
    fn link(&self, target: &str) -> Option<String> {
        match address::read(self.directory, target)? {
            Target::Step(id) => self.reach.step_of(&id),
            Target::Plan(id) => self.reach.plan(PlanId::as_str(&id)),
            _ => None,
        }
    }

    fn image(&self, target: &str) -> Option<String> {
        let Some(Target::File(path)) = address::read(self.directory, target) else { return None };
        images::data_address(&self.reach.context.plans.read(Path::new(&path)).ok()?.bytes)
    }
}
