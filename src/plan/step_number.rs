//! The number in `step-N.md`: an exact decimal, so that 2.5 can go between 2 and 3.

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

/// The number of a step, which determines its position in the plan.
///
/// The number is an exact decimal, never a float: a rounding error such as that of 0.1 + 0.2 must not appear in a file
/// name, and the order must be total. `2.10` and `2.1` are the same number. A number has at most 9 digits before the point
/// and 100 after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct StepNumber {
    whole: u32,
    /// The digits after the point; `None` for a whole number. There is no trailing zero, so that the order of the strings
    /// is the order of the decimals.
    ///
    /// For a plan with dense dependencies, millions of numbers are compared, and each is stored several times (benchmark
    /// T16). The fraction is a box, because that is a thin pointer. A whole number has `None` and not an empty string,
    /// because the pointer of an empty string is dangling: on some processors, reading zero bytes at such an address takes
    /// hundreds of cycles.
    fraction: Option<Box<Fraction>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
struct Fraction(String);

/// The maximum number of digits after the point.
pub const MAX_FRACTION: usize = 100;
const MAX_WHOLE: usize = 9;
const LARGEST_WHOLE: u32 = 999_999_999;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a step number: at most 9 digits, then optionally a point and at most 100 digits")]
pub struct NotAStepNumber(pub String);

/// No number fits: it would have more than 100 digits after the point, be larger than 999999999, or be less than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no room for another step number here")]
pub struct NoRoom;

impl StepNumber {
    fn new(whole: u32, fraction: &str) -> Self {
        let fraction = fraction.trim_end_matches('0');
        Self { whole, fraction: (!fraction.is_empty()).then(|| Box::new(Fraction(fraction.to_owned()))) }
    }

    fn fraction(&self) -> &str {
        self.fraction.as_ref().map_or("", |it| it.0.as_str())
    }

    pub fn whole(whole: u32) -> Self {
        Self { whole: whole.min(LARGEST_WHOLE), fraction: None }
    }

    /// Returns the number halfway between this number and a larger one.
    ///
    /// The result is exact: 2.5 for 2 and 3, 2.75 for 2.5 and 3.
    pub fn midpoint(&self, next: &Self) -> Result<Self, NoRoom> {
        let len = self.fraction().len().max(next.fraction().len()) + 1;
        let sum = add(&self.digits(len), &next.digits(len));
        let half = halve(&sum);
        let (whole, fraction) = half.split_at(half.len() - len);
        let fraction = fraction.iter().map(|it| char::from(b'0' + it)).collect::<String>();
        let whole = whole.iter().fold(0, |sum, it| sum * 10 + u32::from(*it));
        let number = Self::new(whole, &fraction);
        if number.fraction().len() > MAX_FRACTION { Err(NoRoom) } else { Ok(number) }
    }

    /// Returns the next whole number: floor + 1.
    pub fn successor(&self) -> Result<Self, NoRoom> {
        if self.whole >= LARGEST_WHOLE {
            return Err(NoRoom);
        }
        Ok(Self::whole(self.whole + 1))
    }

    /// Returns half of this number. If this number is the lowest of the plan, no step has the result.
    pub fn below(&self) -> Result<Self, NoRoom> {
        let zero = Self::whole(0);
        if *self == zero { Err(NoRoom) } else { zero.midpoint(self) }
    }

    /// Returns this number plus 1; the fraction stays. `--after` gives such a number to a step that is placed after the last
    /// step of a plan.
    pub fn plus_one(&self) -> Result<Self, NoRoom> {
        let whole = self.successor()?.whole;
        Ok(Self { whole, fraction: self.fraction.clone() })
    }

    pub(super) fn before_point(&self) -> u32 {
        self.whole
    }

    pub fn is_whole(&self) -> bool {
        self.fraction.is_none()
    }

    /// Returns the number for JSON: an integer if it is whole, else the nearest float.
    pub fn to_json(&self) -> serde_json::Value {
        if self.is_whole() {
            return self.whole.into();
        }
        self.to_string().parse::<f64>().map_or(serde_json::Value::Null, Into::into)
    }

    /// Returns the whole part with nine digits, followed by the fraction with `len` digits.
    fn digits(&self, len: usize) -> Vec<u8> {
        let text = format!("{:09}{:0<len$}", self.whole, self.fraction());
        text.bytes().map(|it| it - b'0').collect()
    }
}

impl fmt::Display for StepNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fraction {
            None => write!(f, "{}", self.whole),
            Some(fraction) => write!(f, "{}.{}", self.whole, fraction.0),
        }
    }
}

impl FromStr for StepNumber {
    type Err = NotAStepNumber;

    fn from_str(text: &str) -> Result<Self, NotAStepNumber> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let are_digits =
            |it: &str, most| (1..=most).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit());
        if !are_digits(whole, MAX_WHOLE) || fraction.is_some_and(|it| !are_digits(it, MAX_FRACTION)) {
            return Err(NotAStepNumber(text.to_owned()));
        }
        let whole = whole.parse().map_err(|_| NotAStepNumber(text.to_owned()))?;
        Ok(Self::new(whole, fraction.unwrap_or_default()))
    }
}

/// Adds two numbers of equally many digits; the sum has one digit more.
fn add(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = vec![0; a.len() + 1];
    let mut carry = 0;
    for at in (0..a.len()).rev() {
        let digit = a[at] + b[at] + carry;
        sum[at + 1] = digit % 10;
        carry = digit / 10;
    }
    sum[0] = carry;
    sum
}

fn halve(digits: &[u8]) -> Vec<u8> {
    let mut rest = 0;
    let half = digits.iter().map(|digit| {
        let value = rest * 10 + digit;
        rest = value % 2;
        value / 2
    });
    half.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(text: &str) -> StepNumber {
        text.parse().expect("it is a step number")
    }

    #[test]
    fn spellings_of_one_place_are_equal() {
        assert_eq!(n("03"), n("3.0"));
        assert_eq!(n("1.10"), n("1.1"));
        assert_eq!(n("003.250").to_string(), "3.25");
        assert!(n("2") < n("2.05") && n("2.05") < n("2.5") && n("2.5") < n("10"));
    }

    #[test]
    fn an_invalid_number_is_refused() {
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1234567890", "1.2.3", "NaN", "1 ", "٣", "+1"] {
            assert!(text.parse::<StepNumber>().is_err(), "{text}");
        }
        assert!(format!("1.{}", "1".repeat(100)).parse::<StepNumber>().is_ok());
        assert!(format!("1.{}", "1".repeat(101)).parse::<StepNumber>().is_err());
    }

    #[test]
    fn the_middle_is_exact() {
        assert_eq!(n("2").midpoint(&n("3")), Ok(n("2.5")));
        assert_eq!(n("2.5").midpoint(&n("3")), Ok(n("2.75")));
        assert_eq!(n("0").midpoint(&n("999999999")), Ok(n("499999999.5")));
        assert_eq!(n("0.1").midpoint(&n("0.2")), Ok(n("0.15")));
        assert_eq!(n("1").below(), Ok(n("0.5")));
        assert_eq!(n("0.5").below(), Ok(n("0.25")));
        assert_eq!(n("0").below(), Err(NoRoom));
        let deep = format!("1.{}1", "0".repeat(99));
        assert_eq!(n("1").midpoint(&n(&deep)), Err(NoRoom));
        assert_eq!(n("999999999").successor(), Err(NoRoom));
    }

    /// A plan with dense dependencies has hundreds of thousands of them, and stores each several times (benchmark T16).
    #[test]
    fn a_dependency_takes_32_bytes() {
        assert_eq!(size_of::<crate::plan::id::StepId>(), 32);
    }

    #[test]
    fn behind_the_last_comes_the_next() {
        assert_eq!(n("2.5").successor(), Ok(n("3")));
        assert_eq!(n("2.5").plus_one(), Ok(n("3.5")));
    }

    fn number() -> impl Strategy<Value = StepNumber> {
        ("[0-9]{1,9}", "[0-9]{0,30}").prop_map(|(whole, fraction)| {
            let text = if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") };
            text.parse().expect("it is built as one")
        })
    }

    proptest! {
        #[test]
        fn a_number_reads_back(it in number()) {
            prop_assert_eq!(n(&it.to_string()), it);
        }

        #[test]
        fn the_middle_is_between(a in number(), b in number()) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assume!(low != high);
            let middle = low.midpoint(&high).expect("31 digits fit");
            prop_assert!(low < middle && middle < high);
        }
    }
}
