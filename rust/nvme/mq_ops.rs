// SPDX-License-Identifier: GPL-2.0

//! The functions that the block layer calls (`struct blk_mq_ops`).

use crate::{
    controller::Controller,
    data::DataList,
    host_queue::HostQueue,
    pdu::{
        Answer,
        Pdu, //
    },
    prelude::*,
    request::Request,
    transport::{
        Refusal,
        Transport,
        TransportQueue, //
    }, //
};
use kernel::{
    error::from_result,
    warn_on, //
};

/// The request was taken (`BLK_STS_OK`).
const TAKEN: bindings::blk_status_t = 0;

/// The map of queues for polling (`HCTX_TYPE_POLL`).
const POLL: usize = 2;

/// The tables of a transport.
pub(crate) struct MqOps<T>(PhantomData<T>);

impl<T: Transport> MqOps<T> {
    /// The operations of I/O queues.
    pub(crate) const IO: &'static bindings::blk_mq_ops = &bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        commit_rqs: Some(Self::commit_rqs),
        complete: Some(Self::complete),
        timeout: Some(Self::timeout),
        init_request: Some(Self::init_request::<true>),
        exit_request: Some(Self::exit_request),
        init_hctx: Some(Self::init_hctx::<true>),
        map_queues: Some(Self::map_queues),
        poll: Some(Self::poll),
        ..pin_init::zeroed()
    };

    /// The operations of the admin queue.
    pub(crate) const ADMIN: &'static bindings::blk_mq_ops = &bindings::blk_mq_ops {
        init_request: Some(Self::init_request::<false>),
        init_hctx: Some(Self::init_hctx::<false>),
        map_queues: None,
        poll: None,
        ..*Self::IO
    };

    /// Returns the queue of a hardware context.
    ///
    /// # Safety
    ///
    /// `hctx` was set up by `init_hctx`, and exists while `'a` lasts.
    pub(crate) unsafe fn queue_of<'a>(hctx: *mut bindings::blk_mq_hw_ctx) -> &'a HostQueue<T> {
        // SAFETY: `init_hctx` has put a queue there that exists as long as the controller.
        unsafe { &*(*hctx).driver_data.cast() }
    }

    /// Returns the controller of a tag set.
    ///
    /// # Safety
    ///
    /// `set` is that of a controller which exists while `'a` lasts.
    unsafe fn controller_of<'a>(set: *mut bindings::blk_mq_tag_set) -> &'a Controller<T> {
        // SAFETY: nvme-core has put the controller there.
        unsafe { Controller::of((*set).driver_data.cast()) }
    }

    /// Returns the number of the queue of a hardware context.
    fn qid<const IO: bool>(hctx_idx: c_uint) -> Result<u16> {
        Ok(match IO {
            true => u16::try_from(hctx_idx)?.checked_add(1).ok_or(EINVAL)?,
            false => 0,
        })
    }

    /// Sends a request.
    ///
    /// # Safety
    ///
    /// The block layer calls this with a hardware context of a controller.
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: The block layer passes a valid `bd`.
        let (rq, last) = unsafe { ((*bd).rq, (*bd).last) };
        // SAFETY: The hardware context is one of a controller.
        let queue = unsafe { Self::queue_of(hctx) };
        let Some(raw) = NonNull::new(rq) else {
            return status_of(EIO);
        };
        // The request may end before `queue_rq` of the transport has returned, so there are two users.
        let (Some(inside), Some(connection)) = (queue.gate.enter(), queue.gate.hold()) else {
            // SAFETY: The request was queued here, and nobody else has it.
            return unsafe { Self::hold_back(queue, rq) };
        };
        let mut status = TAKEN;
        // SAFETY: The request was queued and not started.
        if !unsafe { b::nvme_helper_begin(hctx, rq, queue.is_live(), &mut status) } {
            // The block layer takes a request that has ended for one that was sent, and does not ask
            // to send those before it.
            if last && status == TAKEN {
                inside.get().commit_rqs();
            }
            return status;
        }
        // SAFETY: The block layer has queued the request here only, and `begin` has started it. Its pdu
        // is initialised.
        let request = unsafe {
            let pdu = Pdu::<T>::of(raw);
            *pdu.answer.get() = Answer::NONE;
            pdu.state.hold();
            Request::new(raw, queue, connection)
        };
        let queued = match queue.take_place() {
            true => inside.get().queue_rq(request, last),
            false => {
                // Requests that wait for more must not wait for this one.
                inside.get().commit_rqs();
                Err((Refusal::Busy, request))
            }
        };
        let Err((refusal, request)) = queued else {
            return TAKEN;
        };
        if !request.is(raw) {
            pr_err!("the transport refuses another request than the one it was given\n");
            return TAKEN;
        }
        let rq = request.into_refused().as_ptr();
        // SAFETY: The request was set up, and nobody else has it.
        unsafe { b::nvme_cleanup_cmd(rq) };
        let error = match refusal {
            Refusal::Broken => {
                queue.set_broken();
                // SAFETY: The request was queued here, and nobody else has it.
                return unsafe { Self::hold_back(queue, rq) };
            }
            Refusal::Busy => ENOMEM,
            Refusal::Failed(error) => error,
        };
        status_of(error)
    }

    /// Begins recovery, and has a request wait for it without using up a retry. nvme-core fails the
    /// request instead if another path may take it, or nobody waits. Any context.
    ///
    /// # Safety
    ///
    /// `rq` was queued on `queue`, and nobody else has it.
    unsafe fn hold_back(
        queue: &HostQueue<T>,
        rq: *mut bindings::request,
    ) -> bindings::blk_status_t {
        // SAFETY: The request is one of a queue of the controller, which exists.
        let ctrl = unsafe { queue.ctrl() };
        // A queue without a connection is part of a controller that recovers, except if its timeout
        // handler has stopped it.
        if queue.is_broken() || ctrl.is_live() {
            ctrl.queue_broken(queue.qid, Errno::ENOTCONN.into());
        }
        // SAFETY: The caller promises that the request was queued and that nobody else has it.
        unsafe { b::nvme_helper_hold_back(ctrl.raw(), rq) }
    }

    /// Posts the requests that wait for the last one of a chain.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: The hardware context is one of a controller.
        if let Some(inside) = unsafe { Self::queue_of(hctx) }.gate.enter() {
            inside.get().commit_rqs();
        }
    }

    /// Looks for completions. Returns whether there were any.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a queue that is polled.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: The hardware context is one of a controller.
        let inside = unsafe { Self::queue_of(hctx) }.gate.enter();
        inside.is_some_and(|inside| inside.get().poll()).into()
    }

    /// Completes a request.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn complete(rq: *mut bindings::request) {
        if let Some(raw) = NonNull::new(rq) {
            // SAFETY: The request is one of the set, so its pdu is initialised.
            let pdu = unsafe { Pdu::<T>::of(raw) };
            // Teardown cancels no request that the transport has.
            if warn_on!(pdu.state.is_busy()) {
                let _ = pdu.data.leak();
            }
        }
        // SAFETY: The request is complete, and its key was ended before.
        unsafe { b::nvme_complete_rq(rq) };
    }

    /// Handles a request that takes too long. Sleeps.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: The block layer has a reference to the request.
        let queue = unsafe { Self::queue_of((*rq).mq_hctx) };
        // SAFETY: The request is one of a queue of the controller, which exists.
        let ctrl = unsafe { queue.ctrl() };
        let qid = queue.qid;
        // SAFETY: The block layer has a reference to the request.
        let tag = unsafe { (*rq).tag };
        dev_warn!(ctrl.device(), "queue {qid}: request {tag} timed out\n");
        if ctrl.is_live() {
            // Its recovery cancels the request.
            ctrl.recover(fmt!("queue {qid}: timeout"));
            return bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER;
        }
        // Setup or teardown may wait for the request. The target can't reach its data once the queue
        // is stopped.
        queue.stop();
        // The request has ended now, unless the block layer has kept it from that to test timeouts. Nobody
        // sends it again meanwhile: the gate stays closed until teardown, which waits for this handler.
        // The function looks at the state once. nvmf_complete_timed_out_request() looks twice, and takes a request
        // that ends and is freed in between for one that has not ended.
        // SAFETY: The block layer has a reference to the request, which may be complete.
        unsafe { b::nvme_cancel_request(rq, ctrl.raw().cast()) };
        // Setup may have ended meanwhile. A live controller must not have a queue that is stopped.
        if ctrl.is_live() {
            ctrl.recover(fmt!("queue {qid}: timeout"));
        }
        bindings::blk_eh_timer_return_BLK_EH_DONE
    }

    /// Makes the pdu of a request. May sleep.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn init_request<const IO: bool>(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        hctx_idx: c_uint,
        _node: c_int,
    ) -> c_int {
        // SAFETY: The set is that of a controller.
        let controller = unsafe { Self::controller_of(set) };
        from_result(|| {
            let rq = NonNull::new(rq).ok_or(EINVAL)?;
            let data = DataList::new()?;
            let place = T::slot(&controller.target, Self::qid::<IO>(hctx_idx)?)?;
            // SAFETY: The request is new, and the size of pdus was given to the set.
            unsafe { Pdu::<T>::init(rq, controller.raw(), place, data) };
            Ok(0)
        })
    }

    /// Drops the pdu of a request. May sleep.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn exit_request(
        _set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _hctx_idx: c_uint,
    ) {
        if let Some(rq) = NonNull::new(rq) {
            // SAFETY: The block layer frees a request that `init_request` has made.
            unsafe { Pdu::<T>::exit(rq) };
        }
    }

    /// Gives a hardware context its queue.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn init_hctx<const IO: bool>(
        hctx: *mut bindings::blk_mq_hw_ctx,
        data: *mut c_void,
        hctx_idx: c_uint,
    ) -> c_int {
        // SAFETY: The data of the set are its controller.
        let controller = unsafe { Controller::<T>::of(data.cast()) };
        from_result(|| {
            let qid = Self::qid::<IO>(hctx_idx)?;
            let queue = controller.queues.get(usize::from(qid)).ok_or(EINVAL)?;
            // SAFETY: The hardware context is being made. The controller keeps the queue.
            unsafe { (*hctx).driver_data = NonNull::from(&**queue).as_ptr().cast() };
            Ok(0)
        })
    }

    /// Maps CPUs to queues.
    ///
    /// # Safety
    ///
    /// The block layer calls this for a controller.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: The set is that of a controller. Only setup, which called this, uses
        // `io_queues`.
        unsafe {
            let controller = Self::controller_of(set);
            // nvme-core does not write a map without queues. The map may have had queues earlier.
            (*set).map[POLL].nr_queues = (*controller.io_queues.get())[POLL];
            b::nvmf_map_queues(set, controller.raw(), controller.io_queues.get().cast());
        }
    }
}

/// Returns the status of the block layer for an error.
fn status_of(error: Error) -> bindings::blk_status_t {
    // SAFETY: Any errno may be asked about.
    unsafe { bindings::errno_to_blk_status(error.to_errno()) }
}
