//! What is said of an array, its dimensions and its attributes: texts and numbers under names, as the attributes of NetCDF,
//! HDF5 and Zarr are, and which of them are times.

use serde::{Deserialize, Serialize};

use crate::model::time::Time;
use crate::model::types::Scalar;

/// The value of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MetadataValue {
    /// Numbers and truth values.
    Numbers(Vec<Scalar>),
    /// Texts.
    Texts(Vec<String>),
}

impl MetadataValue {
    /// Its values as texts, one after the other.
    ///
    /// ```
    /// use array::MetadataValue;
    ///
    /// assert_eq!(MetadataValue::from("K").to_string(), "K");
    /// assert_eq!(MetadataValue::Numbers(vec![1.into(), 2.5.into()]).to_string(), "1, 2.5");
    /// ```
    fn texts(&self) -> Vec<String> {
        match self {
            MetadataValue::Numbers(numbers) => numbers.iter().map(Scalar::to_string).collect(),
            MetadataValue::Texts(texts) => texts.clone(),
        }
    }
}

impl std::fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.texts().join(", "))
    }
}

impl From<&str> for MetadataValue {
    fn from(text: &str) -> MetadataValue {
        MetadataValue::Texts(vec![text.to_owned()])
    }
}

/// Names and values, in the order in which they were given.
pub type Entries = Vec<(String, MetadataValue)>;

/// What is said of an array, and of its dimensions and attributes by their names. It does not change what operators do.
///
/// ```
/// use array::{Metadata, MetadataValue, Time};
///
/// let mut metadata = Metadata::default();
/// metadata.describe(None, vec![("title".to_owned(), "Sea".into())]);
/// metadata.describe(Some("heat"), vec![("units".to_owned(), "K".into())]);
/// metadata.set_time("hour", Time::new(0, 3_600_000_000).unwrap());
/// assert_eq!(metadata.of(Some("heat")), [("units".to_owned(), MetadataValue::from("K"))]);
/// assert_eq!(metadata.time("hour").unwrap().of_whole(2), Some(7_200_000_000));
/// assert!(metadata.time("heat").is_none() && metadata.of(Some("depth")).is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Metadata {
    array: Entries,
    parts: Vec<(String, Entries)>,
    times: Vec<(String, Time)>,
}

impl Metadata {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.array.is_empty() && self.parts.is_empty() && self.times.is_empty()
    }

    /// Says this of the array, or of its dimension or attribute `part`, instead of what was said before.
    pub fn describe(&mut self, part: Option<&str>, entries: Entries) {
        let Some(part) = part else {
            self.array = entries;
            return;
        };
        self.parts.retain(|(name, _)| name != part);
        if !entries.is_empty() {
            self.parts.push((part.to_owned(), entries));
        }
    }

    /// Says that the values of a dimension or attribute are times.
    pub fn set_time(&mut self, part: &str, time: Time) {
        self.times.retain(|(name, _)| name != part);
        self.times.push((part.to_owned(), time));
    }

    /// What is said of the array, or of its dimension or attribute `part`.
    pub fn of(&self, part: Option<&str>) -> &[(String, MetadataValue)] {
        let Some(part) = part else {
            return &self.array;
        };
        let found = self.parts.iter().find(|(name, _)| name == part);
        found.map_or(&[], |(_, entries)| entries)
    }

    /// How the values of a dimension or attribute are times, if they are.
    pub fn time(&self, part: &str) -> Option<Time> {
        let found = self.times.iter().find(|(name, _)| name == part);
        found.map(|(_, time)| *time)
    }

    /// Takes over what another says of parts that have come from there, by their names there and here.
    pub(crate) fn take_parts<'n>(
        &mut self,
        from: &Metadata,
        parts: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) {
        if from.is_empty() {
            return;
        }
        for (there, here) in parts {
            self.describe(Some(here), from.of(Some(there)).to_vec());
            if let Some(time) = from.time(there) {
                self.set_time(here, time);
            }
        }
    }

    /// Whether the same is said of two parts.
    pub(crate) fn agrees(&self, part: &str, other: &Metadata, of_other: &str) -> bool {
        self.of(Some(part)) == other.of(Some(of_other)) && self.time(part) == other.time(of_other)
    }

    /// Whether all of it makes sense: for what was read.
    pub(crate) fn is_sound(&self) -> bool {
        self.times.iter().all(|(_, time)| time.is_sound())
    }
}
