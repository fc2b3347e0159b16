// SPDX-License-Identifier: GPL-2.0

//! Lists whose nodes are parts of the listed objects. Adding a node takes no memory, and removing one
//! takes no search. The owner of a list says which lock guards it.
//!
//! Nodes point to the head and to each other. So heads and nodes are used by shared references only,
//! also under the lock: a `&mut` would claim that nothing else points there.

use core::{
    cell::UnsafeCell,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The head of a list.
///
/// # Invariants
///
/// It points to the first node of the list, or is null.
pub(crate) struct Head(UnsafeCell<*mut Node>);

// SAFETY: The nodes of a list may be used by any thread that holds the lock of the list.
unsafe impl Send for Head {}

impl Head {
    /// Makes the head of an empty list.
    pub(crate) const fn new() -> Self {
        // INVARIANT: There is no node.
        Self(UnsafeCell::new(ptr::null_mut()))
    }

    /// Returns the first node. Any context.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the list.
    pub(crate) unsafe fn first(&self) -> Option<NonNull<Node>> {
        // SAFETY: Nobody writes the head meanwhile: the caller holds the lock of the list.
        NonNull::new(unsafe { *self.0.get() })
    }
}

/// A node.
pub(crate) struct Node(UnsafeCell<Links>);

/// The next node, and the pointer to this node.
struct Links {
    next: *mut Node,
    back: *mut *mut Node,
}

// SAFETY: The links are used under the lock of the list that the node is in.
unsafe impl Send for Node {}
// SAFETY: The links are used under the lock of the list that the node is in.
unsafe impl Sync for Node {}

impl Node {
    /// Makes a node that is in no list.
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(Links {
            next: ptr::null_mut(),
            back: ptr::null_mut(),
        }))
    }

    /// Adds the node to the beginning of a list. Any context.
    ///
    /// # Safety
    ///
    /// - The caller holds the lock of the list.
    /// - The node is in no list.
    /// - The node and `head` don't move before the node is [unlinked](Self::unlink). Nobody makes a `&mut`
    ///   of either before.
    pub(crate) unsafe fn link(&self, head: &Head) {
        // SAFETY: `head` comes from a reference. The caller holds the lock, the node is in no list, and neither moves.
        unsafe { self.link_at(head.0.get()) }
    }

    /// Adds the node behind another one. Any context.
    ///
    /// # Safety
    ///
    /// - The caller holds the lock of the list that `before` is in.
    /// - The node is in no list.
    /// - The node doesn't move before it is [unlinked](Self::unlink). Nobody makes a `&mut` of it before.
    pub(crate) unsafe fn link_behind(&self, before: &Self) {
        // SAFETY: `before` is a linked node and so valid. The caller holds the lock, the node is in no list, and it
        // doesn't move.
        unsafe { self.link_at(&raw mut (*before.0.get()).next) }
    }

    /// Adds the node where `back` points.
    ///
    /// # Safety
    ///
    /// - The caller holds the lock of the list, and the node is in no list.
    /// - The node doesn't move before it is [unlinked](Self::unlink). Nobody makes a `&mut` of it before.
    /// - `back` points to the head, or to the field `next` of a node in the list.
    unsafe fn link_at(&self, back: *mut *mut Node) {
        // SAFETY: `back` is the head or a field of a linked node, which are valid. The node that it points to, if
        // any, is linked and so valid. Nobody else uses the links of the list: the caller holds its lock.
        unsafe {
            if let Some(next) = (*back).as_ref() {
                (*next.0.get()).back = &raw mut (*self.0.get()).next;
            }
            self.0.get().write(Links { next: *back, back });
            *back = ptr::from_ref(self).cast_mut();
        }
    }

    /// Returns the node that follows in the list. Any context.
    ///
    /// # Safety
    ///
    /// The node is in a list, and the caller holds the lock of the list.
    pub(crate) unsafe fn next(&self) -> Option<NonNull<Self>> {
        // SAFETY: Nobody writes the links meanwhile: the caller holds the lock of the list.
        NonNull::new(unsafe { (*self.0.get()).next })
    }

    /// Takes the node out of its list. Any context.
    ///
    /// # Safety
    ///
    /// The node is in a list whose lock the caller holds.
    pub(crate) unsafe fn unlink(&self) {
        // SAFETY: `back` points to the head or to the field of a linked node, and `next` is null or
        // a linked node. Both stay valid while linked, and the caller holds the lock of their list.
        unsafe {
            let Links { next, back } = self.0.get().read();
            *back = next;
            if let Some(next) = next.as_ref() {
                (*next.0.get()).back = back;
            }
        }
    }
}
