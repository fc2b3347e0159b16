// SPDX-License-Identifier: GPL-2.0

//! Tests of what comes back where nobody may sleep.

#[kernel::macros::kunit_tests(kfi_verbs_inlet)]
mod tests {
    use super::super::*;
    use core::iter;

    fn inlet() -> Result<Pin<KBox<ReturnList<usize>>>> {
        KBox::pin_init(ReturnList::new()?, GFP_KERNEL)
    }

    #[test]
    fn what_came_is_taken_once() -> Result {
        let inlet = inlet()?;
        for i in 0..3 {
            inlet.place().ok_or(ENOSPC)?.put(i);
        }
        assert!(!inlet.is_empty());
        assert_eq!(iter::from_fn(|| inlet.take()).sum::<usize>(), 3);
        assert!(inlet.is_empty() && inlet.take().is_none());
        Ok(())
    }

    #[test]
    fn room_that_was_promised_is_kept() -> Result {
        let inlet = inlet()?;
        let kept = inlet.place().ok_or(ENOSPC)?;
        let mut others = 0;
        while let Some(place) = inlet.place() {
            place.put(others);
            others += 1;
        }
        assert_eq!(others, ROOM - 1);
        kept.put(others);
        assert_eq!(iter::from_fn(|| inlet.take()).count(), ROOM);
        // Also what isn't used.
        drop(inlet.place());
        assert_eq!(
            iter::from_fn(|| inlet.place().map(core::mem::forget)).count(),
            ROOM
        );
        Ok(())
    }

    #[test]
    fn who_is_to_look_is_told_once() -> Result {
        let inlet = inlet()?;
        let put = || Ok::<_, Error>(inlet.place().ok_or(ENOSPC)?.put(7));
        assert!(put()?);
        assert!(!put()?);
        // It was looked here, and will be.
        assert!(inlet.set_watched(true));
        assert!(!put()?);
        // It won't be any more, and something has come meanwhile.
        assert!(inlet.set_watched(false));
        assert!(put()?);
        while inlet.take().is_some() {}
        assert!(!inlet.set_watched(false));
        Ok(())
    }
}
