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

    #[test]
    fn close_waits_for_accesses() -> Result {
        let endpoint = endpoint()?;
        let done = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        // Dropped after those inside, since it waits for the close.
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        assert_eq!(endpoint.enable(), Ok(()));
        let first = endpoint.enter().ok_or(EINVAL)?;
        let second = endpoint.enter().ok_or(EINVAL)?;
        let (closed, told) = (endpoint.clone(), done.clone());
        queue.try_spawn(GFP_KERNEL, move || {
            closed.close();
            told.store(true, Release);
        })?;
        for _ in 0..1000 {
            if !endpoint.is_open() {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        assert!(endpoint.enter().is_none());
        drop(first);
        fsleep(Delta::from_millis(10));
        assert!(!done.load(Acquire));
        drop(second);
        drop(queue);
        assert!(done.load(Acquire));
        Ok(())
    }
}
