// SPDX-License-Identifier: GPL-2.0

//! Unit tests of lists of children.

#[kernel::macros::kunit_tests(kfabric_child_list)]
mod tests {
    use crate::support::{
        child_list::{
            ChildEntry,
            ChildKind,
            ChildList, //
        },
        workqueue::OwnedQueue, //
    };
    use core::ptr::NonNull;
    use kernel::{
        prelude::*,
        str::CStr,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    static PLAIN: ChildKind = ChildKind {
        open: c"a plain thing is open",
        end: None,
    };

    static ENDED: ChildKind = ChildKind {
        open: c"a thing with an end is open",
        end: Some(end),
    };

    /// Something that is listed.
    #[pin_data]
    struct Thing {
        roster: Arc<ChildList>,
        entry: ChildEntry,
        /// How often it has begun to be ended.
        ended: Atomic<usize>,
        /// It takes a while to end it.
        is_slow: bool,
        /// That is done.
        done: Atomic<bool>,
    }

    unsafe fn end(entry: NonNull<ChildEntry>) {
        // SAFETY: All entries of these tests are those of things, and valid until they have left.
        let thing = unsafe { &*kernel::container_of!(entry.as_ptr(), Thing, entry) };
        thing.ended.fetch_add(1, Relaxed);
        if thing.is_slow {
            fsleep(Delta::from_millis(20));
        }
        thing.done.store(true, Release);
    }

    impl Thing {
        fn join(
            roster: &Arc<ChildList>,
            kind: &'static ChildKind,
            is_slow: bool,
        ) -> Result<Arc<Self>> {
            let thing = Arc::pin_init(
                pin_init!(Self {
                    roster: roster.clone(),
                    entry: ChildEntry::new(kind, roster.announce()),
                    ended: Atomic::new(0),
                    is_slow,
                    done: Atomic::new(false),
                }),
                GFP_KERNEL,
            )?;
            // SAFETY: Pinned, and each test has it leave.
            unsafe { roster.join(&thing.entry) };
            Ok(thing)
        }

        fn leave(&self) {
            // SAFETY: It has joined, and leaves once.
            unsafe { self.roster.leave(&self.entry) };
        }

        fn try_withdraw(&self) -> bool {
            // SAFETY: The entry has joined, and not left.
            unsafe { self.roster.try_withdraw(&self.entry) }
        }

        fn try_leave(&self) -> bool {
            let withdrawn = self.try_withdraw();
            if withdrawn {
                self.roster.give_up(self.entry.part());
            }
            withdrawn
        }

        fn rejoin(&self) {
            // SAFETY: The entry was withdrawn. It is pinned, and each test has it leave.
            unsafe { self.roster.join(&self.entry) };
        }

        fn ended(&self) -> usize {
            self.ended.load(Relaxed)
        }
    }

    fn roster() -> Result<Arc<ChildList>> {
        Arc::pin_init(ChildList::new(), GFP_KERNEL)
    }

    #[test]
    fn says_what_is_open() -> Result {
        let roster = roster()?;
        let is = |open: Option<&CStr>| assert_eq!(roster.why_busy(), open);
        is(None);
        let plain = Thing::join(&roster, &PLAIN, false)?;
        is(Some(PLAIN.open));
        // Ended, it is still open.
        roster.end();
        is(Some(PLAIN.open));
        plain.leave();
        is(None);
        Ok(())
    }

    #[test]
    fn each_is_ended_once() -> Result {
        let roster = roster()?;
        let mut things = KVec::new();
        for _ in 0..5 {
            things.push(Thing::join(&roster, &ENDED, false)?, GFP_KERNEL)?;
            things.push(Thing::join(&roster, &PLAIN, false)?, GFP_KERNEL)?;
        }
        // The first, one from the middle, the last.
        for index in [0, 4, 9] {
            things.get(index).ok_or(EINVAL)?.leave();
        }
        roster.end();
        roster.end();
        for (index, thing) in things.iter().enumerate() {
            let has_end = index % 2 == 0 && index != 0 && index != 4;
            assert_eq!(thing.ended(), usize::from(has_end));
            if ![0, 4, 9].contains(&index) {
                thing.leave();
            }
        }
        assert_eq!(roster.why_busy(), None);
        // One that comes later is ended by the next.
        let late = Thing::join(&roster, &ENDED, false)?;
        roster.end();
        assert_eq!(late.ended(), 1);
        late.leave();
        Ok(())
    }

    /// Ends a roster from another thread, and says when that is done.
    fn end_later(queue: &OwnedQueue, roster: &Arc<ChildList>) -> Result<Arc<Atomic<bool>>> {
        let done = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let (roster, told) = (roster.clone(), done.clone());
        queue.try_spawn(GFP_KERNEL, move || {
            roster.end();
            told.store(true, Release);
        })?;
        Ok(done)
    }

    #[test]
    fn who_leaves_waits_for_its_end() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, true)?;
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        end_later(&queue, &roster)?;
        while thing.ended() == 0 {
            fsleep(Delta::from_millis(1));
        }
        // `try_leave()` fails while the entry is being ended. If it succeeds, the entry has been
        // ended.
        if !thing.try_leave() {
            thing.leave();
        }
        assert!(thing.done.load(Acquire));
        assert_eq!(roster.why_busy(), None);
        Ok(())
    }

    #[test]
    fn who_is_not_ended_leaves_at_once() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, false)?;
        assert!(thing.try_leave());
        roster.end();
        assert_eq!((thing.ended(), roster.why_busy()), (0, None));
        Ok(())
    }

    #[test]
    fn an_entry_that_is_withdrawn_is_ended_when_it_is_back() -> Result {
        let roster = roster()?;
        let thing = Thing::join(&roster, &ENDED, false)?;
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        assert!(thing.try_withdraw());
        let done = end_later(&queue, &roster)?;
        // Time enough for an end that doesn't wait.
        fsleep(Delta::from_millis(50));
        assert_eq!((thing.ended(), done.load(Acquire)), (0, false));
        thing.rejoin();
        queue.flush();
        assert_eq!((thing.ended(), done.load(Acquire)), (1, true));
        thing.leave();
        assert_eq!(roster.why_busy(), None);
        Ok(())
    }

    #[test]
    fn who_was_announced_is_waited_for() -> Result {
        let roster = roster()?;
        let (one, two) = (roster.announce(), roster.announce());
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        let done = end_later(&queue, &roster)?;
        fsleep(Delta::from_millis(20));
        roster.give_up(one);
        fsleep(Delta::from_millis(20));
        assert!(!done.load(Acquire));
        roster.give_up(two);
        drop(queue);
        assert!(done.load(Acquire));
        Ok(())
    }
}
