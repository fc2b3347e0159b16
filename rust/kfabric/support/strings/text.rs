// SPDX-License-Identifier: GPL-2.0

//! Values as text.

use super::names::Name;
use crate::prelude::*;
use core::fmt::{
    self,
    Write, //
};

/// A value, and how it is written.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    /// A set of bits: the names of those that are set, and one number for those without a name.
    Flags(u64, &'static [Name]),
    /// One of several: its name, or the number if it has none.
    Choice(u64, &'static [Name]),
    /// A count or a size.
    Number(u64),
    /// A version as `KFI_VERSION` packs it.
    Version(u32),
    /// A string.
    String(Option<&'a CStr>),
    /// Bytes, of an address for instance.
    Bytes(&'a [u8]),
    /// A struct that is not there.
    Nothing,
    /// A struct.
    Fields(&'a dyn Fields),
}

/// A struct, which is written as its name and its fields, each on a line of its own.
pub(super) trait Fields {
    /// Returns its name in C.
    fn name(&self) -> &'static str;

    /// Calls `write` with the name and the value of each field in turn.
    fn each(&self, write: &mut dyn FnMut(&str, Value<'_>) -> fmt::Result) -> fmt::Result;
}

/// A text that grows; it fails where memory does.
///
/// # Invariants
///
/// There is no NUL in it.
pub(super) struct Text(KVec<u8>);

impl Text {
    pub(super) const fn new() -> Self {
        // INVARIANT: Nothing is in it.
        Self(KVec::new())
    }

    /// Gives it to C as a string, which `kfree()` frees: a vector of this kind is kmalloc memory.
    pub(super) fn into_raw(mut self) -> Option<NonNull<u8>> {
        self.0.push(0, GFP_KERNEL).ok()?;
        let (text, _, _) = self.0.into_raw_parts();
        NonNull::new(text)
    }

    /// Writes a value; a struct begins with its name.
    pub(super) fn value(&mut self, value: &Value<'_>) -> fmt::Result {
        if let Value::Fields(fields) = value {
            self.write_str(fields.name())?;
        }
        self.nested(value, 0)
    }

    /// Writes a value that is `depth` structs deep.
    fn nested(&mut self, value: &Value<'_>, depth: usize) -> fmt::Result {
        match *value {
            Value::Flags(0, _) => self.write_str("0"),
            Value::Flags(bits, names) => self.flags(bits, names),
            Value::Choice(number, names) => match names.iter().find(|name| name.value == number) {
                Some(name) => self.write_str(name.name),
                None => write!(self, "{number:#x}"),
            },
            Value::Number(number) => write!(self, "{number}"),
            Value::Version(version) => write!(self, "{}.{}", version >> 16, version & 0xffff),
            Value::String(Some(string)) => match string.to_str() {
                Ok(string) => self.write_str(string),
                Err(_) => self.nested(&Value::Bytes(string.to_bytes()), depth),
            },
            Value::Bytes([]) | Value::Nothing | Value::String(None) => self.write_str("(none)"),
            Value::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(self, "{byte:02x}")),
            Value::Fields(fields) => {
                self.write_str(":\n")?;
                fields.each(&mut |name, value| self.field(name, &value, depth + 1))
            }
        }
    }

    /// Writes a field as a line, or as several if it is a struct.
    fn field(&mut self, name: &str, value: &Value<'_>, depth: usize) -> fmt::Result {
        for _ in 0..depth {
            self.write_str("    ")?;
        }
        self.write_str(name)?;
        match value {
            Value::Fields(_) => self.nested(value, depth),
            _ => {
                self.write_str(": ")?;
                self.nested(value, depth)?;
                self.write_str("\n")
            }
        }
    }

    fn flags(&mut self, bits: u64, names: &[Name]) -> fmt::Result {
        let mut unnamed = bits;
        let mut separator = "";
        for name in names.iter().filter(|name| bits & name.value != 0) {
            self.write_str(separator)?;
            self.write_str(name.name)?;
            separator = ", ";
            unnamed &= !name.value;
        }
        match unnamed {
            0 => Ok(()),
            _ => write!(self, "{separator}{unnamed:#x}"),
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // INVARIANT: `text` is a constant of this module, a number, or a C string: none has a NUL.
        self.0
            .extend_from_slice(text.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}
