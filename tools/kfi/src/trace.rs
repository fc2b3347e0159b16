// SPDX-License-Identifier: GPL-2.0

//! Reader of events as they happen, from a private instance of tracefs. `kfi trace` prints kfi:kfi_refused with it.

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
    time::{
        Duration,
        Instant, //
    },
};

const TRACEFS: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/kfi/kfi_refused";
/// Period after which [`follow`] checks whether the events still exist.
const LOOK: Duration = Duration::from_secs(1);

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

    fn has(&self, event: &str) -> bool {
        fs::read(self.directory.join(event).join("enable")).is_ok_and(|on| on.starts_with(b"1"))
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
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.extend(bytes);
        let complete = self
            .bytes
            .iter()
            .rposition(|i| *i == b'\n')
            .map_or(0, |i| i + 1);
        let lines: Vec<_> = self.bytes.drain(..complete).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            each(line)?;
        }
        Ok(())
    }
}

/// Enables `events` in their order, and passes each new trace line to `each`. Returns if one of these holds:
///
/// - A signal arrives.
/// - `time` has passed.
/// - Nobody reads the output.
pub fn follow(
    events: &[&str],
    time: Option<Duration>,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> Result<(), Error> {
    let system = |e: io::Error| Error::new(format!("can't wait for events: {e}"));
    // Before the instance is there: a signal must not leave it behind.
    let signals = sys::end_signals().map_err(system)?;
    let instance = Instance::new(Path::new(TRACEFS))?;
    // The pipe is ready with the first event.
    instance.set("buffer_percent", "0")?;
    // The order of events of different CPUs. The default clock of an instance has none if the CPUs' clocks differ.
    instance.set("trace_clock", "mono")?;
    for event in events {
        instance.set(&format!("{event}/enable"), "1")?;
    }
    // Dropped before the instance, which can't be removed while it is open.
    let mut pipe = instance.pipe()?;
    let mut lines = Lines::default();
    let mut buffer = vec![0; 65536];
    let begin = Instant::now();
    let mut over = false;
    loop {
        let left = time.map_or(LOOK, |i| i.saturating_sub(begin.elapsed()));
        let files = [
            (signals.as_raw_fd(), true),
            (io::stdout().as_raw_fd(), false),
            (pipe.as_raw_fd(), true),
        ];
        let ms = i32::try_from(left.min(LOOK).as_millis()).unwrap_or(i32::MAX);
        let [ended, unread, _] = sys::wait(files, ms).map_err(system)?;
        if unread {
            return Ok(());
        }
        if (ended || left.is_zero()) && !over {
            // No event is added, so the loop ends after the last event before this.
            instance.set("tracing_on", "0")?;
            over = true;
        }
        match pipe.read(&mut buffer) {
            Ok(length) => {
                let read = buffer.get(..length).unwrap_or_default();
                if let Err(e) = lines.add(read, &mut each) {
                    return Error::output(e);
                }
            }
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(system(e)),
            _ if over => return Ok(()),
            _ if !events.iter().all(|i| instance.has(i)) => {
                return Err(Error::new("the core has been unloaded"));
            }
            _ => {}
        }
    }
}

/// Prints each new refusal, until a signal arrives or nobody reads the output.
pub fn run(json: bool) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    follow(&[EVENT], None, |line| {
        let line = Line::parse(line);
        match json {
            true => writeln!(output, "{}", serde_json::to_string(&line)?)?,
            false => writeln!(output, "{line}")?,
        }
        output.flush()
    })
}
