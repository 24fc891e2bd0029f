//! `pg_advisory_lock` and its kin: locks of numbers, which sessions take and give back.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;
use messages::types::type_name;

/// What an advisory lock is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// One number.
    One(i64),
    /// Two numbers, which are another lock than the one number of their bits.
    Two(i32, i32),
}

/// A lock that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// What it is of.
    pub key: Key,
    /// Whether others may share it.
    pub shared: bool,
}

impl Wanted {
    /// Whether two sessions cannot hold both at once.
    pub fn conflicts(self, other: Wanted) -> bool {
        self.key == other.key && !(self.shared && other.shared)
    }

    /// What `pg_locks` calls its mode.
    pub fn mode(self) -> &'static str {
        if self.shared {
            "ShareLock"
        } else {
            "ExclusiveLock"
        }
    }
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    /// Until the session gives it back, as often as it took it, or ends.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// What a call is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Take the lock, however long that takes.
    Lock(Wanted, Until),
    /// Take it unless that has to wait.
    Try(Wanted, Until),
    /// Give it back.
    Unlock(Wanted),
    /// Give all of the session back.
    UnlockAll,
}

/// What a statement asks of the locks of its session.
pub trait AdvisoryCalls: Debug + Send + Sync {
    /// The statement has a call that may wait.
    fn may_wait(&self);

    /// Does what a call is to do. False if a lock was not free that was only to be tried, or was not held that was to be
    /// given back.
    ///
    /// # Errors
    /// If it has to wait.
    fn call(&self, deed: Deed) -> messages::Result<bool>;
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    Lock,
    Try,
    Unlock,
    UnlockAll,
}

/// The functions: what each does, whether the lock is the transaction's, and whether others may share it.
const ALL: [(&str, Verb, bool, bool); 11] = [
    ("pg_advisory_lock", Verb::Lock, false, false),
    ("pg_advisory_lock_shared", Verb::Lock, false, true),
    ("pg_advisory_unlock", Verb::Unlock, false, false),
    ("pg_advisory_unlock_all", Verb::UnlockAll, false, false),
    ("pg_advisory_unlock_shared", Verb::Unlock, false, true),
    ("pg_advisory_xact_lock", Verb::Lock, true, false),
    ("pg_advisory_xact_lock_shared", Verb::Lock, true, true),
    ("pg_try_advisory_lock", Verb::Try, false, false),
    ("pg_try_advisory_lock_shared", Verb::Try, false, true),
    ("pg_try_advisory_xact_lock", Verb::Try, true, false),
    ("pg_try_advisory_xact_lock_shared", Verb::Try, true, true),
];

/// The names of the functions over advisory locks.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, ..)| *name)
}

/// Whether a function of this name takes or gives back advisory locks.
pub fn is_name(name: &str) -> bool {
    names().any(|own| own == name)
}

/// The function of this name for a statement that asks `calls` for locks, if it is one of these. Where no session runs the
/// statement there are none, and the function fails when it is called.
pub fn named<C: AdvisoryCalls + 'static>(calls: Option<&Arc<C>>, name: &str) -> Option<ScalarUDF> {
    let (name, verb, of_transaction, shared) = ALL.iter().find(|(own, ..)| *own == name)?;
    let calls = calls.map(|calls| Arc::clone(calls) as Arc<dyn AdvisoryCalls>);
    if let (Verb::Lock, Some(calls)) = (verb, &calls) {
        calls.may_wait();
    }
    let until = if *of_transaction {
        Until::Transaction
    } else {
        Until::Session
    };
    Some(ScalarUDF::from(Advisory {
        name,
        verb: *verb,
        until,
        shared: *shared,
        calls,
        signature: match verb {
            Verb::UnlockAll => Signature::nullary(Volatility::Volatile),
            _ => Signature::user_defined(Volatility::Volatile),
        },
    }))
}

#[derive(Debug)]
struct Advisory {
    name: &'static str,
    verb: Verb,
    until: Until,
    shared: bool,
    /// None where no session runs the statement.
    calls: Option<Arc<dyn AdvisoryCalls>>,
    signature: Signature,
}

impl PartialEq for Advisory {
    fn eq(&self, other: &Advisory) -> bool {
        self.name == other.name
    }
}

impl Eq for Advisory {}

impl Hash for Advisory {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Advisory {
    /// What the call with this key does; the answer of a function that only takes locks is nothing.
    fn deed(&self, key: Key) -> Deed {
        let shared = self.shared;
        let wanted = Wanted { key, shared };
        match self.verb {
            Verb::Lock => Deed::Lock(wanted, self.until),
            Verb::Try => Deed::Try(wanted, self.until),
            Verb::Unlock => Deed::Unlock(wanted),
            Verb::UnlockAll => Deed::UnlockAll,
        }
    }

    fn call(&self, deed: Deed) -> Result<bool> {
        let calls = self.calls.as_ref().ok_or_else(|| {
            let message = format!("{} is called by the statements of a session", self.name);
            Error::unsupported(message)
        })?;
        Ok(calls.call(deed)?)
    }

    fn says_nothing(&self) -> bool {
        matches!(self.verb, Verb::Lock | Verb::UnlockAll)
    }
}

/// Whether PostgreSQL takes a value of this type for a number of `bits`.
fn is_number(data_type: &DataType, bits: u8) -> bool {
    match data_type {
        DataType::Null | DataType::Utf8 | DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            true
        }
        // A number that is written is one of these, however small.
        DataType::Int64 => bits >= 32,
        _ => false,
    }
}

/// The keys of the rows; none where an argument is NULL.
fn keys(arrays: &[ArrayRef], rows: usize) -> Vec<Option<Key>> {
    let key = |row: usize| match arrays {
        [one] => {
            let one = one.as_primitive::<Int64Type>();
            one.is_valid(row).then(|| Key::One(one.value(row)))
        }
        [first, second] => {
            let first = first.as_primitive::<Int32Type>();
            let second = second.as_primitive::<Int32Type>();
            let valid = first.is_valid(row) && second.is_valid(row);
            valid.then(|| Key::Two(first.value(row), second.value(row)))
        }
        // It takes no key.
        _ => Some(Key::One(0)),
    };
    (0..rows).map(key).collect()
}

impl ScalarUDFImpl for Advisory {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (own, bits) = match types.len() {
            1 => (DataType::Int64, 64),
            _ => (DataType::Int32, 32),
        };
        if (1..=2).contains(&types.len()) && types.iter().all(|own| is_number(own, bits)) {
            return Ok(vec![own; types.len()]);
        }
        let given: Vec<String> = types.iter().map(type_name).collect();
        let message = format!(
            "function {}({}) does not exist",
            self.name,
            given.join(", ")
        );
        Err(Error::coded("42883", message).into())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.says_nothing() {
            DataType::Utf8
        } else {
            DataType::Boolean
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let said = keys(&arrays, args.number_rows)
            .into_iter()
            .map(|key| key.map(|key| self.call(self.deed(key))).transpose());
        let said: Vec<Option<bool>> = said.collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(if self.says_nothing() {
            let texts = said.into_iter().map(|said| said.map(|_| ""));
            Arc::new(texts.collect::<StringArray>())
        } else {
            Arc::new(BooleanArray::from(said))
        }))
    }
}
