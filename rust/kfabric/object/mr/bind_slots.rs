// SPDX-License-Identifier: GPL-2.0

//! The bonds of a region, or those that it needs before it is enabled.

use crate::object::{
    endpoint_mrs::EndpointMrs,
    prelude::*, //
};

/// Something that a region may have to be bound to.
#[derive(Debug)]
pub(super) enum BindSlot<T> {
    /// It doesn't have to, and can't.
    No,
    /// It is not yet.
    Wanted,
    /// It is.
    To(T),
}

impl<T> BindSlot<T> {
    const fn wanted(wanted: bool) -> Self {
        if wanted {
            Self::Wanted
        } else {
            Self::No
        }
    }

    fn is_missing(&self) -> bool {
        matches!(self, Self::Wanted)
    }

    /// Returns the object that the region is bound to.
    pub(super) fn get(&self) -> Option<&T> {
        match self {
            Self::To(bound) => Some(bound),
            _ => None,
        }
    }

    /// Binds the region to an object.
    pub(super) fn bind(&mut self, to: T) -> Result<(), Refusal> {
        match self {
            Self::No => Err(Refusal::new(
                Errno::EINVAL,
                c"the region was not registered to be bound to such an object",
            )),
            Self::To(_) => Err(Refusal::new(Errno::EINVAL, c"already bound")),
            Self::Wanted => {
                *self = Self::To(to);
                Ok(())
            }
        }
    }
}

/// A region's bonds, to a counter `C` and an endpoint `E`.
#[derive(Debug)]
pub(super) struct BindSlots<C, E> {
    pub(super) counter: BindSlot<C>,
    pub(super) endpoint: BindSlot<E>,
}

impl<C, E> BindSlots<C, E> {
    /// Of a region that needs none, and can't have any.
    pub(super) const NONE: Self = Self::wanted(false, false);

    /// Returns bonds that a region needs, to a counter, to an endpoint, or none.
    pub(super) const fn wanted(counter: bool, endpoint: bool) -> Self {
        Self {
            counter: BindSlot::wanted(counter),
            endpoint: BindSlot::wanted(endpoint),
        }
    }

    /// Checks whether the region must yet be bound to something.
    pub(super) fn is_missing(&self) -> bool {
        self.counter.is_missing() || self.endpoint.is_missing()
    }
}

impl BindSlots<Arc<CntrCore>, Arc<EndpointMrs>> {
    /// Returns the bonds for the region's provider.
    pub(super) fn bindings(&self, more: bool) -> Bindings {
        Bindings {
            counter: self.counter.get().cloned(),
            endpoint: self.endpoint.get().map(|ties| ties.endpoint.clone()),
            more,
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_mr_bonds)]
mod tests {
    use super::*;

    fn errno(result: Result<(), Refusal>) -> Option<Errno> {
        result.err().map(|e| e.errno())
    }

    #[test]
    fn bound_once_to_each() {
        let mut bonds = BindSlots::wanted(true, true);
        assert!(bonds.is_missing());
        assert_eq!(errno(bonds.counter.bind(7)), None);
        assert_eq!(errno(bonds.counter.bind(8)), Some(Errno::EINVAL));
        assert!(bonds.is_missing());
        assert_eq!(errno(bonds.endpoint.bind('e')), None);
        assert_eq!(errno(bonds.endpoint.bind('f')), Some(Errno::EINVAL));
        assert!(!bonds.is_missing());
        assert_eq!(
            (bonds.counter.get(), bonds.endpoint.get()),
            (Some(&7), Some(&'e'))
        );
    }

    #[test]
    fn none_where_none_was_asked_for() {
        let mut bonds = BindSlots::wanted(false, true);
        assert_eq!(errno(bonds.counter.bind(7)), Some(Errno::EINVAL));
        assert_eq!(errno(bonds.endpoint.bind('e')), None);
        assert!(!bonds.is_missing() && bonds.counter.get().is_none());
        assert!(!BindSlots::<u8, u8>::NONE.is_missing());
    }
}
