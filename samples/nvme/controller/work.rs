// SPDX-License-Identifier: GPL-2.0

//! The work of the task that looks after a controller.

use crate::queue::LinkNumber;

/// The state that says which work there is.
#[derive(Default)]
pub(super) struct ControllerWork {
    /// The link that there is, or the next one.
    link: LinkNumber,
    /// It is broken, and was not let go yet.
    broken: bool,
    /// Connecting again is of no use: the controller is to go.
    pub(super) leaving: bool,
    /// The disks are gone, so there is nothing more to look after.
    pub(super) over: bool,
}

impl ControllerWork {
    /// Returns the link that there is, or the next one.
    pub(super) fn link(&self) -> LinkNumber {
        self.link
    }

    /// Notes that a link is broken; returns whether that is news. A queue that was stopped may
    /// report late. Then the report is not about the next link.
    pub(super) fn broken(&mut self, link: LinkNumber) -> bool {
        let news = link == self.link && !self.broken;
        self.broken |= news;
        news
    }

    /// Checks whether the present link is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Notes that nothing is left of a link.
    pub(super) fn let_go(&mut self) {
        self.link.0 = self.link.0.wrapping_add(1);
        self.broken = false;
    }
}

#[kernel::macros::kunit_tests(kfi_nvme_control)]
mod tests {
    use super::*;

    #[test]
    fn only_the_link_that_there_is_breaks() {
        let mut control = ControllerWork::default();
        let first = control.link();
        assert!(!control.is_broken());
        assert!(control.broken(first));
        assert!(!control.broken(first));
        assert!(control.is_broken());
        control.let_go();
        assert!(!control.is_broken());
        // A queue of the first is late.
        assert!(!control.broken(first));
        assert!(!control.is_broken());
        assert!(control.broken(control.link()));
        assert!(control.is_broken());
    }
}
