// SPDX-License-Identifier: GPL-2.0

//! Common parts of the unit tests of completion queues.

use crate::{
    provider::cq::*,
    support::vec::PushReserved, //
};
use core::ptr::without_provenance_mut;
use kernel::{
    new_spinlock,
    sync::SpinLock,
    time::{
        delay::fsleep,
        Delta,
        Jiffies, //
    }, //
};

/// Returns the completion of the operation with this number.
pub(super) fn done(number: usize) -> CqEntry {
    CqEntry {
        context: Context::new(without_provenance_mut(number)),
        flags: 2,
        len: 3,
        buf: Context::NULL,
        data: 4,
    }
}

/// Returns the failure of the operation with this number.
pub(super) fn failure(number: usize) -> CqErrEntry {
    CqErrEntry {
        done: done(number),
        olen: 5,
        errno: Errno::EIO,
        prov_errno: 6,
    }
}

pub(super) fn number(context: Context) -> usize {
    context.as_ptr().addr()
}

pub(super) fn complete(queue: &Arc<CqCore>, number: usize) -> Result {
    queue.reserve().ok_or(EAGAIN)?.complete(done(number));
    Ok(())
}

pub(super) fn fail(queue: &Arc<CqCore>, number: usize) -> Result {
    queue.reserve().ok_or(EAGAIN)?.fail(failure(number));
    Ok(())
}

pub(super) fn vec(numbers: &[usize]) -> Result<KVec<usize>> {
    let mut all = KVec::new();
    all.extend_from_slice(numbers, GFP_KERNEL)?;
    Ok(all)
}

/// Returns the numbers of the completions that `read` passes on, or its result if there are none.
fn numbers(read: impl FnOnce(&mut dyn FnMut(&CqEntry)) -> CqRead) -> Result<KVec<usize>, CqRead> {
    const MANY: usize = 1000;
    let mut all = KVec::with_capacity(MANY, GFP_KERNEL).map_err(|_| CqRead::Empty)?;
    // Under the lock, where nothing can be allocated.
    let read = read(&mut |done| {
        all.push_reserved(number(done.context));
    });
    match read {
        CqRead::Done(count) if count == all.len() => Ok(all),
        read => Err(read),
    }
}

/// Reads at most `most` completions.
pub(super) fn read(queue: &CqCore, most: usize) -> Result<KVec<usize>, CqRead> {
    numbers(|out| queue.read(most, out))
}

/// Waits for at least `threshold` completions.
pub(super) fn wait(
    queue: &CqCore,
    at_least: usize,
    left: Option<Jiffies>,
) -> Result<KVec<usize>, CqRead> {
    numbers(|out| queue.wait_and_read(9, at_least, left, out))
}

/// Gives others a turn.
pub(super) fn pause() {
    fsleep(Delta::from_millis(1));
}

/// Counts what a handler does, which can be told to do more.
#[pin_data]
pub(super) struct Probe {
    calls: Atomic<usize>,
    inside: Atomic<usize>,
    most_inside: Atomic<usize>,
    #[pin]
    queue: SpinLock<Option<Arc<CqCore>>>,
}

/// The action of a handler on its queue; it gets the number of the call.
type Script = dyn Fn(&Arc<CqCore>, usize) + Send + Sync;

struct Calls {
    probe: Arc<Probe>,
    script: KBox<Script>,
}

impl Probe {
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                calls: Atomic::new(0),
                inside: Atomic::new(0),
                most_inside: Atomic::new(0),
                queue <- new_spinlock!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the number of calls of the handler.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Returns the maximum number of simultaneous calls.
    pub(super) fn most_inside(&self) -> usize {
        self.most_inside.load(Relaxed)
    }

    /// Makes a queue with a handler that does nothing else.
    pub(super) fn queue(self: &Arc<Self>, size: usize) -> Result<Arc<CqCore>> {
        self.queue_with(size, |_, _| ())
    }

    /// Makes a queue with a handler that does this, too.
    pub(super) fn queue_with(
        self: &Arc<Self>,
        size: usize,
        script: impl Fn(&Arc<CqCore>, usize) + Send + Sync + 'static,
    ) -> Result<Arc<CqCore>> {
        let calls = Calls {
            probe: self.clone(),
            script: KBox::new(script, GFP_KERNEL)?,
        };
        let handler: KBox<dyn Notify> = KBox::new(calls, GFP_KERNEL)?;
        let queue = CqCore::new(size, None, Some(handler))?;
        *self.queue.lock() = Some(queue.clone());
        Ok(queue)
    }

    /// Lets the queue go, to which the handler has a reference.
    pub(super) fn end(&self) {
        let queue = self.queue.lock().take();
        drop(queue);
    }
}

impl Notify for Calls {
    fn notify(&self) {
        let probe = &self.probe;
        let call = probe.calls.fetch_add(1, Relaxed) + 1;
        let inside = probe.inside.fetch_add(1, Relaxed) + 1;
        if inside > probe.most_inside.load(Relaxed) {
            probe.most_inside.store(inside, Relaxed);
        }
        let queue = probe.queue.lock().clone();
        if let Some(queue) = queue {
            (self.script)(&queue, call);
        }
        probe.inside.fetch_sub(1, Relaxed);
    }
}
