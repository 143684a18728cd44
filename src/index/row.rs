//! The rows of the index for one plan directory, with their hashes.
//!
//! SQLite detects few of the errors of a failing disk: if bytes inside a row are overwritten, SQLite returns the wrong
//! bytes. So each head ends with a hash of its key, the number of its steps and all its other bytes, which include the
//! hashes of the plan's data. If this hash is right, the row describes the plan as it was when its files had the stamps in
//! the row. The hashes do not protect against forgery.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::index::error::IndexError;
use crate::index::freshness::{FileRow, Stamp};
use crate::plan::binary::{decode, encode, encode_into};
use crate::plan::model::Plan;
use crate::plan::summary::{PlanSummary, StoredSummary};

/// Identifies a row: a directory by its exact name, live or below `_archive`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub is_archived: bool,
    pub name: String,
}

/// 128 bits of a hash of the data.
pub(super) type Version = [u8; 16];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub key: Key,
    pub steps: u32,
    /// An encoded `Beginning`, an encoded `FilesOfHead`, and the hash of the head.
    pub(super) bytes: Vec<u8>,
    pub(super) version: Version,
    summary_version: Version,
    /// The row number in its table; 0 for a new row.
    pub(super) id: i64,
}

/// The rows of a plan, encoded in the thread that read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub head: Head,
    pub(super) data: Vec<u8>,
    pub(super) summary: Vec<u8>,
}

#[derive(Debug, Clone)]
pub enum Change {
    Put(Packed),
    /// Replaces the stamps in the row of an unchanged plan.
    Restamp(Head),
    Remove(Key),
}

/// The start of a head; the bytes after it are those of a [`FilesOfHead`].
#[derive(BorshSerialize, BorshDeserialize)]
struct Beginning {
    /// A hash of the project's own status words, with which the files were read.
    reader: u64,
    /// Whether any file is in doubt: its stamp cannot show that its content is unchanged.
    in_doubt: bool,
    version: Version,
    summary_version: Version,
}

/// The output of [`stamps`], and the hash, `racy` and `len_before` of each file.
type FilesOfHead = (Vec<u8>, Vec<(String, bool, u64)>);

impl Packed {
    /// Encodes a plan as it was read, without the problems between plans. `files` are in the order of their names.
    pub fn new(key: Key, reader: u64, files: &[FileRow], plan: &Plan) -> Self {
        let (data, summary) = (encode(plan), encode(&StoredSummary::from(plan.summary())));
        let versions = [&data, &summary].map(|it| half(&blake3::hash(it)));
        let steps = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
        Self { head: Head::new(key, steps, reader, files, versions), data, summary }
    }
}

impl Head {
    fn new(key: Key, steps: u32, reader: u64, files: &[FileRow], versions: [Version; 2]) -> Self {
        let [version, summary_version] = versions;
        let in_doubt = files.iter().any(FileRow::is_in_doubt);
        let stamps = stamps(files.iter().map(|it| (it.name.as_str(), it.stamp)));
        let more: Vec<_> = files.iter().map(|it| (it.hash.as_str(), it.racy, it.len_before)).collect();
        let mut bytes = encode(&(Beginning { reader, in_doubt, version, summary_version }, stamps, more));
        let proof = proof(&key, steps, &bytes);
        bytes.extend(proof);
        Self { key, steps, bytes, version, summary_version, id: 0 }
    }

    /// Decodes a row of the table if its hash is right.
    pub(super) fn proved(id: i64, key: Key, steps: u32, bytes: &[u8]) -> Result<Self, IndexError> {
        let damaged = || IndexError::damaged("a row is not what was written");
        let at = bytes.len().checked_sub(16).ok_or_else(damaged)?;
        if bytes[at..] != proof(&key, steps, &bytes[..at]) {
            return Err(damaged());
        }
        let (Beginning { version, summary_version, .. }, _) = beginning(bytes).ok_or_else(damaged)?;
        Ok(Self { key, steps, bytes: bytes.to_vec(), version, summary_version, id })
    }

    /// The same plan with other stamps of its files.
    pub fn restamped(&self, reader: u64, files: &[FileRow]) -> Self {
        let versions = [self.version, self.summary_version];
        Self { id: self.id, ..Self::new(self.key.clone(), self.steps, reader, files, versions) }
    }

    /// Returns whether the stamps of the files show that reading them now would give the same plan. `stamps` is the output
    /// of [`stamps`] for the files as they are now.
    pub fn is_current_for(&self, reader: u64, stamps: &[u8]) -> bool {
        let Some((own, mut rest)) = beginning(&self.bytes) else { return false };
        let len = u32::deserialize(&mut rest).ok().and_then(|it| usize::try_from(it).ok());
        let is_sure = own.reader == reader && !own.in_doubt;
        is_sure && len.and_then(|it| rest.get(..it)) == Some(stamps)
    }

    /// Returns the hash of the status words with which the files were read.
    pub fn reader(&self) -> u64 {
        beginning(&self.bytes).map_or(0, |(it, _)| it.reader)
    }

    /// Returns whether both rows contain the same plan. The stamps of their files are not compared.
    pub fn is_of_the_same_plan(&self, other: &Self) -> bool {
        self.version == other.version && self.reader() == other.reader()
    }

    /// Returns the files that the plan was read from, in the order of their names.
    pub fn files(&self) -> Result<Vec<FileRow>, IndexError> {
        let damaged = || IndexError::damaged("a row's files cannot be read");
        let (_, rest) = beginning(&self.bytes).ok_or_else(damaged)?;
        read_files(rest).ok_or_else(damaged)
    }

    /// Decodes the plan from its data; fails if the data do not belong to this head.
    pub fn plan(&self, data: &[u8]) -> Result<Plan, IndexError> {
        proved(data, self.version)
    }

    /// Decodes the plan's summary from its data; fails if the data do not belong to this head.
    pub fn summary(&self, data: &[u8]) -> Result<PlanSummary, IndexError> {
        proved(data, self.summary_version)
    }
}

fn proved<T: BorshDeserialize>(data: &[u8], version: Version) -> Result<T, IndexError> {
    if half(&blake3::hash(data)) != version {
        return Err(IndexError::damaged("a plan's data are not those that were written"));
    }
    decode(data).ok_or_else(|| IndexError::damaged("a plan's data cannot be read"))
}

fn beginning(bytes: &[u8]) -> Option<(Beginning, &[u8])> {
    let mut rest = bytes.get(..bytes.len().checked_sub(16)?)?;
    let beginning = Beginning::deserialize(&mut rest).ok()?;
    Some((beginning, rest))
}

/// Encodes names and stamps so that equal bytes mean equal names and stamps.
pub fn stamps<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    for file in files {
        encode_into(&file, &mut out);
    }
    out
}

fn read_files(bytes: &[u8]) -> Option<Vec<FileRow>> {
    let (stamps, more): FilesOfHead = decode(bytes)?;
    let mut stamps = stamps.as_slice();
    let files = more.into_iter().map(|(hash, racy, len_before)| {
        let (name, stamp) = <(String, Stamp)>::deserialize(&mut stamps).ok()?;
        Some(FileRow { name, stamp, hash, racy, len_before })
    });
    let files = files.collect::<Option<_>>()?;
    stamps.is_empty().then_some(files)
}

fn proof(key: &Key, steps: u32, bytes: &[u8]) -> Version {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(key.is_archived)]);
    hasher.update(&steps.to_le_bytes());
    hasher.update(&(key.name.len() as u64).to_le_bytes());
    hasher.update(key.name.as_bytes());
    hasher.update(bytes);
    half(&hasher.finalize())
}

pub(super) fn half(hash: &blake3::Hash) -> Version {
    let mut half = Version::default();
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}
