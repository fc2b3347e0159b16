// SPDX-License-Identifier: GPL-2.0

//! `kfi trace`: an instance of tracefs of its own, with the event kfi:kfi_refused.

use crate::{
    error::{
        tell,
        Error, //
    },
    refusal::Line,
    sys, //
};
use std::{
    fs::{
        self,
        File,
        OpenOptions, //
    },
    io::{
        self,
        Read,
        Write, //
    },
    os::{
        fd::AsRawFd,
        unix::fs::OpenOptionsExt, //
    },
    path::{
        Path,
        PathBuf, //
    },
    process,
};

const TRACEFS: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/kfi/kfi_refused";
/// How often, in milliseconds, to look whether the event is still there.
const LOOK: i32 = 1000;

/// Turns an error of a file of tracefs into a failure that says what to do.
fn failure(path: &Path, e: &io::Error) -> Error {
    let advice = match e.kind() {
        io::ErrorKind::PermissionDenied => ": run it as root",
        _ => "",
    };
    Error::new(format!("{}: {e}{advice}", path.display()))
}

/// An instance: a directory of tracefs with buffers and events of its own.
struct Instance {
    directory: PathBuf,
}

impl Instance {
    fn new(tracefs: &Path) -> Result<Self, Error> {
        // Only root may look at what is in the directory.
        if let Err(e) = fs::read_dir(tracefs) {
            return Err(failure(tracefs, &e));
        }
        if !tracefs.join("instances").exists() {
            return Err(Error::new(format!(
                "no tracefs at {0}: mount it (mount -t tracefs tracefs {0})",
                tracefs.display()
            )));
        }
        if !tracefs.join(EVENT).exists() {
            return Err(Error::new(
                "the kernel has no event kfi:kfi_refused: load the core (modprobe kfabric)",
            ));
        }
        let directory = tracefs.join(format!("instances/kfi-{}", process::id()));
        // A process of the same number may have been killed.
        if directory.exists() {
            fs::remove_dir(&directory).map_err(|e| failure(&directory, &e))?;
        }
        fs::create_dir(&directory).map_err(|e| failure(&directory, &e))?;
        Ok(Self { directory })
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.directory.join(name);
        fs::write(&path, value).map_err(|e| failure(&path, &e))
    }

    fn has_event(&self) -> bool {
        fs::read(self.directory.join(EVENT).join("enable")).is_ok_and(|on| on.starts_with(b"1"))
    }

    fn pipe(&self) -> Result<File, Error> {
        let path = self.directory.join("trace_pipe");
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(|e| failure(&path, &e))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir(&self.directory) {
            tell(&format!("kfi: {}: {e}\n", self.directory.display()));
        }
    }
}

/// Bytes of a trace, and the lines in them.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    /// Adds bytes, and passes each line that they complete to `each`.
    fn add<E>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Line) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.extend(bytes);
        let complete = self
            .bytes
            .iter()
            .rposition(|i| *i == b'\n')
            .map_or(0, |i| i + 1);
        let lines: Vec<_> = self.bytes.drain(..complete).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            each(Line::parse(line))?;
        }
        Ok(())
    }
}

/// Prints each refusal from now on, until a signal ends it or nobody reads the output.
pub fn run(json: bool) -> Result<(), Error> {
    let system = |e: io::Error| Error::new(format!("can't wait for events: {e}"));
    // Before the instance is there: a signal must not leave it behind.
    let signals = sys::end_signals().map_err(system)?;
    let instance = Instance::new(Path::new(TRACEFS))?;
    // The pipe is ready with the first event.
    instance.set("buffer_percent", "0")?;
    instance.set(&format!("{EVENT}/enable"), "1")?;
    // Dropped before the instance, which can't be removed while it is open.
    let mut pipe = instance.pipe()?;
    let mut lines = Lines::default();
    let mut buffer = vec![0; 65536];
    let mut output = io::stdout().lock();
    loop {
        let files = [
            (signals.as_raw_fd(), true),
            (output.as_raw_fd(), false),
            (pipe.as_raw_fd(), true),
        ];
        let [ended, unread, events] = sys::wait(files, LOOK).map_err(system)?;
        if ended || unread {
            return Ok(());
        }
        if !events {
            if !instance.has_event() {
                return Err(Error::new("the core has been unloaded"));
            }
            continue;
        }
        let length = match pipe.read(&mut buffer) {
            Ok(length) => length,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(e) => return Err(system(e)),
        };
        let written = lines.add(buffer.get(..length).unwrap_or_default(), |line| {
            match json {
                true => writeln!(output, "{}", serde_json::to_string(&line)?)?,
                false => writeln!(output, "{line}")?,
            }
            output.flush()
        });
        if let Err(e) = written {
            return Error::output(e);
        }
    }
}
