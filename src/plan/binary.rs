//! The binary format of plans in the index: `borsh`. Fields whose types `borsh` does not support are stored as numbers, text
//! or JSON.
//!
//! The format is deterministic. The bodies of plans and steps, and the fields `run` of steps, are not stored.

use std::io::{Error, ErrorKind, Read, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::problem::Code;
use crate::plan::time::{Day, Time};

pub fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

/// Appends the bytes of a value.
///
/// # Panics
/// If a list in it has 2^32 or more items. No file that planwatch reads is large enough for that.
pub fn encode_into(value: &impl BorshSerialize, bytes: &mut Vec<u8>) {
    value.serialize(bytes).expect("a vector can be written, and lengths fit into 32 bits");
}

/// Decodes the output of [`encode`]. `None`: the bytes do not represent a value of this type.
pub fn decode<T: BorshDeserialize>(bytes: &[u8]) -> Option<T> {
    borsh::from_slice(bytes).ok()
}

/// Writes a value as JSON; the default value, which most fields have, becomes an empty byte string.
pub(super) fn put_json<T: Serialize + Default + PartialEq, W: Write>(
    value: &T,
    to: &mut W,
) -> Result<(), Error> {
    let json = if *value == T::default() { Vec::new() } else { serde_json::to_vec(value)? };
    BorshSerialize::serialize(&json, to)
}

pub(super) fn take_json<R: Read, T: DeserializeOwned + Default>(from: &mut R) -> Result<T, Error> {
    let json = Vec::deserialize_reader(from)?;
    if json.is_empty() { Ok(T::default()) } else { Ok(serde_json::from_slice(&json)?) }
}

/// Implements the format for types that can be converted to text and back without loss.
macro_rules! as_text {
    ($($type:ident: $put:expr, $take:expr;)*) => {$(
        impl BorshSerialize for $type {
            fn serialize<W: Write>(&self, to: &mut W) -> Result<(), Error> {
                BorshSerialize::serialize(&$put(self), to)
            }
        }

        impl BorshDeserialize for $type {
            fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self, Error> {
                $take(&String::deserialize_reader(from)?).ok_or_else(|| ErrorKind::InvalidData.into())
            }
        }
    )*};
}

as_text! {
    // Codes are stored by name, because the order of the variants may change between builds of one release.
    Code: |it: &Code| it.text(), Code::from_text;
    Day: Day::to_string, |it: &str| it.parse().ok();
}

impl BorshSerialize for Time {
    fn serialize<W: Write>(&self, to: &mut W) -> Result<(), Error> {
        BorshSerialize::serialize(&self.as_nanoseconds(), to)
    }
}

impl BorshDeserialize for Time {
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self, Error> {
        i128::deserialize_reader(from).map(Self::from_nanoseconds)
    }
}
