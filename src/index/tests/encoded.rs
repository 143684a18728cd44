//! The binary form of plans.

use proptest::prelude::*;

use super::arbitrary;
use crate::plan::binary::{decode, encode};
use crate::plan::model::Plan;

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
        prop_assert_eq!(decode::<Plan>(&bytes[..at.index(bytes.len())]), None);
        bytes.push(0);
        prop_assert_eq!(decode::<Plan>(&bytes), None);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let plan: Option<Plan> = decode(&bytes);
        prop_assert!(plan.is_none_or(|it| decode(&encode(&it)) == Some(it)));
    }
}
