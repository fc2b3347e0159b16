// SPDX-License-Identifier: GPL-2.0

//! Tests of credits that are waited for.

#[kernel::macros::kunit_tests(rdma_credits)]
mod tests {
    use super::super::*;
    use kernel::{
        sync::Arc,
        time::{
            delay::fsleep,
            Delta, //
        },
        workqueue, //
    };

    fn credits(count: u32) -> Result<Arc<Credits>> {
        Arc::pin_init(Credits::new(count), GFP_KERNEL)
    }

    /// Takes all that are there, for good.
    fn take_all(credits: &Credits) -> u32 {
        let taken = core::iter::from_fn(|| credits.try_take().map(Credit::keep));
        u32::try_from(taken.count()).unwrap_or(u32::MAX)
    }

    #[test]
    fn as_many_as_there_are() -> Result {
        let credits = credits(3)?;
        drop(credits.take());
        assert_eq!(take_all(&credits), 3);
        credits.give_back();
        assert_eq!(take_all(&credits), 1);
        Ok(())
    }

    #[test]
    fn who_has_waited_in_vain_leaves_none_behind() -> Result {
        let credits = credits(0)?;
        assert!(credits.take().is_none());
        assert!(credits.take().is_none());
        credits.give_back();
        credits.give_back();
        assert_eq!(take_all(&credits), 2);
        Ok(())
    }

    #[test]
    fn none_gets_lost_where_a_wait_ends() -> Result {
        // About when the wait ends: before it, in its middle, behind it.
        for millis in [0, 10, NAP - 2, NAP, NAP + 2] {
            let (ours, theirs) = {
                let credits = credits(0)?;
                (credits.clone(), credits)
            };
            workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
                fsleep(Delta::from_millis(i64::from(millis)));
                theirs.give_back();
            })?;
            let got = ours.take();
            fsleep(Delta::from_millis(20));
            let left = take_all(&ours);
            assert_eq!(u32::from(got.is_some()) + left, 1);
        }
        Ok(())
    }
}
