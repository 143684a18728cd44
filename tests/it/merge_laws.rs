//! Laws of merging, tested with random versions of plan files. `PLANWATCH_MERGES=1000000` sets the number of merges.

#![expect(clippy::disallowed_methods, reason = "the number of merges comes from the environment")]

mod law;

use crate::random::Random;

const MERGES: usize = 3000;

const HEADER: [&str; 24] = [
    "id: auth:2\n",
    "status: pending\n",
    "status: completed # now\n",
    "status: in_progress\n",
    "title: Schema\n",
    "title: Tables\n",
    "priority: high\n",
    "depends: [1, 3]\n",
    "depends:\n  - 1\n  - step-4\n",
    "tags: [db]\n",
    "claim: {id: g1, by: ann, at: 2026-01-01T00:00:00Z}\n",
    "claim: {id: g2, by: bob, at: 2026-01-02T00:00:00Z}\n",
    "attempts:\n  - at: 2026-01-01T00:00:00Z\n    by: ann\n    outcome: completed\n",
    "attempts:\n  - at: 2026-01-02T00:00:00Z\n    by: bob\n    outcome: failed\n",
    "  - at: 2026-01-03T00:00:00Z\n    outcome: reopened\n",
    "notes:\n  - at: 2026-01-02T00:00:00Z\n    text: look\n",
    "notes: look\n",
    "confirmed: {by: ann, at: 2026-01-01T00:00:00Z}\n",
    "created_at: 2026-01-01T00:00:00Z\n",
    "created_at: 2026-01-02T00:00:00Z\n",
    "custom: {a: 1}\n",
    "custom: >\n  two\n  lines\n",
    "# a comment\n",
    "\n",
];

const BODY: [&str; 20] = [
    "# Schema\n",
    "# Tables\n",
    "# Schema and tables\n",
    "# Tests\n",
    "## Tasks\n",
    "- [ ] one\n",
    "- [x] one\n",
    "- [ ] two\n",
    "## Steps\n",
    "- step-1: One\n",
    "- step-2: Two\n",
    "- step-2: Second\n",
    "- step-2.5: Between\n",
    "Some words.\n",
    "Other words.\n",
    "Title\n=====\n",
    "```\n# no heading\n```\n",
    "- [ ] no end",
    "---\n",
    "\n",
];

/// Some of these parts.
fn parts(random: &mut Random, of: &[&'static str], most: usize) -> Vec<&'static str> {
    (0..random.below(most)).map(|_| random.pick(of)).collect()
}

/// The parts after some were added, removed or replaced.
fn changed(random: &mut Random, parts: &[&'static str], of: &[&'static str]) -> Vec<&'static str> {
    let mut new = parts.to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(new.len() + 1);
        match random.below(4) {
            0 | 1 => new.insert(at, random.pick(of)),
            2 if at < new.len() => drop(new.remove(at)),
            _ if at < new.len() => new[at] = random.pick(of),
            _ => {}
        }
    }
    new
}

fn file(random: &mut Random, header: &[&str], body: &[&str]) -> Vec<u8> {
    let text = format!("---\n{}---\n{}", header.concat(), body.concat());
    if random.one_in(8) { text.replace('\n', "\r\n").into_bytes() } else { text.into_bytes() }
}

#[test]
fn random_merges_keep_the_laws() {
    let wanted = std::env::var("PLANWATCH_MERGES").ok().and_then(|it| it.parse().ok()).unwrap_or(MERGES);
    let (mut failures, mut n_clean, mut n_failed) = (Vec::new(), 0, 0);
    for seed in 0..wanted as u64 {
        let mut random = Random::new(seed);
        let (header, body) = (parts(&mut random, &HEADER, 8), parts(&mut random, &BODY, 10));
        let base = file(&mut random, &header, &body);
        let [ours, theirs] = [(); 2].map(|()| {
            let (header, body) = (changed(&mut random, &header, &HEADER), changed(&mut random, &body, &BODY));
            file(&mut random, &header, &body)
        });
        let path = random.pick(&["plans/auth/step-2.md", "plans/auth/plan.md", "plans/auth/notes.md"]);
        match law::check(path, &base, &ours, &theirs) {
            Ok(is_clean) => n_clean += usize::from(is_clean),
            Err(why) => {
                n_failed += 1;
                let shown = [&base, &ours, &theirs].map(|it| String::from_utf8_lossy(it).into_owned());
                failures.push(format!("seed {seed}, {path}: {why}\n{}", shown.join("\n~~~~\n")));
                failures.truncate(5);
            }
        }
    }
    println!("{n_clean} of {wanted} merges are clean");
    assert!(failures.is_empty(), "{n_failed} of {wanted}\n{}", failures.join("\n\n"));
    assert!(n_clean * 10 > wanted, "only {n_clean} of {wanted} merges are clean");
}
