// SPDX-License-Identifier: GPL-2.0

//! Tests of requests and waiters with a driver that only records calls.

#[kernel::macros::kunit_tests(rdma_request)]
mod tests {
    use super::super::{
        post,
        *, //
    };
    use crate::{
        completion::Done,
        errno,
        outstanding::Outstanding,
        waiter::Waiter,
        wc::WcStatus, //
    };
    use core::ptr::null_mut;
    use kernel::sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    };
    use pin_init::stack_pin_init;
    use rdma_bindings as b;

    const FLUSHED: u32 = b::ib_wc_status_IB_WC_WR_FLUSH_ERR;

    /// The `cqe` and the opcode of the last posted request.
    static CQE: Atomic<*mut b::ib_cqe> = Atomic::new(null_mut());
    static OPCODE: Atomic<u32> = Atomic::new(0);
    /// The result of the driver.
    static SAYS: Atomic<i32> = Atomic::new(0);

    unsafe extern "C" fn post_send(
        _qp: *mut b::ib_qp,
        wr: *const b::ib_send_wr,
        _bad: *mut *const b::ib_send_wr,
    ) -> c_int {
        // SAFETY: `wr` is a request that is there for the call, and has a `cqe`.
        let (cqe, opcode) = unsafe { (*(*wr).__bindgen_anon_1.wr_cqe.as_ref(), (*wr).opcode) };
        CQE.store(cqe, Relaxed);
        OPCODE.store(opcode, Relaxed);
        SAYS.load(Relaxed)
    }

    /// A queue pair of the fake driver, without other objects.
    struct Fake {
        qp: KBox<b::ib_qp>,
        _device: KBox<b::ib_device>,
    }

    impl Fake {
        fn new() -> Result<Self> {
            SAYS.store(0, Relaxed);
            let zeroed = GFP_KERNEL | kernel::alloc::flags::__GFP_ZERO;
            // SAFETY: All of a `struct ib_device` and of a `struct ib_qp` may be 0.
            let (mut device, mut qp) = unsafe {
                (
                    KBox::<b::ib_device>::new_uninit(zeroed)?.assume_init(),
                    KBox::<b::ib_qp>::new_uninit(zeroed)?.assume_init(),
                )
            };
            device.ops.post_send = Some(post_send);
            qp.device = &raw mut *device;
            Ok(Self {
                qp,
                _device: device,
            })
        }

        fn as_raw(&mut self) -> *mut b::ib_qp {
            &raw mut *self.qp
        }
    }

    type Posted<W, F> = Result<(), NotPosted<W, F>>;

    /// Posts a request on the fake queue pair.
    fn give<F>(
        fake: &mut Fake,
        queue: &Outstanding,
        request: KBox<Request<WorkRequest<()>, F>>,
    ) -> Posted<WorkRequest<()>, F> {
        let qp = fake.as_raw();
        // SAFETY: `wr` is valid until it is posted. The fake queue pair is valid, completes nothing by
        // itself, and the test keeps `queue`.
        unsafe { post(queue, request, |wr, cqe| (*wr).post(qp, cqe, 0)) }
    }

    /// Completes the last posted request.
    fn complete(status: u32) {
        let cqe = CQE.load(Relaxed);
        let mut wc = b::ib_wc {
            status,
            ..Default::default()
        };
        // SAFETY: This is the member that kernel users set.
        *unsafe { wc.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
        // SAFETY: `cqe` is that of a request, whose queue the test still has.
        if let Some(done) = unsafe { (*cqe).done } {
            // SAFETY: `wc` is its completion.
            unsafe { done(null_mut(), &mut wc) };
        }
    }

    /// The results of the requests, one digit each.
    type Log = Arc<Atomic<u32>>;

    fn log() -> Result<Log> {
        Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
    }

    /// Creates a request that logs its result.
    fn request(
        log: &Log,
    ) -> Result<
        KBox<
            Request<
                WorkRequest<()>,
                impl FnOnce(CompletedRequest<'_, WorkRequest<()>>) + Send + 'static,
            >,
        >,
    > {
        let log = log.clone();
        let then = move |ended: CompletedRequest<'_, WorkRequest<()>>| {
            let digit = match (ended.result, ended.request.map(WorkRequest::into_kept)) {
                (Ok(_), Some(())) => 1,
                (Err(WrError::Flushed), Some(())) => 2,
                (Err(WrError::TimedOut), Some(())) => 3,
                (Err(WrError::Lost), None) => 4,
                _ => 9,
            };
            log.store(log.load(Relaxed) * 10 + digit, Relaxed);
        };
        Request::new(WorkRequest::empty(), then, GFP_KERNEL)
    }

    #[test]
    fn each_ends_once() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(2)?;
        for _ in 0..5 {
            let posted = give(&mut fake, &queue, request(&log)?);
            assert!(posted.is_ok());
            assert_eq!(OPCODE.load(Relaxed), b::ib_wr_opcode_IB_WR_RDMA_WRITE);
            complete(b::ib_wc_status_IB_WC_SUCCESS);
            // Once is enough.
            complete(b::ib_wc_status_IB_WC_SUCCESS);
        }
        assert_eq!(log.load(Relaxed), 11111);
        assert!(queue.broken().is_none());
        Ok(())
    }

    #[test]
    fn no_more_than_there_are_credits() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(2)?;
        for room in [true, true, false] {
            match give(&mut fake, &queue, request(&log)?) {
                Ok(()) => assert!(room),
                Err(failed) => assert!(!room && failed.error == EAGAIN),
            }
        }
        // Destroyed, before they have completed.
        queue.end_all(End::Gone);
        assert_eq!(log.load(Relaxed), 33);
        assert!(queue.broken().is_some());
        Ok(())
    }

    #[test]
    fn refused_and_broken() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(1)?;
        SAYS.store(ENOMEM.to_errno(), Relaxed);
        let refused = give(&mut fake, &queue, request(&log)?);
        let refused = refused.err().ok_or(EINVAL)?;
        assert_eq!(refused.error, ENOMEM);
        // It took neither slot nor credit.
        SAYS.store(0, Relaxed);
        assert!(give(&mut fake, &queue, refused.request).is_ok());
        complete(FLUSHED);
        assert_eq!(log.load(Relaxed), 2);
        assert_eq!(queue.broken().map(WcStatus::as_raw), Some(FLUSHED));
        let refused = give(&mut fake, &queue, request(&log)?);
        assert!(refused.is_err_and(|refused| refused.error == errno::enotconn()));
        Ok(())
    }

    #[test]
    fn lost_with_the_queue() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(1)?;
        assert!(give(&mut fake, &queue, request(&log)?).is_ok());
        drop(queue);
        assert_eq!(log.load(Relaxed), 4);
        Ok(())
    }

    #[test]
    fn waited_for_on_the_stack() -> Result {
        let mut fake = Fake::new()?;
        let queue = Outstanding::new(3)?;
        stack_pin_init!(let waiter = Waiter::new(&queue));
        let waiter = waiter.into_ref();
        for _ in 0..2 {
            let credit = queue.credits().try_take().ok_or(EAGAIN)?;
            let qp = fake.as_raw();
            // SAFETY: The fake queue pair is valid, the request refers to nothing, and the waiter waits.
            let posted =
                unsafe { waiter.post(&credit, |cqe| WorkRequest::empty().post(qp, cqe, 0)) };
            assert!(posted.is_ok());
            credit.keep();
        }
        complete(b::ib_wc_status_IB_WC_SUCCESS);
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until all has ended.
        assert!(!unsafe { waiter.begin_wait(done) });
        assert!(waiter.result().is_ok());
        // The other one is gone.
        queue.end_all(End::Gone);
        assert!(done.nap());
        assert!(matches!(waiter.result(), Err(WrError::Flushed)));
        Ok(())
    }
}
