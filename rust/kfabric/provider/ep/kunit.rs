// SPDX-License-Identifier: GPL-2.0

//! Unit tests of endpoints.

#[kernel::macros::kunit_tests(kfabric_endpoint)]
mod tests {
    use crate::{
        provider::ep::Endpoint,
        support::{
            errno::Errno,
            workqueue::OwnedQueue, //
        }, //
    };
    use kernel::{
        impl_has_work,
        new_work,
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Release, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue::{
            Work,
            WorkItem, //
        }, //
    };

    fn endpoint() -> Result<Arc<Endpoint>> {
        Arc::pin_init(Endpoint::new(KVec::new()), GFP_KERNEL)
    }

    #[test]
    fn only_enabled_ones_let_through() -> Result {
        let endpoint = endpoint()?;
        assert!(endpoint.is_open() && !endpoint.is_enabled());
        assert!(endpoint.enter().is_none());
        assert_eq!(endpoint.enable(), Ok(()));
        assert!(endpoint.is_open() && endpoint.is_enabled());
        assert_eq!(endpoint.enable(), Err(Errno::EOPBADSTATE));
        assert!(endpoint.enter().is_some());
        endpoint.close();
        assert!(!endpoint.is_open() && !endpoint.is_enabled());
        assert!(endpoint.enter().is_none());
        assert_eq!(endpoint.enable(), Err(Errno::EOPBADSTATE));
        Ok(())
    }

    #[test]
    fn ids_differ() -> Result {
        let (first, second) = (endpoint()?, endpoint()?);
        assert!(first.id() != 0 && first.id() != second.id());
        Ok(())
    }

    /// Closes an endpoint from another thread.
    #[pin_data]
    struct Closer {
        endpoint: Arc<Endpoint>,
        done: Atomic<bool>,
        #[pin]
        work: Work<Closer>,
    }

    impl_has_work! {
        impl HasWork<Self> for Closer { self.work }
    }

    impl WorkItem for Closer {
        type Pointer = Arc<Closer>;

        fn run(this: Arc<Closer>) {
            this.endpoint.close();
            this.done.store(true, Release);
        }
    }

    #[test]
    fn close_waits_for_accesses() -> Result {
        let endpoint = endpoint()?;
        let closed = endpoint.clone();
        let closer = Arc::pin_init(
            pin_init!(Closer {
                endpoint: closed,
                done: Atomic::new(false),
                work <- new_work!("kfabric_endpoint"),
            }),
            GFP_KERNEL,
        )?;
        // Dropped after those inside, since it waits for the closer.
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        assert_eq!(endpoint.enable(), Ok(()));
        let first = endpoint.enter().ok_or(EINVAL)?;
        let second = endpoint.enter().ok_or(EINVAL)?;
        assert!(queue.enqueue(closer.clone()).is_ok());
        for _ in 0..1000 {
            if !endpoint.is_open() {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        assert!(endpoint.enter().is_none());
        drop(first);
        fsleep(Delta::from_millis(10));
        assert!(!closer.done.load(Acquire));
        drop(second);
        drop(queue);
        assert!(closer.done.load(Acquire));
        Ok(())
    }
}
