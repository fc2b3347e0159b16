// SPDX-License-Identifier: GPL-2.0

//! A handler that writes down the events.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use rdma::cm::{
    Event,
    Events,
    Incoming,
    Requests,
    Step, //
};

use crate::note;

/// How long to wait for anything: a busy machine that emulates this one may need a while.
const PATIENCE_MS: u32 = 60_000;
const NAP_MS: u32 = 5;

/// Tries until something is there.
pub(crate) fn wait_for<T>(mut it: impl FnMut() -> Option<T>) -> Result<T> {
    for _ in 0..PATIENCE_MS / NAP_MS {
        if let Some(there) = it() {
            return Ok(there);
        }
        fsleep(Delta::from_millis(NAP_MS.into()));
    }
    Err(ETIMEDOUT)
}

/// An event.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Established(KVec<u8>),
    PathChanged,
    Rejected(i32, KVec<u8>),
    Failed(Step, c_int),
    Stalled,
    Disconnected,
    DeviceRemoval,
}

/// Returns an error: another event was told.
fn not<T>(told: Told) -> Result<T> {
    note!("told of {told:?}");
    Err(EINVAL)
}

fn copy(data: &[u8]) -> KVec<u8> {
    let mut copy = KVec::new();
    let _ = copy.extend_from_slice(data, GFP_KERNEL);
    copy
}

/// The events of a connection.
#[pin_data]
pub(crate) struct Diary {
    #[pin]
    entries: Mutex<KVec<Told>>,
}

impl Diary {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { entries <- new_mutex!(KVec::new()) }),
            GFP_KERNEL,
        )
    }

    /// Waits for the next event.
    pub(crate) fn next(&self) -> Result<Told> {
        wait_for(|| self.now())
    }

    /// Waits for the next event, which is that the connection is there. Returns what came with it.
    pub(crate) fn established(&self) -> Result<KVec<u8>> {
        match self.next()? {
            Told::Established(data) => Ok(data),
            told => not(told),
        }
    }

    /// Waits for the next event, which is that the connection was rejected, for this reason. Returns what came
    /// with it.
    pub(crate) fn rejected(&self, reason: i32) -> Result<KVec<u8>> {
        match self.next()? {
            Told::Rejected(why, data) if why == reason => Ok(data),
            told => not(told),
        }
    }

    /// Returns the next event, if there is one.
    pub(crate) fn now(&self) -> Option<Told> {
        let mut entries = self.entries.lock();
        if entries.is_empty() {
            return None;
        }
        entries.remove(0).ok()
    }
}

impl Events for Diary {
    fn event(&self, event: Event<'_>) {
        let told = match event {
            Event::Established(it) => Told::Established(copy(it.private_data)),
            Event::PathChanged => Told::PathChanged,
            Event::Rejected(it) => Told::Rejected(it.reason, copy(it.private_data)),
            Event::Failed { step, error } => Told::Failed(step, error.to_errno()),
            Event::Stalled => Told::Stalled,
            Event::Disconnected => Told::Disconnected,
            Event::DeviceRemoval => Told::DeviceRemoval,
        };
        // Its absence is told by who waits for it.
        let _ = self.entries.lock().push(told, GFP_KERNEL);
    }
}

/// The requests to a listener.
#[pin_data]
pub(crate) struct Callers {
    #[pin]
    entries: Mutex<KVec<Incoming>>,
}

impl Callers {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { entries <- new_mutex!(KVec::new()) }),
            GFP_KERNEL,
        )
    }

    /// Waits for the next request.
    pub(crate) fn next(&self) -> Result<Incoming> {
        wait_for(|| {
            let mut entries = self.entries.lock();
            if entries.is_empty() {
                return None;
            }
            entries.remove(0).ok()
        })
    }
}

impl Requests for Callers {
    fn request(&self, incoming: Incoming) {
        let _ = self.entries.lock().push(incoming, GFP_KERNEL);
    }
}
