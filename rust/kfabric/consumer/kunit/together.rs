// SPDX-License-Identifier: GPL-2.0

//! Unit tests of asynchronous registrations that the core carries out together.

#[kernel::macros::kunit_tests(kfabric_together)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                hints,
                Fake,
                FAILS,
                HOLD,
                HOLDS,
                TOGETHER, //
            },
            *, //
        },
        object::mr::many::MAX_TOGETHER as MOST, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::Relaxed,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    fn fabric() -> Result<Arc<Fabric>, Errno> {
        Fabric::open(hints()?.getinfo()?.first())
    }

    #[test]
    fn regions_that_come_meanwhile_are_registered_together() -> Result {
        const REGIONS: usize = MOST + 6;
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let domain = Domain::open(&fabric, hints()?.getinfo()?.first())?;
        let queue = EventQueue::open(
            &fabric,
            EventQueueOptions::default().size(2 * REGIONS).waits(),
        )?;
        domain.bind(&queue)?;

        // The first is being registered while the others come.
        HOLD.store(true, Relaxed);
        let mut mrs = KVec::with_capacity(REGIONS + 1, GFP_KERNEL)?;
        for context in 0..=REGIONS {
            let key = match context {
                0 => HOLDS,
                3 => FAILS,
                _ => 0,
            };
            let options = Options::new(access()).requested_key(key).context(context);
            mrs.push(domain.reg(bytes(0, 10)?, options)?, GFP_KERNEL)?;
            if context == 0 {
                // The workqueue has taken it by itself.
                fsleep(Delta::from_millis(100));
            }
        }
        TOGETHER.store(0, Relaxed);
        HOLD.store(false, Relaxed);

        // Each is told of, in order. Some of the failures and of the rest may be told of before.
        let mut failures = 0;
        let mut next = 0;
        while next <= REGIONS {
            match queue.events().wait(None)? {
                Some(Next::Event(Event::MrComplete(entry))) => {
                    next += usize::from(next == 3);
                    assert_eq!(entry.context, next);
                    next += 1;
                }
                Some(Next::Failed(failure)) => {
                    assert_eq!((failure.context, failure.errno), (3, Errno::ENODEV));
                    failures += 1;
                }
                _ => return Err(EIO),
            }
        }
        assert_eq!((failures, queue.events().read()?), (1, None));
        // The last of them: all that there was room for were in the call before.
        assert_eq!(TOGETHER.load(Relaxed), REGIONS - MOST);
        for (context, mr) in mrs.into_iter().enumerate() {
            let has_key = mr.key() != u64::MAX;
            assert!(has_key == (context != 3));
            assert!(mr.close()? == bytes(0, 10)?);
        }
        EventQueue::close(queue).err();
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn regions_are_closed_while_they_wait_for_others() -> Result {
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let domain = Domain::open(&fabric, hints()?.getinfo()?.first())?;
        let queue = EventQueue::open(&fabric, EventQueueOptions::default().size(16))?;
        domain.bind(&queue)?;
        for _ in 0..20 {
            let mut mrs = KVec::with_capacity(8, GFP_KERNEL)?;
            for _ in 0..8 {
                mrs.push(domain.reg(bytes(0, 10)?, access())?, GFP_KERNEL)?;
            }
            for mr in mrs {
                assert!(mr.close()? == bytes(0, 10)?);
            }
            assert_eq!(queue.events().read()?, None);
        }
        // Nothing of the last one is left with the workqueue.
        EventQueue::close(queue).err();
        Ok(Domain::close(domain)?)
    }
}
