// SPDX-License-Identifier: GPL-2.0

//! Unit tests of a region's states.

#[kernel::macros::kunit_tests(kfabric_mr_state)]
mod tests {
    use crate::object::mr::state::*;

    fn errno(result: Result<(), Refusal>) -> Option<Errno> {
        result.err().map(|e| e.errno())
    }

    #[test]
    fn plain_regions_are_enabled_once() {
        let mut state = State::<u8, u8>::new(false, false);
        assert!(!state.is_unbound() && !state.is_pending());
        assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.begin()), None);
        assert!(state.is_pending());
        assert_eq!(errno(state.begin()), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.check_enabled()), None);
        assert_eq!(errno(state.begin()), Some(Errno::EOPBADSTATE));
    }

    #[test]
    fn what_has_fallen_is_only_closed() {
        let mut state = State::<u8, u8>::new(false, false);
        assert_eq!(errno(state.begin()), None);
        state.end(true);
        assert!(!state.is_fallen());
        state.fall();
        assert!(state.is_fallen());
        assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.begin()), Some(Errno::EOPBADSTATE));
        state.begin_close();
        assert!(state.is_closing() && !state.is_fallen());
    }

    #[test]
    fn bound_before_enabled() {
        let mut state = State::new(true, true);
        assert_eq!(errno(state.begin()), Some(Errno::EINVAL));
        assert_eq!(errno(state.bind_counter(7)), None);
        assert_eq!(errno(state.bind_counter(8)), Some(Errno::EINVAL));
        assert_eq!(errno(state.begin()), Some(Errno::EINVAL));
        assert_eq!(errno(state.bind_endpoint('e')), None);
        assert_eq!(
            (state.counter(), state.endpoint.get()),
            (Some(&7), Some(&'e'))
        );
        assert_eq!(errno(state.begin()), None);
        assert_eq!(errno(state.bind_counter(8)), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.bind_endpoint('f')), Some(Errno::EOPBADSTATE));
        assert_eq!(state.counter(), Some(&7));
    }

    #[test]
    fn no_binding_where_none_was_asked_for() {
        let mut state = State::new(false, true);
        assert_eq!(errno(state.bind_counter(7)), Some(Errno::EINVAL));
        assert_eq!(errno(state.bind_endpoint('e')), None);
        assert_eq!(errno(state.begin()), None);
    }

    #[test]
    fn failed_regions_stay_so() {
        let mut state = State::<u8, u8>::new(false, false);
        assert_eq!(errno(state.begin()), None);
        state.end(false);
        assert!(!state.is_pending());
        assert_eq!(errno(state.begin()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.bind_counter(1)), Some(Errno::EOPBADSTATE));
    }
}
