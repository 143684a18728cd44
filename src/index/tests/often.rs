//! Words that occur in very many documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::texts::put;
use crate::index::common_terms::{Listing, MANY};
use crate::index::search::Document;
use crate::index::{FullText, Key, Match, Place, Query, Scope, Texts};

/// A plan of ten steps. Every document has `everywhere`, `much text` and `many` in its body. A few titles contain
/// `everywhere`. So many titles contain `many` that their matches are not ranked.
fn texts(n: usize) -> Texts {
    let document = |place: usize| {
        let mut title = format!("Step {place}");
        if n % 40 == 7 && place == 3 {
            title.push_str(" everywhere");
        }
        if place % 2 == 1 {
            title.push_str(" many");
        }
        Document::of_record("", &title, "it is everywhere, and with much text of many words", "")
    };
    let key = Key { is_archived: n % 50 == 1, name: format!("plan-{n:04}") };
    Texts {
        key,
        version: [u8::try_from(n % 256).unwrap_or(0); 16],
        documents: (0..=10).map(document).collect(),
    }
}

fn filled(batches: Vec<Vec<Texts>>, gone: &[Key]) -> FullText {
    let mut index = FullText::open(Place::Memory).expect("there is memory").0;
    for batch in batches {
        put(&mut index, batch, &[]).expect("they fit");
    }
    put(&mut index, Vec::new(), gone).expect("they go");
    index
}

fn ask(index: &mut FullText, text: &str, limit: usize) -> Vec<Match> {
    let query = Query { limit, ..Query::new(text) };
    index.look().and_then(|it| it.search(&query)).expect("it is sound")
}

const N: usize = 260;

#[test]
fn many_matches_are_answered_alike_however_the_index_was_filled() {
    let all = || (0..N).map(texts).collect::<Vec<_>>();
    let old = |n: usize| Texts { version: [0xff; 16], ..texts(n) };
    let mut in_order = filled(vec![all()], &[]);
    let mut backwards = filled(vec![all().into_iter().rev().collect()], &[]);
    let mut bit_by_bit =
        filled(vec![(0..N).map(|it| if it % 3 == 0 { old(it) } else { texts(it) }).collect(), all()], &[]);
    let extra = Texts { key: Key { is_archived: false, name: "another".to_owned() }, ..texts(3) };
    let gone = [extra.key.clone()];
    let mut with_gone = filled(vec![vec![extra], all()], &gone);
    for text in ["everywhere", "many", "everywhere mu", "\"much text\"", "step 3 everywhere"] {
        for limit in [1, 10, 300] {
            let expected = ask(&mut in_order, text, limit);
            assert!(expected.len() == limit || text.starts_with("step 3"), "{text}: {}", expected.len());
            for other in [&mut backwards, &mut bit_by_bit, &mut with_gone] {
                assert_eq!(ask(other, text, limit), expected, "{text}, {limit}");
            }
        }
    }
}

/// To find the first matches, a search does not read all matches in changed plans (benchmark T10).
#[test]
fn a_common_word_costs_the_same_after_many_plans_have_changed() {
    let steps = |index: &mut FullText| {
        let n = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&n);
        let count = move || counted.fetch_add(1, Ordering::Relaxed) == u64::MAX;
        index.store.connection.progress_handler(1, Some(count)).expect("it can count");
        ask(index, "everywhere", 10);
        index.store.connection.progress_handler(0, None::<fn() -> bool>).expect("it can stop");
        n.load(Ordering::Relaxed)
    };
    let all = || (0..N).map(texts).collect::<Vec<_>>();
    let old = |n: usize| Texts { version: [0xff; 16], ..texts(n) };
    let changed = (0..N).map(|it| if it % 3 == 0 { old(it) } else { texts(it) }).collect();
    let (fresh, aged) = (steps(&mut filled(vec![all()], &[])), steps(&mut filled(vec![changed, all()], &[])));
    assert!(aged < fresh + fresh / 2, "{aged} steps instead of {fresh}");
}

#[test]
fn of_many_matches_those_with_the_words_in_their_title_go_first() {
    let mut index = filled(vec![(0..N).map(texts).collect()], &[]);
    let places = |it: Vec<Match>| it.into_iter().map(|it| (it.key.name, it.place)).collect::<Vec<_>>();
    let titled: Vec<_> =
        (0..N).filter(|it| it % 40 == 7).map(|it| (format!("plan-{it:04}"), Some(2))).collect();
    let found = places(ask(&mut index, "everywhere", titled.len() + 1));
    assert_eq!(found[..titled.len()], titled);
    assert_eq!(found[titled.len()], ("plan-0000".to_owned(), None));
    // So many titles contain the word that the matches are in listing order.
    let found = places(ask(&mut index, "many", 3));
    assert_eq!(found, [0, 2, 4].map(|it| ("plan-0000".to_owned(), Some(it))));
}

#[test]
fn texts_that_are_stored_in_listing_order_have_their_first_matches_first() {
    let border = |batches: Vec<Vec<Texts>>| {
        let index = filled(batches, &[]);
        Listing::read(&index.store.connection).expect("it is sound").border()
    };
    let live = || (0..N).map(texts).filter(|it| !it.key.is_archived);
    let n = i64::try_from(live().count() * 11).expect("it is small");
    assert_eq!(border(vec![live().collect()]), n + 1);
    // Rows out of order come after the border, as do all later ones.
    let (first, rest): (Vec<_>, Vec<_>) = live().partition(|it| it.key.name.as_str() < "plan-0010");
    let n_first = i64::try_from(first.len() * 11).expect("it is small");
    let late = Texts { key: Key { is_archived: false, name: "a".to_owned() }, ..texts(3) };
    assert_eq!(border(vec![first, vec![late], rest]), n_first + 1);
}

#[test]
fn few_matches_are_ranked_each() {
    let mut index = filled(vec![(0..MANY / 11).map(texts).collect()], &[]);
    assert!(ask(&mut index, "everywhere", 5).iter().all(|it| it.rank < 0.0));
    let mut index = filled(vec![(0..N).map(texts).collect()], &[]);
    let excluded = ask(&mut index, "everywhere -step", 5);
    assert!(excluded.is_empty());
    let query = Query { scope: Scope::All, ..Query::new("everywhere") };
    let all = index.look().and_then(|it| it.search(&query)).expect("it is sound");
    assert!(all.iter().all(|it| it.rank < 0.0));
}
