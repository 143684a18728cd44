//! Medians, and the lines of the table.

/// The required value of a figure and its goal, if it has them. They are multiples of its floor; without a floor, they are
/// absolute values.
#[derive(Clone, Copy)]
pub(crate) struct Bar {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) floor: &'static str,
    pub(crate) must: Option<f64>,
    pub(crate) goal: Option<f64>,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Measured in seconds; less is better.
    Milliseconds,
    /// More is better.
    PerSecond,
    /// Less is better; mostly without a floor.
    Mebibytes,
    /// A number of page faults; less is better.
    Faults,
}

/// One figure, with the values of each round: planwatch's and the floor's.
pub(crate) struct Figure {
    bar: Bar,
    rounds: Vec<(f64, f64)>,
}

pub(crate) fn bar(
    id: &'static str,
    what: &'static str,
    floor: &'static str,
    must: f64,
    goal: f64,
    unit: Unit,
) -> Figure {
    Bar { id, what, floor, must: Some(must), goal: Some(goal), unit }.figure()
}

impl Bar {
    pub(crate) fn figure(self) -> Figure {
        Figure { bar: self, rounds: Vec::new() }
    }
}

impl Figure {
    pub(crate) fn add(&mut self, ours: f64, floor: f64) {
        self.rounds.push((ours, floor));
    }

    /// Adds a value without a floor.
    pub(crate) fn note(&mut self, ours: f64) {
        self.add(ours, 1.0);
    }

    pub(crate) fn print(&self) {
        if self.rounds.is_empty() {
            return;
        }
        let ratios: Vec<f64> = self.rounds.iter().map(|(ours, floor)| ours / floor).collect();
        let (ratio, least, most) = (middle(&ratios), share(&ratios, 0.0), share(&ratios, 1.0));
        let ours = middle(&self.rounds.iter().map(|it| it.0).collect::<Vec<_>>());
        let floor = middle(&self.rounds.iter().map(|it| it.1).collect::<Vec<_>>());
        let Bar { id, what, floor: name, must, goal, unit } = self.bar;
        let number = |it: Option<f64>| it.map_or_else(|| "-".to_owned(), |it| format!("{it}"));
        let shown = match name {
            "" => format!("{ratio:8.1} MiB      "),
            _ => format!("{ratio:8.2} x {name:10}"),
        };
        let beside = match unit {
            Unit::Milliseconds => format!("{:.2} ms : {:.2} ms", ours * 1e3, floor * 1e3),
            Unit::PerSecond => format!("{ours:.0}/s : {floor:.0}/s"),
            Unit::Mebibytes if name.is_empty() => String::new(),
            Unit::Mebibytes => format!("{ours:.1} MiB : {floor:.1} MiB"),
            Unit::Faults => format!("{ours:.0} : {floor:.0}"),
        };
        println!(
            "{id:4}{what:46}{shown} must {:>5} goal {:>5}  {:12} {least:.2}–{most:.2}  {beside}",
            number(must),
            number(goal),
            self.verdict(ratio),
        );
    }

    fn verdict(&self, ratio: f64) -> &'static str {
        let reaches = |bar: f64| if self.bar.unit == Unit::PerSecond { ratio >= bar } else { ratio <= bar };
        match (self.bar.must, self.bar.goal) {
            (None, None) => "",
            (Some(must), _) if !reaches(must) => "MISSED",
            (_, Some(goal)) if !reaches(goal) => "goal missed",
            _ => "ok",
        }
    }
}

pub(crate) fn print_head() {
    println!("{:82}must, goal, verdict, least–most of the rounds, ours : floor", "");
}

pub(crate) fn middle(values: &[f64]) -> f64 {
    share(values, 0.5)
}

/// The value below which this share of all values lies.
pub(crate) fn share(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short list")]
    let place = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[place]
}

pub(crate) fn median(n: usize, measure: impl FnMut(usize) -> f64) -> f64 {
    middle(&(0..n).map(measure).collect::<Vec<_>>())
}
