// SPDX-License-Identifier: GPL-2.0

//! Unit tests of closing, and of calls that a provider doesn't have.

#[kernel::macros::kunit_tests(kfabric_consumer_close)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain,
                Fake,
                STUCK,
                UNABLE, //
            },
            *, //
        },
        prelude::*, //
    };
    use core::cell::UnsafeCell;

    /// A buffer in static memory, for tests that leak it.
    struct Probe;

    struct Bytes(UnsafeCell<[u8; 16]>);

    // SAFETY: There is one probe at a time, so nobody shares the bytes.
    unsafe impl Sync for Bytes {}

    static BYTES: Bytes = Bytes(UnsafeCell::new([0; 16]));
    static DROPPED: Atomic<i32> = Atomic::new(0);

    // SAFETY: There is one probe at a time. Its bytes are static.
    unsafe impl Buffer for Probe {
        fn start(&self) -> NonNull<u8> {
            NonNull::new(BYTES.0.get())
                .unwrap_or(NonNull::dangling())
                .cast()
        }

        fn size(&self) -> usize {
            16
        }
    }

    impl Drop for Probe {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn memory_that_can_still_be_reached_is_not_dropped() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        drop(domain.reg(Probe, access())?);
        assert!(DROPPED.load(Relaxed) == 1);

        let mr = domain.reg(Probe, access())?;
        STUCK.store(true, Relaxed);
        drop(mr);
        assert!(DROPPED.load(Relaxed) == 1);

        let mr = domain.reg(Probe, access())?;
        STUCK.store(true, Relaxed);
        let error = mr.close().err();
        assert!(error.is_some_and(|error| error.errno() == Errno::EIO));
        assert!(DROPPED.load(Relaxed) == 1);
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn a_close_that_fails_after_a_failed_registration_is_told() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        UNABLE.store(true, Relaxed);
        let error = domain.reg(bytes(0, 10)?, access()).err().ok_or(EINVAL)?;
        assert_eq!(error.errno(), Errno::ENODEV);
        assert!(error.into_inner().is_some());

        let dropped = DROPPED.load(Relaxed);
        UNABLE.store(true, Relaxed);
        STUCK.store(true, Relaxed);
        let error = domain.reg(Probe, access()).err().ok_or(EINVAL)?;
        assert_eq!(error.errno(), Errno::ENOTRECOVERABLE);
        assert!(error.into_inner().is_none());
        assert_eq!(DROPPED.load(Relaxed), dropped);
        Ok(Domain::close(domain)?)
    }

    /// Refuses to close.
    ///
    /// # Safety
    ///
    /// It has no requirements. The type of the operation is unsafe.
    unsafe extern "C" fn busy(_fid: *mut kfi_bindings::kfid) -> kernel::ffi::c_int {
        Errno::EBUSY.to_c()
    }

    #[test]
    fn a_busy_region_can_be_closed_later() -> Result {
        let _provider = Fake::register()?;
        let mr = domain()?.reg(bytes(0, 10)?, access())?;
        let fid = mr.as_raw().cast::<kfi_bindings::kfid>();
        // SAFETY: The region of `fid` is open, and nobody else uses it.
        let ops = unsafe { (*fid).ops };
        let mut refusing = kfi_bindings::kfi_ops {
            close: Some(busy),
            ..pin_init::zeroed()
        };
        // SAFETY: The region of `fid` is open. `refusing` lives until the old table is restored.
        unsafe { (*fid).ops = &mut refusing };
        let error = mr.close().err().ok_or(EINVAL)?;
        assert!(error.errno() == Errno::EBUSY);
        // SAFETY: The region of `fid` is still open. `ops` is its own table.
        unsafe { (*fid).ops = ops };
        let mr = error.into_inner().ok_or(EINVAL)?;
        assert!(mr.close()? == bytes(0, 10)?);
        Ok(())
    }

    #[test]
    fn calls_beyond_the_end_of_a_table_are_not_made() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let raw = domain.as_raw();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let ops = unsafe { (*raw).mr };
        // SAFETY: `ops` is the table of the open domain.
        let mut older = unsafe { *ops };
        older.size = core::mem::offset_of!(kfi_bindings::kfi_ops_mr, regbv);
        // SAFETY: The domain `raw` is open. `older` lives until the old table is restored.
        unsafe { (*raw).mr = &mut older };
        let known = domain.reg(bytes(0, 10)?, access()).is_ok();
        let unknown = domain.regbv(Pages::zeroed(10)?, access()).err();
        // SAFETY: The domain `raw` is open. `ops` is its own table.
        unsafe { (*raw).mr = ops };
        assert!(known);
        assert!(unknown.is_some_and(|error| error.errno() == Errno::ENOSYS));
        Ok(())
    }
}
