// SPDX-License-Identifier: GPL-2.0

//! Lists whose nodes are parts of what is listed, so that listing takes no memory and leaving no
//! search. Who has a list says which lock it is under.

use core::{
    cell::UnsafeCell,
    ptr, //
};

/// What points to the first node of a list, or null.
pub(crate) type Head = *mut Node;

/// A node.
pub(crate) struct Node(UnsafeCell<Links>);

/// The node behind, and what points here.
struct Links {
    next: Head,
    back: *mut Head,
}

// SAFETY: The links are used under the lock of the list that the node is in.
unsafe impl Send for Node {}
// SAFETY: The links are used under the lock of the list that the node is in.
unsafe impl Sync for Node {}

impl Node {
    /// In no list.
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(Links {
            next: ptr::null_mut(),
            back: ptr::null_mut(),
        }))
    }

    /// Puts it in front of what `head` points to. Any context.
    ///
    /// # Safety
    ///
    /// The lock of the list that `head` is that of is held. The node is in no list, and stays where
    /// it is until it is [unlinked](Self::unlink); so does `head`.
    pub(crate) unsafe fn link(&self, head: *mut Head) {
        let this = ptr::from_ref(self).cast_mut();
        // SAFETY: `head` is valid and so is the node that it points to, if any; all are used under
        // the lock that is held.
        unsafe {
            if let Some(first) = (*head).as_ref() {
                (*first.0.get()).back = &raw mut (*self.0.get()).next;
            }
            self.0.get().write(Links {
                next: *head,
                back: head,
            });
            *head = this;
        }
    }

    /// Takes it out. Any context.
    ///
    /// # Safety
    ///
    /// It is in a list whose lock is held.
    pub(crate) unsafe fn unlink(&self) {
        // SAFETY: What points here is valid and so is the node behind, if any; all are used under
        // the lock that is held.
        unsafe {
            let Links { next, back } = self.0.get().read();
            *back = next;
            if let Some(next) = next.as_ref() {
                (*next.0.get()).back = back;
            }
        }
    }
}
