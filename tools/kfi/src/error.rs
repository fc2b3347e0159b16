// SPDX-License-Identifier: GPL-2.0

//! Failures of the command.

use std::{
    fmt,
    io::{
        self,
        Write, //
    }, //
};

/// A failure, in one line.
#[derive(Debug, PartialEq)]
pub struct Error {
    text: String,
}

impl Error {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Returns a failure to write to standard output. A closed pipe is no failure.
    pub fn output(e: io::Error) -> Result<(), Self> {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(Self::new(format!("can't write the output: {e}"))),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Writes to standard error. If it is closed, the exit code still says that something failed.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
