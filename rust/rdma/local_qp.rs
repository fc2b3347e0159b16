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

use kernel::{
    error::to_result,
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
    mr::{
        Fence,
        PreparedMr,
        RegisterError,
        Revoked,
        ValidMr, //
    },
    pd::Pd,
    wr::{
        Waiter,
        WrError, //
    },
};

/// A reliable queue pair that is connected to itself, with its completion queue.
///
/// It gives peers no access rights and has no receive queue. Any number of tasks may use it at
/// once: each posts one work request and sleeps until that is complete, and as many as the queue
/// is deep are under way at a time.
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

    /// Registers a region: when this has succeeded, its key is good.
    ///
    /// Sleeps, uninterruptibly, until the device is done. The region must be of the same
    /// protection domain, or it is handed back with [`EINVAL`]. If it is not known what became of
    /// the region, it is deregistered, which leaves its list to be tried with another.
    pub fn register<L: crate::sg::DmaList>(
        &self,
        mut mr: PreparedMr<L>,
    ) -> Result<ValidMr, RegisterError<L>> {
        if !self.is_same_pd(mr.pd()) {
            return Err(RegisterError::Unposted { error: EINVAL, mr });
        }
        mr.next_key();
        // SAFETY: The queue pair and the region are there; so is the `cqe`, by `run()`'s word, and
        // the region until this has returned, since it is waited for.
        let result = self.run(|qp, cqe| unsafe {
            rdma_bindings::rdma_helper_post_reg(qp, mr.as_raw(), mr.access().into(), cqe)
        });
        match result {
            // SAFETY: The device has just registered it.
            Ok(()) => Ok(unsafe { mr.into_valid() }),
            Err(WrError::Post(error)) => Err(RegisterError::Unposted { error, mr }),
            Err(error) => Err(RegisterError::Lost {
                error,
                list: mr.abandon(),
            }),
        }
    }

    /// Takes a region from the device: when this has returned, no peer can reach its memory.
    ///
    /// Sleeps, uninterruptibly, until that is so. After an invalidation that went well the region
    /// can be used again; else it has been deregistered, and so it has with a fence or a queue pair
    /// that is not for this region's device. An error means that the device would not let go of
    /// it: it has been leaked with its mapping, and its memory must never be freed.
    pub fn revoke(&self, mr: ValidMr, fence: Fence) -> Result<Revoked> {
        if !fence.invalidates_on(mr.pd().device()) || !self.is_same_pd(mr.pd()) {
            return mr.deregister().map(Revoked::gone);
        }
        match self.invalidate_key(mr.rkey()) {
            // SAFETY: The device has just invalidated it, which is a fence here, as `Fence` says.
            Ok(()) => Ok(unsafe { mr.into_free() }),
            Err(error) => mr.deregister().map(|mapping| Revoked {
                error: Some(error),
                ..Revoked::gone(mapping)
            }),
        }
    }

    /// Invalidates whatever region of the protection domain has this key.
    ///
    /// That takes access away, as a peer could do as well, and gives none, so nothing depends on
    /// whose key it is; the region's owner is to go on as ever. A key that isn't valid makes the
    /// request fail, and breaks the queue pair. Sleeps, uninterruptibly, until the device is done.
    pub fn invalidate_key(&self, rkey: u32) -> Result<(), WrError> {
        // SAFETY: The queue pair is there; so is the `cqe`, by `run()`'s word.
        self.run(|qp, cqe| unsafe { rdma_bindings::rdma_helper_post_inv(qp, rkey, cqe) })
    }

    /// Posts one signalled work request, and waits for its completion.
    ///
    /// `post` gets a `cqe` that stays until the completion has come, or until `post` has failed.
    fn run(
        &self,
        post: impl FnOnce(*mut rdma_bindings::ib_qp, *mut rdma_bindings::ib_cqe) -> c_int,
    ) -> Result<(), WrError> {
        // Given back after the waiter, at the end.
        let _credit = self.credits.take();
        stack_pin_init!(let waiter = Waiter::new());
        let waiter = waiter.into_ref();

        to_result(post(self.qp.as_raw(), waiter.cqe())).map_err(WrError::Post)?;
        waiter
            .wait()
            .inspect_err(|_| self.broken.store(true, Relaxed))
    }

    /// Whether a protection domain is this queue pair's.
    fn is_same_pd(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(self.pd(), pd)
    }
}
