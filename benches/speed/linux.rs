//! The command line, the corpora and the order of the measurements. Each group of figures has a file below.

mod claims;
mod clients;
mod corpus;
mod daemon;
mod figures;
mod floors;
mod history;
mod ours;
mod shapes;
mod walks;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use corpus::{Corpus, Statuses};
use ours::Ours;

/// One run: the selected figures, and the corpora created for them.
struct Bench {
    wanted: Vec<String>,
    rounds: usize,
    is_quick: bool,
    place: PathBuf,
    ours: Ours,
    n_plans: usize,
    big: OnceLock<Corpus>,
    small: OnceLock<Corpus>,
    middle: OnceLock<Corpus>,
    claimed: OnceLock<Corpus>,
}

/// The number of plans of a corpus of the size S. Two corpora have this size: `small`, and `claimed`, whose steps are all
/// ready.
const SMALL: usize = 100;

/// The number of plans of the corpus with 11,000 files.
const MIDDLE: usize = 1_000;

pub(crate) fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == "--client") {
        return clients::run(&arguments[1..]);
    }
    let options = Options::read(&arguments);
    let temporary = options.kept.is_none().then(|| tempfile::tempdir().expect("a temporary directory"));
    let place = temporary.as_ref().map_or_else(PathBuf::new, |it| it.path().to_path_buf());
    let place = options.kept.clone().unwrap_or(place);
    let bench = Bench {
        ours: Ours::find(&place),
        wanted: options.wanted,
        rounds: if options.is_quick { 3 } else { 5 },
        is_quick: options.is_quick,
        n_plans: options.n_plans,
        big: OnceLock::new(),
        small: OnceLock::new(),
        middle: OnceLock::new(),
        claimed: OnceLock::new(),
        place,
    };
    bench.run();
}

impl Bench {
    fn run(&self) {
        println!(
            "{} plans of 10 steps, {} rounds; medians. x: multiple of the floor.",
            self.n_plans, self.rounds
        );
        figures::print_head();
        walks::run(self);
        daemon::run(self);
        writes::run(self);
        claims::run(self);
        shapes::run(self);
        history::run(self);
    }

    fn wants(&self, id: &str) -> bool {
        let is_check = id == "--at-rest";
        self.is_named(id) || (self.wanted.is_empty() && !(is_check && self.is_quick))
    }

    fn is_named(&self, id: &str) -> bool {
        self.wanted.iter().any(|it| it == id)
    }

    fn wants_any(&self, ids: &[&str]) -> bool {
        ids.iter().any(|it| self.wants(it))
    }

    fn big(&self) -> &Corpus {
        self.big.get_or_init(|| self.corpus("big", self.n_plans, Statuses::Usual))
    }

    fn small(&self) -> &Corpus {
        self.small.get_or_init(|| self.corpus("small", SMALL, Statuses::Usual))
    }

    fn middle(&self) -> &Corpus {
        self.middle.get_or_init(|| self.corpus("middle", MIDDLE, Statuses::AllReady))
    }

    fn claimed(&self) -> &Corpus {
        self.claimed.get_or_init(|| self.corpus("claimed", SMALL, Statuses::AllReady))
    }

    fn corpus(&self, name: &str, n_plans: usize, statuses: Statuses) -> Corpus {
        Corpus::make(&self.place.join(format!("{name}-{n_plans}")), n_plans, statuses)
    }

    fn corpus_of(&self, name: &str, n_plans: usize) -> Corpus {
        self.corpus(name, n_plans, Statuses::Usual)
    }

    fn state(&self) -> &Path {
        &self.ours.state
    }
}

/// The command line of `scripts/bench`.
struct Options {
    wanted: Vec<String>,
    is_quick: bool,
    n_plans: usize,
    /// The directory of the corpora. Missing corpora are created, and none is removed.
    kept: Option<PathBuf>,
}

impl Options {
    fn read(arguments: &[String]) -> Self {
        let mut options = Self { wanted: Vec::new(), is_quick: false, n_plans: 0, kept: None };
        let mut rest = arguments.iter();
        while let Some(it) = rest.next() {
            match (it.as_str(), it.parse()) {
                ("--quick", _) => options.is_quick = true,
                // Cargo passes `--bench` to every benchmark.
                ("--bench", _) => {}
                ("--keep", _) => options.kept = rest.next().map(PathBuf::from),
                (_, Ok(n_plans)) => options.n_plans = n_plans,
                (id, _) => options.wanted.push(id.to_owned()),
            }
        }
        if options.n_plans == 0 {
            options.n_plans = if options.is_quick { 1_000 } else { 10_000 };
        }
        options
    }
}
