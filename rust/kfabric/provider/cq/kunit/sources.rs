// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the endpoints that reads of a polled queue look at.

use super::*;
use core::any::Any;

/// The part of an endpoint: what it does when a reader looks at it, and when it is armed.
struct Part<L, A>(L, A);

impl<L, A> EpPart for Part<L, A>
where
    L: Fn() + Send + Sync + 'static,
    A: Fn() + Send + Sync + 'static,
{
    fn progress(&self) {
        (self.0)();
    }

    fn arm(&self) {
        (self.1)();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes an endpoint that a queue looks at, without a part.
fn source(queue: &CqCore) -> Result<Arc<EpCore>> {
    let endpoint = Arc::pin_init(EpCore::new(KVec::new()), GFP_KERNEL)?;
    endpoint.enable().map_err(|_| EINVAL)?;
    queue.add_source(&endpoint).map_err(|_| ENOMEM)?;
    Ok(endpoint)
}

/// Returns a number that closures count.
fn count() -> Result<Arc<Atomic<usize>>> {
    Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
}

/// Makes a polled queue whose handler counts its calls.
fn polled(size: usize, calls: &Arc<Atomic<usize>>) -> Result<Arc<CqCore>> {
    let calls = calls.clone();
    let handler: KBox<Notify> = KBox::new(move || _ = calls.fetch_add(1, Relaxed), GFP_KERNEL)?;
    let delivery = Delivery {
        polled: true,
        ..Delivery::default()
    };
    Ok(CqCore::new(size, delivery, Some(handler))?)
}

#[kernel::macros::kunit_tests(kfabric_cq_sources)]
mod tests {
    use super::*;

    #[test]
    fn sources_grow_and_shrink() -> Result {
        let queue = CqCore::new(1, Delivery::default(), None)?;
        let mut endpoints = KVec::new();
        for _ in 0..10 {
            let endpoint = Arc::pin_init(EpCore::new(KVec::new()), GFP_KERNEL)?;
            queue.add_source(&endpoint).map_err(|_| ENOMEM)?;
            queue.add_source(&endpoint).map_err(|_| ENOMEM)?;
            endpoints.push(endpoint, GFP_KERNEL)?;
            assert_eq!(queue.sources.with(|sources| sources.len()), endpoints.len());
        }
        for endpoint in &endpoints {
            let is_there = |sources: &KVec<Arc<EpCore>>| {
                sources.iter().any(|source| Arc::ptr_eq(source, endpoint))
            };
            assert!(queue.sources.with(|sources| is_there(&**sources)));
            queue.remove_source(endpoint);
            assert!(!queue.sources.with(|sources| is_there(&**sources)));
        }
        Ok(())
    }

    #[test]
    fn what_a_reader_finds_calls_nobody() -> Result {
        let (calls, armed) = (count()?, count()?);
        let queue = polled(9, &calls)?;
        let endpoint = source(&queue)?;
        let (looked_at, arms) = (queue.clone(), armed.clone());
        let look = move || _ = complete(&looked_at, 1);
        let part = Part(look, move || _ = arms.fetch_add(1, Relaxed));
        endpoint.attach(Arc::new(part, GFP_KERNEL)?);
        let counts = || (calls.load(Relaxed), armed.load(Relaxed));
        assert_eq!(read(&queue, 1), Ok(vec(&[1])?));
        complete(&queue, 2)?;
        assert_eq!(counts(), (0, 0));
        // A short read has the next one reported.
        assert_eq!(read(&queue, 9), Ok(vec(&[2, 1])?));
        assert_eq!(counts(), (0, 1));
        complete(&queue, 3)?;
        complete(&queue, 4)?;
        assert_eq!(counts(), (1, 1));
        // The endpoint and its part refer to each other until then.
        endpoint.close();
        queue.close();
        Ok(())
    }

    #[test]
    fn a_source_that_leaves_hides_no_other() -> Result {
        let (calls, armed) = (count()?, count()?);
        let queue = polled(1, &calls)?;
        let mut endpoints = KVec::new();
        for _ in 0..10 {
            let endpoint = source(&queue)?;
            let (left, leaving, arms) = (queue.clone(), endpoint.clone(), armed.clone());
            let arm = move || {
                arms.fetch_add(1, Relaxed);
                left.remove_source(&leaving);
            };
            endpoint.attach(Arc::new(Part(|| (), arm), GFP_KERNEL)?);
            endpoints.push(endpoint, GFP_KERNEL)?;
        }
        assert_eq!(read(&queue, 1), Err(Errno::EAGAIN));
        assert_eq!(armed.load(Relaxed), endpoints.len());
        endpoints.iter().for_each(|endpoint| endpoint.close());
        queue.close();
        Ok(())
    }
}
