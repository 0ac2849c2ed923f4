//! How domain values become columns and come back: one set of rules for both back ends.
//!
//! Times are milliseconds, money is nano-USD, flags are 0 or 1, decimals and lists are text: types
//! that `sqlx::Any` carries unchanged with both back ends. NUL characters in text are replaced,
//! because PostgreSQL cannot store them and one request with a NUL in its model name must not stop
//! the ledger.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Any, Arguments, Decode, Row, Type};

use super::error::StoreError;
use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;

/// Collects a statement's values: `sqlx::Any`'s, or those of the ledger's writer, whose many values
/// would cost too much through `Any`: SQLite's own, and for PostgreSQL rows of a copy and arrays.
///
/// Integers, text and bytes always encode; if a value were missing, the database would refuse the
/// statement.
pub(in crate::store) trait Collect {
    fn int(&mut self, value: Option<i64>);
    /// 0 or 1, for a column of two bytes.
    fn flag(&mut self, value: bool) {
        self.int(Some(i64::from(value)));
    }
    fn text(&mut self, value: Option<Cow<'_, str>>);
    /// A text in shared memory.
    fn shared(&mut self, value: Option<&Arc<str>>);
    fn bytes(&mut self, value: Vec<u8>);
}

impl Collect for AnyArguments {
    fn int(&mut self, value: Option<i64>) {
        let _ = self.add(value);
    }

    fn text(&mut self, value: Option<Cow<'_, str>>) {
        let _ = self.add(value.map(Cow::into_owned));
    }

    fn shared(&mut self, value: Option<&Arc<str>>) {
        let _ = self.add(value.map(|text| text.as_ref().to_owned()));
    }

    fn bytes(&mut self, value: Vec<u8>) {
        let _ = self.add(value);
    }
}

impl Collect for SqliteArguments {
    fn int(&mut self, value: Option<i64>) {
        let _ = Arguments::add(self, value);
    }

    fn text(&mut self, value: Option<Cow<'_, str>>) {
        // One allocation for a borrowed text; a `String` in an `Arc` takes two.
        let _ = match value {
            Some(Cow::Borrowed(text)) => Arguments::add(self, Arc::<str>::from(text)),
            Some(Cow::Owned(text)) => Arguments::add(self, text),
            None => Arguments::add(self, None::<String>),
        };
    }

    fn shared(&mut self, value: Option<&Arc<str>>) {
        let _ = Arguments::add(self, value.cloned());
    }

    fn bytes(&mut self, value: Vec<u8>) {
        let _ = Arguments::add(self, value);
    }
}

impl Collect for PgArguments {
    fn int(&mut self, value: Option<i64>) {
        let _ = self.add(value);
    }

    fn text(&mut self, value: Option<Cow<'_, str>>) {
        let _ = self.add(value.as_deref());
    }

    fn shared(&mut self, value: Option<&Arc<str>>) {
        let _ = self.add(value.map(AsRef::<str>::as_ref));
    }

    fn bytes(&mut self, value: Vec<u8>) {
        let _ = self.add(value);
    }
}

/// The values of one statement, in the order of its `$n`.
pub(in crate::store) struct Values<A = AnyArguments>(A);

impl Default for Values {
    fn default() -> Self {
        Self(AnyArguments::default())
    }
}

impl Values {
    /// The number of values, which is the last one's `$n`.
    pub(in crate::store) fn count(&self) -> usize {
        self.0.len()
    }
}

impl<A: Collect> Values<A> {
    pub(in crate::store) fn of(arguments: A) -> Self {
        Self(arguments)
    }

    pub(in crate::store) fn into_arguments(self) -> A {
        self.0
    }

    pub(in crate::store) fn int(&mut self, value: i64) -> &mut Self {
        self.opt_int(Some(value))
    }

    pub(in crate::store) fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        self.0.int(value);
        self
    }

    /// A number that is never negative; one that is too large is stored as the largest possible.
    pub(in crate::store) fn count_of(&mut self, value: u64) -> &mut Self {
        self.int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(in crate::store) fn opt_count_of(&mut self, value: Option<u64>) -> &mut Self {
        self.opt_int(value.map(|v| i64::try_from(v).unwrap_or(i64::MAX)))
    }

    pub(in crate::store) fn flag(&mut self, value: bool) -> &mut Self {
        self.0.flag(value);
        self
    }

    pub(in crate::store) fn time(&mut self, value: Timestamp) -> &mut Self {
        self.int(value.0)
    }

    pub(in crate::store) fn opt_time(&mut self, value: Option<Timestamp>) -> &mut Self {
        self.opt_int(value.map(|t| t.0))
    }

    pub(in crate::store) fn opt_money(&mut self, value: Option<NanoUsd>) -> &mut Self {
        self.opt_int(value.map(|m| m.0))
    }

    pub(in crate::store) fn text(&mut self, value: &str) -> &mut Self {
        self.opt_text(Some(value))
    }

    pub(in crate::store) fn opt_text(&mut self, value: Option<&str>) -> &mut Self {
        self.0.text(value.map(without_nul));
        self
    }

    /// A text in shared memory, at most `max` bytes of it.
    pub(in crate::store) fn opt_shared(
        &mut self,
        value: Option<&Arc<str>>,
        max: usize,
    ) -> &mut Self {
        match value {
            Some(text) if text.len() > max || memchr::memchr(0, text.as_bytes()).is_some() => {
                self.text(clipped(text, max))
            }
            text => {
                self.0.shared(text);
                self
            }
        }
    }

    pub(in crate::store) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.0.bytes(value.to_vec());
        self
    }

    /// Any serialisable value as JSON text. The program's own types always serialise.
    pub(in crate::store) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> &mut Self {
        self.0.text(Some(serde_json::to_string(value).unwrap_or_default().into()));
        self
    }
}

fn without_nul(text: &str) -> Cow<'_, str> {
    if memchr::memchr(0, text.as_bytes()).is_some() {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The first `max` bytes of `text` at most, cut between characters.
pub(in crate::store) fn clipped(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let cut = (0..=max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(..cut).unwrap_or_default()
}

/// A row, with the name of its table for messages.
#[derive(Clone, Copy)]
pub(in crate::store) struct Fields<'r> {
    pub(in crate::store) row: &'r AnyRow,
    pub(in crate::store) table: &'static str,
}

impl<'r> Fields<'r> {
    fn get<T: Decode<'r, Any> + Type<Any>>(self, column: &'static str) -> Result<T, StoreError> {
        self.row.try_get(column).map_err(|error| match error {
            sqlx::Error::ColumnDecode { source, .. } => self.corrupt(column, &source.to_string()),
            other => other.into(),
        })
    }

    pub(in crate::store) fn corrupt(self, column: &str, why: &str) -> StoreError {
        StoreError::Corrupt { what: format!("{}.{column}: {why}", self.table) }
    }

    pub(in crate::store) fn int(self, column: &'static str) -> Result<i64, StoreError> {
        self.get(column)
    }

    pub(in crate::store) fn opt_int(self, column: &'static str) -> Result<Option<i64>, StoreError> {
        self.get(column)
    }

    /// An integer of a narrower or unsigned type.
    pub(in crate::store) fn number<T: TryFrom<i64>>(
        self,
        column: &'static str,
    ) -> Result<T, StoreError> {
        T::try_from(self.int(column)?).map_err(|_| self.corrupt(column, "out of range"))
    }

    pub(in crate::store) fn opt_number<T: TryFrom<i64>>(
        self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        self.opt_int(column)?
            .map(T::try_from)
            .transpose()
            .map_err(|_| self.corrupt(column, "out of range"))
    }

    pub(in crate::store) fn flag(self, column: &'static str) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    pub(in crate::store) fn time(self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp)
    }

    pub(in crate::store) fn opt_time(
        self,
        column: &'static str,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(column)?.map(Timestamp))
    }

    pub(in crate::store) fn opt_money(
        self,
        column: &'static str,
    ) -> Result<Option<NanoUsd>, StoreError> {
        Ok(self.opt_int(column)?.map(NanoUsd))
    }

    pub(in crate::store) fn text(self, column: &'static str) -> Result<String, StoreError> {
        self.get(column)
    }

    pub(in crate::store) fn opt_text(
        self,
        column: &'static str,
    ) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    /// Bytes of any length.
    pub(in crate::store) fn blob(self, column: &'static str) -> Result<Vec<u8>, StoreError> {
        self.get(column)
    }

    pub(in crate::store) fn bytes<const N: usize>(
        self,
        column: &'static str,
    ) -> Result<[u8; N], StoreError> {
        let bytes: Vec<u8> = self.get(column)?;
        bytes.try_into().map_err(|_| self.corrupt(column, "wrong length"))
    }

    pub(in crate::store) fn opt_bytes<const N: usize>(
        self,
        column: &'static str,
    ) -> Result<Option<[u8; N]>, StoreError> {
        let bytes: Option<Vec<u8>> = self.get(column)?;
        bytes.map(TryInto::try_into).transpose().map_err(|_| self.corrupt(column, "wrong length"))
    }

    pub(in crate::store) fn json<T: DeserializeOwned>(
        self,
        column: &'static str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(&self.text(column)?)
            .map_err(|error| self.corrupt(column, &error.to_string()))
    }

    pub(in crate::store) fn parsed<T: FromStr>(
        self,
        column: &'static str,
    ) -> Result<T, StoreError> {
        self.text(column)?.parse().map_err(|_| self.corrupt(column, "not of its type"))
    }

    /// A text with a fixed set of values, read by the value's own `parse`.
    pub(in crate::store) fn named<T>(
        self,
        column: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| self.corrupt(column, "unknown value"))
    }
}

#[cfg(test)]
mod tests {
    use super::{clipped, without_nul};

    #[test]
    fn text_is_clipped_between_characters_and_loses_nul() {
        for (text, max, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "abc"), ("aé", 2, "a"), ("é", 1, ""), ("", 0, "")]
        {
            assert_eq!(clipped(text, max), expected, "{text} {max}");
        }
        assert_eq!(without_nul("a\0b"), "a\u{fffd}b");
        assert_eq!(without_nul("ab"), "ab");
    }
}
