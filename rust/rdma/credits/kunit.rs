// SPDX-License-Identifier: GPL-2.0

//! Tests of credits that are waited for.

#[kernel::macros::kunit_tests(rdma_credits)]
mod tests {
    use super::super::*;
    use kernel::sync::Arc;

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
        credits.give_back(1);
        assert_eq!(take_all(&credits), 1);
        Ok(())
    }

    #[test]
    fn some_are_taken_and_given_back() -> Result {
        let credits = credits(5)?;
        assert_eq!(credits.take_some(3), 3);
        assert_eq!(credits.take_some(3), 2);
        assert_eq!(credits.take_some(3), 0);
        credits.give_back(4);
        assert_eq!(take_all(&credits), 4);
        // Two wait, and three come: those two get one each.
        credits.free.fetch_sub(2, Full);
        credits.give_back(3);
        assert_eq!(take_all(&credits), 1);
        assert!(!credits.stop_waiting());
        assert!(!credits.stop_waiting());
        Ok(())
    }

    #[test]
    fn who_has_waited_in_vain_leaves_none_behind() -> Result {
        let credits = credits(0)?;
        assert!(credits.take().is_none());
        assert!(credits.take().is_none());
        credits.give_back(1);
        credits.give_back(1);
        assert_eq!(take_all(&credits), 2);
        Ok(())
    }

    #[test]
    fn none_gets_lost_where_a_wait_ends() -> Result {
        let credits = credits(0)?;
        // One begins to wait. It is given one as its time is up, and before it says so.
        credits.free.fetch_sub(1, Full);
        credits.give_back(1);
        assert_eq!(take_all(&credits), 0);
        assert!(!credits.stop_waiting());
        // Two wait, and one credit comes: one of them gets it, the other stops.
        credits.free.fetch_sub(2, Full);
        credits.give_back(1);
        assert!(credits.stop_waiting());
        assert!(!credits.stop_waiting());
        credits.give_back(1);
        assert_eq!(take_all(&credits), 1);
        Ok(())
    }
}
