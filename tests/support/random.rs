//! Random numbers from a seed, and the keys, words and comments of random front matters.

/// SplitMix64 (Steele, Lea, Flood 2014), which gives the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((it ^ (it >> 31)) % end.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

pub(crate) const KEYS: [&str; 22] = [
    "status",
    "title",
    "depends",
    "attempts",
    "tags",
    "notes",
    "priority",
    "id",
    "claim",
    "phase",
    "metadata",
    "files",
    "名前",
    "título",
    "status_note",
    "x-y",
    "1",
    "a b",
    "key#1",
    "updated",
    "goals",
    "2.5",
];

pub(crate) const WORDS: [&str; 44] = [
    "pending",
    "in_progress",
    "a b c",
    "it's",
    "http://x/#y",
    "a#b",
    "2.10",
    "014",
    "0x1F",
    "1_000",
    "12:30:45",
    "2026-11-21T09:14:03Z",
    "2026-01-01",
    "yes",
    "no",
    "off",
    "true",
    "False",
    "~",
    "null",
    ".nan",
    "-.inf",
    "1e3",
    "-a",
    "a:b",
    "é漢🎉",
    "nbsp\u{a0}x",
    "a, b",
    "a]b",
    "-1",
    "+1",
    ".5",
    "!x",
    "?x",
    "x?",
    ":x",
    "a\\b",
    "a\tb",
    "\"",
    "x y  z",
    "50%",
    "v1.2.3",
    "e\u{301}",
    "\u{200b}z",
];

pub(crate) const COMMENTS: [&str; 6] = ["# c", "#", "# status: pending", "# - at: x", "#!x ", "# \"'"];
