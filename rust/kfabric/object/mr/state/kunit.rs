// SPDX-License-Identifier: GPL-2.0

//! Unit tests of a region's states.

#[kernel::macros::kunit_tests(kfabric_mr_state)]
mod tests {
    use crate::object::mr::state::*;

    fn errno(result: Result<(), Refusal>) -> Option<Errno> {
        result.err().map(|e| e.errno())
    }

    #[test]
    fn enabled_once() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.begin(true)), None);
        assert_eq!(state, MrState::Pending);
        assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.check_enabled()), None);
        assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
    }

    #[test]
    fn bound_before_enabled() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.check_disabled()), None);
        assert_eq!(errno(state.begin(false)), Some(Errno::EINVAL));
        assert_eq!(errno(state.begin(true)), None);
        assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
        // A wrong state is reported first.
        assert_eq!(errno(state.begin(false)), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
    }

    #[test]
    fn tried_again() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.begin(true)), None);
        state.end_again();
        assert_eq!(errno(state.begin(true)), None);
    }

    #[test]
    fn failed_or_fallen_is_only_closed() {
        for end in [|state: &mut MrState| state.end(false), MrState::fall] {
            let mut state = MrState::Pending;
            end(&mut state);
            assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
            assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
            assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
            state.begin_close();
            assert_eq!(state, MrState::Closing);
            state.end_close();
            assert_eq!(state, MrState::Closed);
        }
    }
}
