//! A lossless binary encoding of plans, except for the bodies.
//!
//! Not the types' serde form, which is made for people: it drops fractions of a second and may lose the last bit of a
//! float, so that an answer from the index would differ from one out of the files. Knows nothing of SQLite.

use serde_json::{Map, Number, Value};

use crate::index::freshness::Stamp;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::ranges::StepRange;
use crate::plan::records::{Attempt, Claim, Confirmation, Note, NoteType, Priority, Verify};
use crate::plan::step_number::StepNumber;
use crate::plan::time::{Day, Time};
use crate::plan::words::{PlanStatus, Stated, StepStatus};
use crate::text::line_index::Place;

/// Returns the plan without bodies as bytes.
pub(super) fn encode(plan: &Plan) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 * (plan.steps.len() + 1));
    plan.put(&mut out);
    out
}

/// Decodes the output of [`encode`]; `None` for any other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<Plan> {
    let mut input = Input::new(bytes);
    let plan = Plan::take(&mut input)?;
    input.is_empty().then_some(plan)
}

/// Bytes being read from their beginning.
pub(super) struct Input<'a> {
    rest: &'a [u8],
    /// Nesting depth of the current value.
    depth: usize,
}

/// More than a front matter may nest, and few enough for any stack.
const MAX_DEPTH: usize = 200;

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[it]| it)
    }

    pub(super) fn len(&mut self) -> Option<usize> {
        usize::try_from(u64::take(self)?).ok()
    }

    fn deeper<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let taken = if self.depth > MAX_DEPTH { None } else { take(self) };
        self.depth -= 1;
        taken
    }
}

/// A type with a deterministic encoding.
pub(super) trait Stored: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut Input<'_>) -> Option<Self>;
}

/// Structs field by field, in this order; a forgotten field does not compile. The body and the machine's own knowledge
/// of a claim are left out.
macro_rules! stored {
    ($($type:ident { $($field:ident),* $(; $($left:ident),*)? })*) => {$(
        impl Stored for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(from: &mut Input<'_>) -> Option<Self> {
                Some(Self { $($field: Stored::take(from)?,)* $($($left: Default::default()),*)? })
            }
        }
    )*};
}

stored! {
    Plan {
        id, is_archived, path, etag, modified, status, title, description, kind, program, program_at, category, priority, due, tags,
        files, goals, success_criteria, order, confirm_phases, confirmations, draft, created_at, metadata, notes,
        custom, steps, problems, waits_inside; body
    }
    Step {
        id, path, etag, modified, title, status, claim, depends, ranges, depends_at, phase, kind, assignee, priority, due, tags,
        created_at, created_by, needs_confirmation, confirmed, verify, touches, result, notes, attempts, metadata, custom,
        tasks_done, tasks_total, problems; body, run
    }
    StepId { plan, number }
    StepRange { first, last }
    Place { line, column }
    Stamp { len, mtime_ns, ctime_ns, ino, dev }
    Problem { path, line, column, code, message, hint, is_fixable }
    Attempt { at, by, outcome, notes, more }
    Note { at, kind, by, text }
    Claim { id, by, at }
    Confirmation { phase, by, at, note }
    Verify { run, dir, timeout }
}

/// Enums without fields, each variant as its byte.
macro_rules! stored_words {
    ($($type:ident { $($byte:literal $variant:ident),* })*) => {$(
        impl Stored for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $(Self::$variant => $byte),* });
            }

            fn take(from: &mut Input<'_>) -> Option<Self> {
                match from.byte()? {
                    $($byte => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

stored_words! {
    PlanKind { 0 Plan, 1 Program }
    Order { 0 Dependencies, 1 Sequential }
    Priority { 0 Low, 1 Medium, 2 High, 3 Critical }
    NoteType { 0 Info, 1 Warning, 2 Instruction }
    PlanStatus { 0 Draft, 1 Active, 2 Completed, 3 Abandoned }
    StepStatus { 0 Pending, 1 InProgress, 2 Completed, 3 Failed, 4 Blocked, 5 Skipped }
}

impl<S: Stored> Stored for Stated<S> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Known(status) => {
                out.push(0);
                status.put(out);
            }
            Self::Unknown(word) => {
                out.push(1);
                word.put(out);
            }
        }
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        match from.byte()? {
            0 => S::take(from).map(Self::Known),
            1 => String::take(from).map(Self::Unknown),
            _ => None,
        }
    }
}

impl Stored for Code {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(self.text(), out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        Self::from_text(take_text(from)?)
    }
}

impl Stored for PlanId {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(self.as_str(), out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        take_text(from).map(Self::new)
    }
}

impl Stored for StepNumber {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        take_text(from)?.parse().ok()
    }
}

impl Stored for Day {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        String::take(from)?.parse().ok()
    }
}

impl Stored for Time {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.as_nanoseconds().to_le_bytes());
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        from.array().map(i128::from_le_bytes).map(Self::from_nanoseconds)
    }
}

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// LEB128: seven bits a byte, lowest first, because nearly every number here is a small length.
impl Stored for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        out.push(rest.to_le_bytes()[0]);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        let mut value = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = from.byte()?;
            value |= Self::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

impl Stored for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        from.array().map(Self::from_le_bytes)
    }
}

impl Stored for [u8; 16] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        from.array()
    }
}

impl Stored for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        Self::try_from(u64::take(from)?).ok()
    }
}

impl Stored for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        from.len()
    }
}

pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    text.len().put(out);
    out.extend(text.as_bytes());
}

fn take_text<'a>(from: &mut Input<'a>) -> Option<&'a str> {
    let len = from.len()?;
    std::str::from_utf8(from.bytes(len)?).ok()
}

impl Stored for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(self, out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        take_text(from).map(str::to_owned)
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(it) = self {
            it.put(out);
        }
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        if bool::take(from)? { T::take(from).map(Some) } else { Some(None) }
    }
}

impl<T: Stored> Stored for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        T::take(from).map(Self::new)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for it in self {
            it.put(out);
        }
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        let len = from.len()?;
        from.deeper(|from| {
            // Reserves exactly, unless the length exceeds the remaining input.
            let mut all = Self::with_capacity(len.min(from.rest.len()).min(1024));
            for _ in 0..len {
                all.push(T::take(from)?);
            }
            Some(all)
        })
    }
}

impl Stored for Map<String, Value> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        let len = from.len()?;
        from.deeper(|from| (0..len).map(|_| Some((String::take(from)?, Stored::take(from)?))).collect())
    }
}

impl Stored for Value {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(0),
            Self::Bool(it) => out.push(1 + u8::from(*it)),
            Self::Number(it) => put_number(it, out),
            Self::String(it) => {
                out.push(6);
                it.put(out);
            }
            Self::Array(it) => {
                out.push(7);
                it.put(out);
            }
            Self::Object(it) => {
                out.push(8);
                it.put(out);
            }
        }
    }

    fn take(from: &mut Input<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(Self::Null),
            1 => Some(Self::Bool(false)),
            2 => Some(Self::Bool(true)),
            3 => from.array().map(u64::from_le_bytes).map(Self::from),
            4 => from.array().map(i64::from_le_bytes).map(Self::from),
            5 => from.array().map(f64::from_le_bytes).and_then(Number::from_f64).map(Self::Number),
            6 => Stored::take(from).map(Self::String),
            7 => Stored::take(from).map(Self::Array),
            8 => Stored::take(from).map(Self::Object),
            _ => None,
        }
    }
}

/// Integers and floats are encoded differently: 1 and 1.0 are two values in JSON.
fn put_number(number: &Number, out: &mut Vec<u8>) {
    if let Some(it) = number.as_u64() {
        out.push(3);
        out.extend(it.to_le_bytes());
    } else if let Some(it) = number.as_i64() {
        out.push(4);
        out.extend(it.to_le_bytes());
    } else {
        out.push(5);
        out.extend(number.as_f64().unwrap_or_default().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::arbitrary;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn a_plan_round_trips(plan in arbitrary::plan()) {
            let bytes = encode(&plan);
            prop_assert_eq!(decode(&bytes), Some(arbitrary::without_bodies(plan)));
        }

        #[test]
        fn truncated_or_extended_bytes_are_rejected(plan in arbitrary::plan(), at in any::<prop::sample::Index>()) {
            let mut bytes = encode(&plan);
            prop_assert_eq!(decode(&bytes[..at.index(bytes.len())]), None);
            bytes.push(0);
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let plan = decode(&bytes);
            prop_assert!(plan.is_none_or(|it| decode(&encode(&it)) == Some(it)));
        }
    }
}
