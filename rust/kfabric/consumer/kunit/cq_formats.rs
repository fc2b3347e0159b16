// SPDX-License-Identifier: GPL-2.0

//! Unit tests of what C reads from completion queues.

#[kernel::macros::kunit_tests(kfabric_consumer_cq_formats)]
mod tests {
    use crate::{
        consumer::{
            kunit::{
                completed::{
                    done,
                    failure,
                    place, //
                },
                fake::{
                    domain,
                    Fake, //
                }, //
            },
            *, //
        },
        object::cq::CqObject, //
    };
    use core::ptr::{
        self,
        without_provenance_mut as addr, //
    };
    use kernel::{
        prelude::*,
        sync::Arc, //
    };
    use kfi_bindings::{
        kfi_cq_data_entry,
        kfi_cq_entry,
        kfi_cq_err_entry,
        kfi_cq_msg_entry,
        kfi_cq_tagged_entry,
        kfid_cq, //
    };

    fn options(size: usize) -> CompletionQueueOptions {
        CompletionQueueOptions::default().size(size).waits()
    }

    /// Opens a queue in this format, and completes two in it: contexts 1 and 2.
    fn raw(domain: &Arc<Domain>, format: u32) -> Result<*mut kfid_cq> {
        let mut attr = kfi_bindings::kfi_cq_attr {
            format,
            ..pin_init::zeroed()
        };
        let mut cq = ptr::null_mut();
        let domain = domain.as_raw();
        // SAFETY: The domain is open; the others are locals.
        let opened =
            unsafe { crate::object::cq::open(domain, &mut attr, &mut cq, None, ptr::null_mut()) };
        assert_eq!(opened, 0);
        // SAFETY: It was just opened, and is used until the test closes it.
        let core = unsafe { CqObject::from_fid(cq.cast()) }?;
        for number in 1..=2 {
            core.queue().reserve().ok_or(EINVAL)?.complete(done(number));
        }
        Ok(cq)
    }

    /// Reads both in a format, of which there is this much room, and closes the queue. Gives the
    /// addresses that they came from.
    fn read_both<E>(cq: *mut kfid_cq, room: &mut [E; 3]) -> [u64; 3] {
        let mut from = [7; 3];
        // SAFETY: The queue is open, with a full table, and of the room's format.
        unsafe {
            let read = (*(*cq).ops).readfrom;
            let read = read.map(|read| read(cq, room.as_mut_ptr().cast(), 3, from.as_mut_ptr()));
            assert_eq!(read, Some(2));
            let close = (*(*cq).fid.ops).close;
            assert_eq!(close.map(|close| close(cq.cast())), Some(0));
        }
        from
    }

    #[test]
    fn each_format_is_what_c_knows() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let (first, second) = (done(1), done(2));
        let far = addr(0x5a5a);

        let mut room = [const {
            kfi_cq_entry {
                op_context: addr(0x5a5a),
            }
        }; 3];
        let from = read_both(raw(&domain, 1)?, &mut room);
        assert_eq!(from, [u64::MAX, u64::MAX, 7]);
        assert!(room
            .iter()
            .map(|e| e.op_context)
            .eq([addr(1), addr(2), far]));

        let mut room: [kfi_cq_msg_entry; 3] = pin_init::zeroed();
        read_both(raw(&domain, 2)?, &mut room);
        let [one, two, none] = room;
        assert_eq!(
            (one.op_context.addr(), one.flags, one.len),
            (1, first.flags, 2)
        );
        assert_eq!(
            (two.op_context.addr(), two.flags, two.len),
            (2, second.flags, 3)
        );
        assert_eq!((none.op_context.addr(), none.flags, none.len), (0, 0, 0));

        // Left to the core, it is the third.
        for format in [0, 3] {
            let mut room: [kfi_cq_data_entry; 3] = pin_init::zeroed();
            read_both(raw(&domain, format)?, &mut room);
            let [one, two, none] = room;
            assert_eq!(
                (one.op_context.addr(), one.flags, one.len),
                (1, first.flags, 2)
            );
            assert_eq!((one.buf.addr(), one.data), (3, first.data));
            assert_eq!(
                (two.op_context.addr(), two.buf.addr(), two.data),
                (2, 4, second.data)
            );
            assert_eq!((none.op_context.addr(), none.data), (0, 0));
        }

        let mut room: [kfi_cq_tagged_entry; 3] = pin_init::zeroed();
        for entry in &mut room {
            entry.tag = 9;
        }
        read_both(raw(&domain, 4)?, &mut room);
        let [one, two, none] = room;
        assert_eq!(
            (one.op_context.addr(), one.flags, one.len),
            (1, first.flags, 2)
        );
        assert_eq!((one.buf.addr(), one.data, one.tag), (3, first.data, 0));
        assert_eq!(
            (two.op_context.addr(), two.data, two.tag),
            (2, second.data, 0)
        );
        assert_eq!((none.op_context.addr(), none.tag), (0, 9));
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn a_failure_is_told_to_c() -> Result {
        let _provider = Fake::register()?;
        let queue = CompletionQueue::open(&domain()?, options(2))?;
        place(&queue)?.fail(failure(1));
        place(&queue)?.fail(failure(2));
        let cq = queue.as_raw();
        let mut entry: kfi_cq_err_entry = pin_init::zeroed();
        entry.err_data = addr(0x5a5a);
        entry.tag = 9;
        let mut readerr = || {
            // SAFETY: The queue is open, with a full table.
            let read = unsafe { (*(*cq).ops).readerr.map(|read| read(cq, &mut entry, 0)) };
            let told = (
                entry.op_context.addr(),
                entry.flags,
                entry.len,
                entry.buf.addr(),
            );
            assert!(read != Some(1) || told.1 == done(1).flags);
            let other = (entry.data, entry.tag, entry.olen);
            let errors = (entry.err, entry.prov_errno);
            let data = (entry.err_data.addr(), entry.err_data_size);
            // Room for the next one.
            (entry.err_data, entry.err_data_size) = (addr(0x7000), 16);
            (read, (told.0, told.2, told.3), other, errors, data)
        };
        let data = done(1).data;
        let none = (0, 0);
        let first = (Some(1), (1, 2, 3), (data, 0, 4), (5, -7), none);
        assert_eq!(readerr(), first);
        let second = (Some(1), (2, 3, 4), (data, 0, 5), (5, -7), (0x7000, 0));
        assert_eq!(readerr(), second);
        assert_eq!(readerr().0, Some(-11));
        Ok(CompletionQueue::close(queue)?)
    }
}
