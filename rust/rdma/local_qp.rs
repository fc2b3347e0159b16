// SPDX-License-Identifier: GPL-2.0

//! A queue pair connected to itself, for work that the device does locally.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Regions are registered and invalidated by work requests, which need a connected queue pair,
//! though nothing of that goes over the wire. A key is good on all queue pairs of its protection
//! domain, so one that is connected to itself and carries no data will do for all.

mod objects;
mod path;
mod regions;

pub use regions::RefreshError;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use pin_init::stack_pin_init;

use self::{
    objects::{
        Cq,
        RawQp, //
    },
    path::SelfPath, //
};
use crate::{
    credits::Credits,
    pd::Pd,
    wr::{
        Waiter,
        WrError, //
    },
};

/// A reliable queue pair that is connected to itself, with its completion queue.
///
/// It gives peers no access rights and has no receive queue. Any number of tasks may use it at
/// once: each posts its work requests and sleeps until they are complete, and as many as the queue
/// is deep are under way at a time, of all tasks together.
///
/// A work request that fails puts the queue pair into error for good, and whatever is posted from
/// then on is flushed. Regions and their keys belong to the protection domain, so they survive it:
/// make a new queue pair and go on there.
///
/// # Destruction
///
/// Dropping it destroys the queue pair, then the completion queue, and may sleep. The queue needs
/// no draining: each request that has been posted has a task that waits for its completion inside
/// a method of the queue pair, and while one is inside, there is a reference left.
#[pin_data]
pub struct LocalQp {
    qp: RawQp,
    #[pin]
    credits: Credits,
    depth: u32,
    broken: Atomic<bool>,
}

impl LocalQp {
    /// Makes a queue pair on which `depth` work requests can be outstanding, or as many as the
    /// device allows if that is less.
    ///
    /// It uses the first active InfiniBand or RoCE port. ENETDOWN if none is active, EOPNOTSUPP if
    /// the device has none at all (iWARP). May sleep.
    pub fn new(pd: Arc<Pd>, depth: u32) -> Result<Arc<Self>> {
        let path = SelfPath::find(pd.device())?;
        let limits = pd.device().limits();
        // One more of each than there are credits: a completion may be seen before the driver
        // has taken back the place of its work request.
        let depth = depth
            .min(limits.max_qp_wr.saturating_sub(1))
            .min(limits.max_cqe.saturating_sub(1))
            .max(1);

        let cq = Cq::alloc(pd.device(), depth.saturating_add(1))?;
        let qp = RawQp::create(pd, cq, depth.saturating_add(1))?;
        path.connect(&qp)?;

        Arc::pin_init(
            pin_init!(Self {
                qp,
                credits <- Credits::new(depth),
                depth,
                broken: Atomic::new(false),
            }),
            GFP_KERNEL,
        )
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.qp.pd()
    }

    /// How many work requests can be outstanding.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether a work request has failed, or [`LocalQp::fail`] been called: nothing will succeed
    /// here any more. Doesn't sleep.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    /// Puts the queue pair into error: what is outstanding gets flushed, and so does what is
    /// posted from now on. May sleep.
    pub fn fail(&self) -> Result {
        self.broken.store(true, Relaxed);
        let mut attr = rdma_bindings::ib_qp_attr {
            qp_state: rdma_bindings::ib_qp_state_IB_QPS_ERR,
            ..Default::default()
        };
        self.qp
            .modify(&mut attr, rdma_bindings::ib_qp_attr_mask_IB_QP_STATE)
    }

    /// Posts one signalled work request per item, and waits for all completions.
    ///
    /// `post` gets a `cqe` that stays until the completion has come, or until `post` has failed.
    /// On an error some requests may have been carried out, and some not have been posted.
    fn run<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut post: impl FnMut(*mut rdma_bindings::ib_qp, *mut rdma_bindings::ib_cqe, T) -> c_int,
    ) -> Result<(), WrError> {
        stack_pin_init!(let waiter = Waiter::new(&self.credits));
        let waiter = waiter.into_ref();

        let mut posted = Ok(());
        for item in items {
            // The queue pair is broken: the others would only be flushed.
            if posted.is_err() || waiter.has_failed() {
                break;
            }
            posted = waiter.post(|cqe| post(self.qp.as_raw(), cqe, item));
        }
        waiter
            .wait()
            .inspect_err(|_| self.broken.store(true, Relaxed))
            .and(posted)
    }

    /// Whether a protection domain is this queue pair's.
    fn is_same_pd(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(self.pd(), pd)
    }
}
