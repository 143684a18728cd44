//! The dependencies of a plan as SVG, and as a list for people who cannot see the drawing.
//!
//! [`Graph::of`] selects what is drawn, [`Graph::layout`] computes the positions, which takes up to 0.3 s, and [`svg`]
//! draws. Graphs with the same [`Graph::key`] have the same layout, so a layout can be cached or computed elsewhere.

mod edges;
mod layout;
mod view;

use std::collections::BTreeSet;

use maud::{Markup, html};

use layout::Direction;
pub use layout::{Layout, Place};
pub use view::{MOST_READABLE, MOST_WHOLE, View};

use super::look::Look;
use super::text;
use crate::api::views::{PlanShape, StepShape};

/// The maximum width of a title in a node, in columns.
const TITLE_COLUMNS: usize = 24;

/// The largest width, in pixels, of a drawing that is scaled down to fit a screen. A wider one would be too small to read.
const MOST_FITTING: f64 = 1500.0;
/// The largest width and height, in pixels, of a drawing that can be read on a printed page.
pub const MOST_PRINTED: (f64, f64) = (1300.0, 1900.0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Step,
    /// A step of another plan (only its id is known), or a step that does not exist.
    Foreign,
    /// A phase, with the number of its closed steps and of all its steps.
    Phase {
        closed: usize,
        total: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The step's id, or the phase's name; empty for the node that stands for all steps without a phase.
    pub id: String,
    /// The number of a step, which is shown before its title; empty for the other kinds.
    pub number: String,
    pub title: String,
    pub look: Look,
    pub kind: Kind,
}

/// The nodes that are drawn, and the edges of their dependencies: from the node that comes first to the node that waits for
/// it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// Without the edges that other edges imply.
    pub edges: BTreeSet<(usize, usize)>,
    /// How many steps were left out because the drawing is full.
    pub left_out: usize,
    /// The node whose neighbourhood is drawn, if the drawing shows one.
    pub centre: Option<usize>,
}

impl Graph {
    /// Selects what a view of a plan shows. `None`: this is too much to draw, or the plan does not have the steps that the
    /// view names.
    pub fn of(plan: &PlanShape, steps: &[StepShape], view: View<'_>) -> Option<Self> {
        let mut graph = view::select(plan, steps, view)?;
        edges::reduce(&mut graph);
        Some(graph)
    }

    /// A hash of all that the layout depends on.
    pub fn key(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        // The first number is a version. It must be raised when a new release lays out the same graph differently.
        hasher.update(format!("1 {} {}", self.nodes.len(), self.node_width()).as_bytes());
        for (from, to) in &self.edges {
            hasher.update(format!(" {from}-{to}").as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Computes the positions. `None`: there are no nodes, or the layout failed. In both cases, the list is shown instead.
    pub fn layout(&self) -> Option<Layout> {
        layout::of(self.nodes.len(), &self.edges, self.node_width(), Direction::Right)
    }

    /// Like [`Self::layout`], but from top to bottom, because paper is higher than it is wide.
    pub fn layout_down(&self) -> Option<Layout> {
        layout::of(self.nodes.len(), &self.edges, self.node_width(), Direction::Down)
    }

    /// All nodes have the width of the widest one.
    fn node_width(&self) -> usize {
        let most = self.nodes.iter().map(|it| text::columns(&it.label())).max().unwrap_or(0);
        // In a font of 12 px, a column is at most 7 px wide. The 36 px are for the mark and the margins.
        (most * 7 + 36).max(80)
    }

    fn waits_for(&self, node: usize) -> Vec<&Node> {
        let before = self.edges.iter().filter(|(_, to)| *to == node);
        before.map(|(from, _)| &self.nodes[*from]).collect()
    }
}

impl Node {
    /// The text in the box.
    fn label(&self) -> String {
        let number = text::clip(&self.number, 8);
        let title = text::clip(&self.title, TITLE_COLUMNS);
        let counts = match self.kind {
            Kind::Phase { closed, total } => format!(" {closed}/{total}"),
            _ => String::new(),
        };
        format!("{number} {title}{counts}").trim().to_owned()
    }

    /// The full text, for a tool tip and for a screen reader.
    fn description(&self) -> String {
        let name = text::one_line(&format!("{} {}", self.number, self.title));
        match self.kind {
            Kind::Foreign => name,
            Kind::Step => format!("{name} ({})", self.look.words()),
            Kind::Phase { closed, total } => format!("{name} ({closed} of {total} steps closed)"),
        }
    }

    fn class(&self) -> String {
        let kind = match self.kind {
            Kind::Step => "step",
            Kind::Foreign => "foreign",
            Kind::Phase { .. } => "phase",
        };
        format!("node {kind} {}", self.look.class())
    }
}

/// Draws a graph at the positions of its layout. `href` returns the address that a node links to, if there is one.
pub fn svg(graph: &Graph, layout: &Layout, label: &str, href: &dyn Fn(&Node) -> Option<String>) -> Markup {
    let (width, height) = (layout.width.to_string(), layout.height.to_string());
    // A drawing that is a little too wide for a screen is scaled down, as long as it can be read.
    let class = if (900.0..=MOST_FITTING).contains(&layout.width) { "graph fits" } else { "graph" };
    html! {
        div.scroll.graph-scroll tabindex="0" role="group" aria-label=(label) {
            svg class=(class) xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width)
                height=(height) role="group" aria-label=(label) {
                g.edges aria-hidden="true" {
                    @for edge in &layout.edges {
                        path.edge d=(edge.line) {}
                        path.head d=(edge.head) {}
                    }
                }
                @for (nth, (node, place)) in graph.nodes.iter().zip(&layout.places).enumerate() {
                    @let drawn = drawn(node, place, layout, graph.centre == Some(nth));
                    @match href(node) {
                        Some(address) => { a href=(address) { (drawn) } }
                        None => { g { (drawn) } }
                    }
                }
            }
        }
    }
}

fn drawn(node: &Node, place: &Place, layout: &Layout, is_centre: bool) -> Markup {
    let mark = if node.kind == Kind::Foreign { '↗' } else { node.look.mark() };
    let class = node.class() + if is_centre { " centre" } else { "" };
    let (width, height) = (layout.node_width, layout.node_height);
    // The inner `svg` element clips a text that is too wide for the node in the reader's font.
    html! {
        title { (node.description()) }
        svg x=(place.x) y=(place.y) width=(width) height=(height) class=(class) {
            rect x="1" y="1" width=(width - 2.0) height=(height - 2.0) rx="6" {}
            text.mark x="9" y="21" aria-hidden="true" { (mark) }
            text x="26" y="21" { (node.label()) }
        }
    }
}

/// The graph as a list: each step or phase of the plan with its status and what it waits for.
pub fn list(graph: &Graph, href: &dyn Fn(&Node) -> Option<String>) -> Markup {
    let name = |node: &Node| if node.number.is_empty() { node.title.clone() } else { node.number.clone() };
    html! {
        ul.graph-list {
            @for (nth, node) in graph.nodes.iter().enumerate().filter(|(_, it)| it.kind != Kind::Foreign) {
                li {
                    @match href(node) {
                        Some(address) => { a href=(address) { bdi { (node.description()) } } }
                        None => { bdi { (node.description()) } }
                    }
                    @let before = graph.waits_for(nth);
                    @if !before.is_empty() {
                        " after "
                        @for (nth, it) in before.iter().enumerate() {
                            @if nth > 0 { ", " }
                            (text::isolated(&name(it)))
                        }
                    }
                }
            }
        }
    }
}

/// The drawing with the list below it; only the list if there is no layout.
pub fn figure(
    graph: &Graph,
    layout: Option<&Layout>,
    label: &str,
    href: &dyn Fn(&Node) -> Option<String>,
) -> Markup {
    html! {
        figure.graph-figure {
            @match layout {
                Some(layout) => {
                    (svg(graph, layout, label, href))
                    details { summary { "As a list" } (list(graph, href)) }
                }
                None => (list(graph, href)),
            }
            @if graph.left_out > 0 { figcaption { (graph.left_out) " more steps are not shown." } }
        }
    }
}
