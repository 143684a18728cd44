//! Positions of nodes and paths of edges, computed by the crate `dagre`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Point, RankDir, layout};

const NODE_HEIGHT: f64 = 32.0;
const MARGIN: f64 = 4.0;
/// The distance from a bend at which its rounding begins, in pixels.
const ROUNDING: f64 = 7.0;

/// The upper left corner of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
}

/// An edge as path data: its line, and its arrow head.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    pub line: String,
    pub head: String,
}

/// The positions of nodes and edges in pixels, rounded to one decimal.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub width: f64,
    pub height: f64,
    pub node_width: f64,
    pub node_height: f64,
    /// In the order of the graph's nodes.
    pub places: Vec<Place>,
    /// In the order of the graph's edges.
    pub edges: Vec<Way>,
}

/// The direction from a step to those that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the right, as on a screen.
    Right,
    /// Down, as on paper.
    Down,
}

/// Lays out `nodes` nodes of the same width. `None` if there are none, or if the library panics or finds no positions.
pub(super) fn of(
    nodes: usize,
    edges: &BTreeSet<(usize, usize)>,
    node_width: usize,
    direction: Direction,
) -> Option<Layout> {
    if nodes == 0 {
        return None;
    }
    let width = f64::from(u32::try_from(node_width).ok()?);
    catch_unwind(AssertUnwindSafe(|| laid_out(nodes, edges, width, direction))).ok().flatten()
}

/// The layout is always computed from left to right. For [`Direction::Down`], width and height are swapped before the
/// layout, and x and y after it.
fn laid_out(
    nodes: usize,
    edges: &BTreeSet<(usize, usize)>,
    node_width: f64,
    direction: Direction,
) -> Option<Layout> {
    let (width, height) = match direction {
        Direction::Right => (node_width, NODE_HEIGHT),
        Direction::Down => (NODE_HEIGHT, node_width),
    };
    let mut graph = Graph::with_options(GraphOptions { directed: true, multigraph: false, compound: false });
    for node in 0..nodes {
        let label = NodeLabel { width, height, ..NodeLabel::default() };
        graph.set_node(node.to_string(), Some(label));
    }
    // The library would merge two opposite edges, so it gets only one of them. Both are drawn along the same line, each with
    // its own head.
    let is_opposite = |(from, to): &(usize, usize)| from > to && edges.contains(&(*to, *from));
    for (from, to) in edges.iter().filter(|it| !is_opposite(it)) {
        graph.set_edge(from.to_string(), to.to_string(), Some(EdgeLabel::default()), None);
    }
    let options = LayoutOptions {
        rankdir: RankDir::LR,
        nodesep: 14.0,
        edgesep: 10.0,
        ranksep: 44.0,
        marginx: MARGIN,
        marginy: MARGIN,
        ..LayoutOptions::default()
    };
    layout(&mut graph, Some(options));
    let centre = |node: usize| {
        let node = graph.node(&node.to_string())?;
        Some(Point::new(node.x?, node.y?)).filter(|it| it.x.is_finite() && it.y.is_finite())
    };
    let centres: Vec<Point> = (0..nodes).map(centre).collect::<Option<_>>()?;
    let ranks: BTreeSet<i64> = centres.iter().map(|it| whole(it.x)).collect();
    let mut ways = Vec::with_capacity(edges.len());
    for edge in edges {
        let (from, to) = if is_opposite(edge) { (edge.1, edge.0) } else { *edge };
        let drawn = graph.edge(&from.to_string(), &to.to_string(), None)?;
        let mut way = widened(&centres[from], &centres[to], &drawn.points, &ranks, width);
        if is_opposite(edge) {
            way.reverse();
        }
        ways.push(way);
    }
    if direction == Direction::Down {
        let turned = |it: &Point| Point::new(it.y, it.x);
        let centres: Vec<_> = centres.iter().map(turned).collect();
        let ways: Vec<Vec<_>> = ways.iter().map(|way| way.iter().map(turned).collect()).collect();
        return Some(placed(&centres, &ways, node_width, direction));
    }
    Some(placed(&centres, &ways, node_width, direction))
}

#[expect(clippy::cast_possible_truncation, reason = "coordinates are far below the limit")]
fn whole(x: f64) -> i64 {
    x.round() as i64
}

/// The path of an edge: horizontal where it passes nodes, slanted only in the gaps between the ranks, which are
/// columns of nodes.
fn widened(from: &Point, to: &Point, bends: &[Point], ranks: &BTreeSet<i64>, width: f64) -> Vec<Point> {
    // In a cycle at least one edge runs backwards.
    let half = if from.x <= to.x { width / 2.0 } else { -width / 2.0 };
    let mut way = vec![Point::new(from.x + half, from.y)];
    let (low, high) = (from.x.min(to.x) + 1.0, from.x.max(to.x) - 1.0);
    for bend in bends.iter().filter(|it| ranks.contains(&whole(it.x)) && low < it.x && it.x < high) {
        way.push(Point::new(bend.x - half, bend.y));
        way.push(Point::new(bend.x + half, bend.y));
    }
    way.push(Point::new(to.x - half, to.y));
    way
}

/// Moves everything so that the drawing begins at the margin, and rounds the coordinates.
fn placed(centres: &[Point], ways: &[Vec<Point>], width: f64, direction: Direction) -> Layout {
    let all = || centres.iter().chain(ways.iter().flatten());
    let least = |of: fn(&Point) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Point) -> f64| all().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (half_width, half_height) = (width / 2.0, NODE_HEIGHT / 2.0);
    let left = least(|it| it.x) - half_width - MARGIN;
    let top = least(|it| it.y) - half_height - MARGIN;
    let place =
        |it: &Point| Place { x: rounded(it.x - half_width - left), y: rounded(it.y - half_height - top) };
    let moved = |it: &Point| Point::new(rounded(it.x - left), rounded(it.y - top));
    let way = |it: &Vec<Point>| {
        let points: Vec<Point> = it.iter().map(moved).collect();
        Way { line: line(&points), head: head(&points, direction) }
    };
    Layout {
        width: rounded(most(|it| it.x) + half_width + MARGIN - left),
        height: rounded(most(|it| it.y) + half_height + MARGIN - top),
        node_width: width,
        node_height: NODE_HEIGHT,
        places: centres.iter().map(place).collect(),
        edges: ways.iter().map(way).collect(),
    }
}

fn rounded(x: f64) -> f64 {
    let rounded = (x * 10.0).round() / 10.0;
    // `-0` would be printed with its sign.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// A line with rounded bends.
fn line(points: &[Point]) -> String {
    let mut path = String::new();
    let [first, .., last] = points else { return path };
    write!(path, "M{} {}", first.x, first.y).ok();
    for bend in points.windows(3) {
        let [before, at, after] = bend else { continue };
        let (start, end) = (towards(at, before), towards(at, after));
        write!(path, "L{} {}Q{} {} {} {}", start.x, start.y, at.x, at.y, end.x, end.y).ok();
    }
    write!(path, "L{} {}", last.x, last.y).ok();
    path
}

/// The point on the way from `from` to `to` that is [`ROUNDING`] away from `from`, but not beyond the middle.
fn towards(from: &Point, to: &Point) -> Point {
    let length = (to.x - from.x).hypot(to.y - from.y);
    if length == 0.0 {
        return from.clone();
    }
    let share = ROUNDING.min(length / 2.0) / length;
    Point::new(rounded(from.x + (to.x - from.x) * share), rounded(from.y + (to.y - from.y) * share))
}

/// An arrow head at the end of a line.
fn head(points: &[Point], direction: Direction) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let back = |from: f64, to: f64| if from <= to { -7.0 } else { 7.0 };
    match direction {
        Direction::Right => {
            let x = rounded(last.x + back(first.x, last.x));
            let (above, below) = (rounded(last.y - 3.5), rounded(last.y + 3.5));
            format!("M{} {}L{x} {above}L{x} {below}Z", last.x, last.y)
        }
        Direction::Down => {
            let y = rounded(last.y + back(first.y, last.y));
            let (left, right) = (rounded(last.x - 3.5), rounded(last.x + 3.5));
            format!("M{} {}L{left} {y}L{right} {y}Z", last.x, last.y)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Edges = BTreeSet<(usize, usize)>;

    /// Fixed graphs, and a pseudo-random one.
    fn samples() -> Vec<(usize, Edges)> {
        let mut seed = 7_usize;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let many = (0..60).map(|_| (next(30), next(30))).filter(|(a, b)| a < b).collect();
        vec![
            (1, BTreeSet::new()),
            (3, BTreeSet::new()),
            (4, [(0, 1), (0, 2), (1, 3), (2, 3)].into()),
            (5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)].into()),
            (3, [(0, 1), (1, 2), (2, 0)].into()),
            (3, [(0, 1), (1, 0), (1, 2), (2, 1)].into()),
            (30, many),
        ]
    }

    fn both() -> Vec<(usize, Edges, Direction)> {
        let ways = [Direction::Right, Direction::Down];
        samples().into_iter().flat_map(|(nodes, edges)| ways.map(|it| (nodes, edges.clone(), it))).collect()
    }

    #[test]
    fn nodes_do_not_overlap_and_are_inside() {
        for (nodes, edges, direction) in both() {
            let layout = of(nodes, &edges, 100, direction).expect("it has a layout");
            assert_eq!((layout.places.len(), layout.edges.len()), (nodes, edges.len()));
            for (nth, a) in layout.places.iter().enumerate() {
                assert!(a.x >= 0.0 && a.y >= 0.0);
                assert!(a.x + 100.0 <= layout.width && a.y + NODE_HEIGHT <= layout.height);
                let is_apart = |b: &Place| (a.x - b.x).abs() >= 100.0 || (a.y - b.y).abs() >= NODE_HEIGHT;
                assert!(layout.places[nth + 1..].iter().all(is_apart));
            }
        }
    }

    #[test]
    fn the_same_graph_has_the_same_layout() {
        for (nodes, edges) in samples() {
            let layout = |direction| of(nodes, &edges, 140, direction);
            assert_eq!(layout(Direction::Right), layout(Direction::Right));
            assert_eq!(layout(Direction::Down), layout(Direction::Down));
        }
        assert_eq!(of(0, &BTreeSet::new(), 100, Direction::Right), None);
    }

    #[test]
    fn no_line_passes_through_a_node() {
        for (nodes, edges, direction) in both().into_iter().filter(|it| it.0 != 3) {
            let layout = of(nodes, &edges, 100, direction).unwrap();
            for (edge, way) in edges.iter().zip(&layout.edges) {
                let numbers: Vec<f64> = way
                    .line
                    .split(|c: char| c.is_ascii_alphabetic() || c == ' ')
                    .filter_map(|it| it.parse().ok())
                    .collect();
                for point in numbers.chunks_exact(2) {
                    let is_through = |nth: usize, it: &Place| {
                        nth != edge.0
                            && nth != edge.1
                            && it.x + 1.0 < point[0]
                            && point[0] < it.x + 99.0
                            && it.y + 1.0 < point[1]
                            && point[1] < it.y + NODE_HEIGHT - 1.0
                    };
                    assert!(
                        !layout.places.iter().enumerate().any(|(nth, it)| is_through(nth, it)),
                        "{edge:?}"
                    );
                }
            }
        }
    }
}
