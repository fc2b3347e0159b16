// SPDX-License-Identifier: GPL-2.0

//! Reliable queue pairs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp`
//!
//! A queue pair is connected step by step, and each step is a type of its own:
//!
//! ```text
//!               init()             connect()
//!   Qp<Reset> --------> Qp<Init> -----------> Qp<ReadyToSend>
//! ```
//!
//! From any of them it goes into error, by [`Qp::fail`] or by itself when a request fails, and
//! stays there; so error is no type. All that is posted then is flushed.

mod attr;
mod drain;

use crate::{
    cq::{
        Cq,
        Entries, //
    },
    outstanding::End,
    pd::Counted,
    port::Path,
    prelude::*,
    sg::leak,
    srq::Srq, //
};
use rdma_bindings as b;

pub use attr::{
    Depths,
    Peer,
    Reliability, //
};

/// A queue pair that has been made, and nothing more.
pub struct Reset;
/// A queue pair that takes receive requests.
pub struct Init;
/// A connected queue pair, unless it has gone into error.
pub struct ReadyToSend;

/// A reliable queue pair, in the state `S` or in error.
///
/// Wraps the C `struct ib_qp`. It has an entry of its completion queues for each request.
///
/// To be ended by [`Qp::destroy`]; dropping it does that too, and may sleep. Requests that have not
/// completed by then are told that they are gone; [`Qp::drain`] waits for them first.
///
/// # Examples
///
/// ```ignore
/// let qp = Qp::create(&pd, [&cq, &cq], depths, None)?;
/// // Takes receives from here on.
/// let qp = qp.init(port.number(), Access::LocalWrite | Access::RemoteWrite)?;
/// let qp = qp.connect(path, peer, psn, &Reliability::default())?;
/// ```
pub struct Qp<S> {
    pub(crate) raw: RawQp,
    _state: PhantomData<S>,
}

impl Qp<Reset> {
    /// Creates a queue pair on a domain. Its sends complete to the first queue of `cqs`, and its receives
    /// to the second. With `srq` the queue pair has no receives of its own, and needs
    /// [`entries`](Srq::entries) of the second queue for the shared ones. May sleep.
    ///
    /// A driver that copies fewer bytes than [requested](Depths::inline) still creates the queue
    /// pair.
    ///
    /// # Errors
    ///
    /// - `ENOSPC` if the completion queue has not enough entries left.
    /// - `ENOMEM`, or the error of the driver.
    pub fn create(
        pd: &Arc<Pd>,
        cqs: [&Arc<Cq>; 2],
        depths: Depths,
        srq: Option<&Arc<Srq>>,
    ) -> Result<Self> {
        Ok(Self {
            raw: RawQp::create(pd, cqs, depths, srq)?,
            _state: PhantomData,
        })
    }

    /// Gives it a port, and its peer rights. May sleep.
    pub fn init(self, port: u32, access: AccessFlags) -> Result<Qp<Init>> {
        self.change(attr::init(port, access))
    }
}

impl Qp<Init> {
    /// Connects the queue pair to a peer. Then it takes the peer's requests, and can send. `psn` is
    /// the number of the first packet that it sends. May sleep.
    pub fn connect(
        self,
        path: Path,
        peer: Peer,
        psn: u32,
        how: &Reliability,
    ) -> Result<Qp<ReadyToSend>> {
        let ((mut attr, mask), held) = attr::ready_to_receive(path, peer, how);
        let changed = self.raw.modify(&mut attr, mask);
        // The queue pair holds the address itself now.
        drop(held);
        changed?;
        self.change(attr::ready_to_send(psn, how))
    }
}

impl<S> Qp<S> {
    /// Changes its state. On an error it is destroyed.
    fn change<T>(self, (mut attr, mask): attr::Change) -> Result<Qp<T>> {
        self.raw.modify(&mut attr, mask)?;
        Ok(Qp {
            raw: self.raw,
            _state: PhantomData,
        })
    }

    /// Returns the number of the queue pair. Any context.
    pub fn number(&self) -> u32 {
        // SAFETY: `qp` is valid as long as `self`, and its number is constant.
        unsafe { (*self.as_raw()).qp_num }
    }

    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.raw.pd
    }

    /// Refuses all later requests, as if the queue pair had gone into error. Any context.
    pub(crate) fn refuse(&self) {
        self.raw.sends.break_by(WcStatus::FLUSHED);
        self.raw.receives.break_by(WcStatus::FLUSHED);
    }

    /// Returns the maximum number of bytes that the driver copies into a send request. It is at most the
    /// [requested number](Depths::inline). Any context.
    pub fn inline_limit(&self) -> u32 {
        self.raw.inline
    }

    /// Returns the raw pointer, which is valid as long as `self`.
    pub fn as_raw(&self) -> *mut rdma_bindings::ib_qp {
        self.raw.qp.as_ptr()
    }

    /// Puts the queue pair into error: all that is outstanding gets flushed. May sleep.
    pub fn fail(&self) -> Result {
        let (mut attr, mask) = attr::error();
        self.raw.modify(&mut attr, mask)
    }

    /// Destroys the queue pair. No posted request is carried out or completes any more. Requests
    /// that have not completed get an error. Sleeps.
    ///
    /// After an error, the queue pair has been leaked, and the memory of its requests must never be
    /// freed.
    pub fn destroy(mut self) -> Result {
        self.raw.end()
    }

    /// Returns the completion queue for sends.
    pub(crate) fn send_cq(&self) -> Option<&Arc<Cq>> {
        self.send_entries().map(Entries::cq)
    }

    /// Returns the entries of the completion queue for sends.
    fn send_entries(&self) -> Option<&Entries> {
        self.raw.entries.as_ref().map(|[sends, _]| sends)
    }

    /// Returns the entries of the completion queue for receives.
    fn receive_entries(&self) -> Option<&Entries> {
        self.raw.entries.as_ref().map(|[_, receives]| receives)
    }
}

/// The C object.
///
/// # Invariants
///
/// `qp` is a queue pair that is destroyed only here, and is there as long as `counted` is. Its
/// completions go where `entries` are.
pub(crate) struct RawQp {
    pub(crate) qp: NonNull<rdma_bindings::ib_qp>,
    counted: Option<Counted>,
    // Goes after the queue pair.
    pub(crate) comm_est: Arc<CommEstNotifier>,
    pub(crate) sends: Arc<Outstanding>,
    pub(crate) receives: Arc<Outstanding>,
    /// For sends and for receives.
    entries: Option<[Entries; 2]>,
    /// The most bytes that the driver copies into a send request.
    pub(crate) inline: u32,
    srq: Option<Arc<Srq>>,
    pd: Arc<Pd>,
}

// SAFETY: A queue pair is not tied to a task.
unsafe impl Send for RawQp {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for RawQp {}

impl RawQp {
    fn create(
        pd: &Arc<Pd>,
        [send_cq, receive_cq]: [&Arc<Cq>; 2],
        mut depths: Depths,
        srq: Option<&Arc<Srq>>,
    ) -> Result<Self> {
        if srq.is_some() {
            depths.receive = 0;
        }
        let (sends, receives) = (
            Outstanding::new(depths.send)?,
            Outstanding::new(depths.receive)?,
        );
        let (send, receive) = (depths.in_send_queue(), depths.in_receive_queue());
        let entries = [
            send_cq.reserve(send, &sends)?,
            match srq {
                Some(srq) => receive_cq.reserve(srq.entries()?, srq.queue())?,
                None => receive_cq.reserve(receive, &receives)?,
            },
        ];
        let comm_est = Arc::pin_init(CommEstNotifier::new(), GFP_KERNEL)?;
        let shared = srq.map_or(null_mut(), |srq| srq.as_raw());
        // The attributes are new each time: a driver that refuses them may have changed them.
        let create = |inline: u32| -> Result<_> {
            let mut attr = depths.attr([send_cq.as_raw(), receive_cq.as_raw()], shared, inline);
            // The notifier is freed after the queue pair.
            attr.event_handler = Some(b::rdma_helper_qp_event);
            attr.qp_context = comm_est.event.get().cast();
            // SAFETY: `pd`, both queues and `srq`, if there is one, are held, so the objects that `attr`
            // names are valid.
            let qp = unsafe { rdma_bindings::rdma_helper_create_qp(pd.as_raw(), &mut attr) };
            let qp = NonNull::new(from_err_ptr(qp)?).ok_or(ENOMEM)?;
            // The driver writes back how many it copies: mlx4 and pvrdma none for the kernel.
            Ok((qp, attr.cap.max_inline_data.min(inline)))
        };
        let (qp, inline) = match create(depths.inline) {
            // Drivers refuse more than their devices copy with this error, and tell no limit.
            Err(error) if error == EINVAL && depths.inline > 0 => create(0)?,
            created => created?,
        };
        // INVARIANT: Just created, with these completion queues.
        Ok(Self {
            qp,
            inline,
            counted: Some(Counted::new(pd)),
            comm_est,
            sends,
            receives,
            entries: Some(entries),
            srq: srq.cloned(),
            pd: pd.clone(),
        })
    }

    /// Changes attributes, those that `mask` names. May sleep.
    pub(crate) fn modify(&self, attr: &mut rdma_bindings::ib_qp_attr, mask: u32) -> Result {
        let mask = c_int::try_from(mask)?;
        // SAFETY: By the type invariant `qp` is there, as it is still counted; `attr` may be
        // changed.
        to_result(unsafe { rdma_bindings::ib_modify_qp(self.qp.as_ptr(), attr, mask) })
    }

    /// Destroys the queue pair, then lets go of its completion queues.
    fn end(&mut self) -> Result {
        let Some(counted) = self.counted.take() else {
            return Ok(());
        };
        let qp = self.qp.as_ptr();
        let entries = self.entries.take();
        self.settle(&entries);
        let ended = counted.end("queue pair", || {
            // SAFETY: By the type invariant `qp` is there, as it was still counted, and isn't used
            // again.
            to_result(unsafe { rdma_bindings::ib_destroy_qp_user(qp, null_mut()) })
        });
        if ended.is_ok() {
            self.settle(&entries);
            // Completions may be on their way until the queue has gone, if nobody else uses it.
            drop(entries);
            self.sends.end_all(End::Gone);
            self.receives.end_all(End::Gone);
        } else {
            let device = self.pd.device.as_raw();
            // SAFETY: `qp` could not be destroyed, so it is there, and nothing frees it.
            unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*qp).res) };
            self.comm_est.keep(qp);
            entries.iter().flatten().for_each(Entries::stuck);
        }
        ended
    }
}

impl Drop for RawQp {
    fn drop(&mut self) {
        // An error has been reported. A caller that needs the result calls `destroy()`.
        let _ = self.end();
    }
}

/// A notifier that tells an identifier of the connection manager, if one is set, that communication is
/// established.
///
/// C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `rdma_notify()`
///
/// A message can arrive before the packet that establishes the connection, or that packet can be lost. The
/// driver then reports that communication is established, and the connection manager needs that report.
///
/// # Invariants
///
/// - `event` is initialized and does not move: it is in an [`Arc`].
/// - Its identifier is null or valid.
#[pin_data]
pub(crate) struct CommEstNotifier {
    #[pin]
    event: Opaque<b::rdma_helper_herald>,
}

// SAFETY: The C functions lock `event`, so any task may use it.
unsafe impl Send for CommEstNotifier {}

// SAFETY: The C functions lock `event`.
unsafe impl Sync for CommEstNotifier {}

impl CommEstNotifier {
    /// Creates a notifier without an identifier.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: The call initializes `event` without an identifier.
            event <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid memory for the structure.
                unsafe { b::rdma_helper_init_herald(slot) }
            }),
        })
    }

    /// Stops the events of a queue pair that could not be destroyed.
    pub(super) fn keep(self: &Arc<Self>, qp: *mut b::ib_qp) {
        // SAFETY: `qp` stays valid: it is never destroyed.
        unsafe { b::rdma_helper_silence_qp(qp) };
        // A running handler may still use the notifier.
        leak(self.clone());
    }

    /// Sets the identifier to notify.
    ///
    /// # Safety
    ///
    /// `id` must be valid until [`CommEstNotifier::clear_id`] has returned.
    pub(crate) unsafe fn set_id(&self, id: *mut b::rdma_cm_id) {
        // SAFETY: `event` is initialized by the type invariant. `id` is valid until `clear_id()` by
        // the function's contract.
        unsafe { b::rdma_helper_set_herald(self.event.get(), id) };
    }

    /// Clears the identifier. Any context.
    pub(crate) fn clear_id(&self) {
        // SAFETY: `event` is initialized by the type invariant, and null is no identifier.
        unsafe { b::rdma_helper_set_herald(self.event.get(), null_mut()) };
    }
}
