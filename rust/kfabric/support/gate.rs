// SPDX-License-Identifier: GPL-2.0

//! The gate in front of what is taken away while others use it.

use kernel::{
    prelude::*,
    static_lock_class,
    str::CStr,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    }, //
};

/// The locks' name in lockdep. Gates of other types are made in other modules, where a literal
/// would be at another address, which lockdep takes to be another name of the same class.
static NAME: &CStr = c"kfabric_gate";

/// Guards something that is taken away while others may want to use it.
///
/// Whoever uses it [enters](Gate::enter) first. Once the gate is [shut](Gate::shut) nobody enters
/// any more, and the one who shut it can wait for those inside and have the thing to itself.
///
/// Lock order: the gate's lock is a leaf, but for what [`Gate::take_over`] asks under it.
#[pin_data]
pub struct Gate<T> {
    #[pin]
    state: Mutex<State<T>>,
    #[pin]
    changed: CondVar,
}

struct State<T> {
    phase: Phase<T>,
    /// How many are inside.
    users: usize,
}

enum Phase<T> {
    /// There is nothing behind it yet.
    Empty,
    /// Everybody may enter.
    Open(Arc<T>),
    /// Someone shut the gate and is taking the thing away.
    Shut,
    /// Someone shut the gate and left it like that for now.
    Left(Arc<T>),
    /// It is gone.
    Gone,
}

impl<T> Gate<T> {
    /// A gate that is open.
    pub fn new(inside: Arc<T>) -> impl PinInit<Self> {
        Self::in_phase(Phase::Open(inside))
    }

    /// A gate that nobody enters before it is [opened](Gate::open).
    pub fn empty() -> impl PinInit<Self> {
        Self::in_phase(Phase::Empty)
    }

    fn in_phase(phase: Phase<T>) -> impl PinInit<Self> {
        pin_init!(Self {
            state <- Mutex::new(State { phase, users: 0 }, NAME, static_lock_class!()),
            changed <- CondVar::new(NAME, static_lock_class!()),
        })
    }

    /// Lets everybody in, for the first time. `false` if that was done before, or if the gate was
    /// shut without. May sleep, but not for long.
    pub fn open(&self, inside: Arc<T>) -> bool {
        let mut state = self.state.lock();
        let first = matches!(state.phase, Phase::Empty);
        if first {
            state.phase = Phase::Open(inside);
        }
        first
    }

    /// Goes in, unless the gate is shut. May sleep, but not for long.
    pub fn enter(&self) -> Option<Inside<'_, T>> {
        let mut state = self.state.lock();
        let Phase::Open(inside) = &state.phase else {
            return None;
        };
        let inside = inside.clone();
        state.users += 1;
        Some(Inside {
            inside,
            _count: Count { gate: self },
        })
    }

    /// Shuts the gate. `None` if someone else did, or if there was never anything behind it, which
    /// then counts as gone. May sleep, but not for long.
    pub fn shut(&self) -> Option<Shut<'_, T>> {
        let mut state = self.state.lock();
        match core::mem::replace(&mut state.phase, Phase::Shut) {
            Phase::Open(inside) => Some(Shut { gate: self, inside }),
            Phase::Empty => {
                state.phase = Phase::Gone;
                None
            }
            other => {
                state.phase = other;
                None
            }
        }
    }

    /// Goes on with a gate that was shut and [left](Shut::leave). `None` if it wasn't. May sleep, but
    /// not for long.
    pub fn resume(&self) -> Option<Shut<'_, T>> {
        let mut state = self.state.lock();
        match core::mem::replace(&mut state.phase, Phase::Shut) {
            Phase::Left(inside) => Some(Shut { gate: self, inside }),
            other => {
                state.phase = other;
                None
            }
        }
    }

    /// Sleeps until the one who shut the gate is done.
    pub fn wait_gone(&self) {
        let mut state = self.state.lock();
        while !matches!(state.phase, Phase::Gone) {
            self.changed.wait(&mut state);
        }
    }

    /// Goes on in the place of the one who shut the gate, as soon as that one has left it, and if
    /// `may` agrees, which is asked then. `None` if that one is done. Sleeps.
    ///
    /// # Errors
    ///
    /// What `may` says; the gate is left as it is then. It is called under the gate's lock.
    pub fn take_over<E>(
        &self,
        may: impl FnOnce(&T) -> Result<(), E>,
    ) -> Result<Option<Shut<'_, T>>, E> {
        let mut state = self.state.lock();
        loop {
            match core::mem::replace(&mut state.phase, Phase::Shut) {
                Phase::Left(inside) => {
                    if let Err(refused) = may(&inside) {
                        state.phase = Phase::Left(inside);
                        return Err(refused);
                    }
                    return Ok(Some(Shut { gate: self, inside }));
                }
                other => state.phase = other,
            }
            if matches!(state.phase, Phase::Gone) {
                return Ok(None);
            }
            self.changed.wait(&mut state);
        }
    }
}

/// The right to use what is behind the gate. Given up when dropped.
pub struct Inside<'a, T> {
    // Dropped first: the one who waits for the count takes itself to be the only owner.
    inside: Arc<T>,
    _count: Count<'a, T>,
}

impl<T> Inside<'_, T> {
    /// What is behind the gate.
    pub fn get(&self) -> &T {
        &self.inside
    }
}

/// One of the users that a gate counts. Counted off when dropped.
struct Count<'a, T> {
    gate: &'a Gate<T>,
}

impl<T> Drop for Count<'_, T> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.users -= 1;
        if state.users == 0 {
            self.gate.changed.notify_all();
        }
    }
}

/// A shut gate, in the hands of the one who shut it.
pub struct Shut<'a, T> {
    gate: &'a Gate<T>,
    inside: Arc<T>,
}

impl<'a, T> Shut<'a, T> {
    /// What is behind the gate; others may still be using it.
    pub fn get(&self) -> &T {
        &self.inside
    }

    /// Leaves it shut; [`Gate::resume`] goes on.
    pub fn leave(self) {
        self.gate.state.lock().phase = Phase::Left(self.inside);
        self.gate.changed.notify_all();
    }

    /// Sleeps until nobody is inside.
    pub fn drain(self) -> Drained<'a, T> {
        let mut state = self.gate.state.lock();
        while state.users > 0 {
            self.gate.changed.wait(&mut state);
        }
        drop(state);
        Drained {
            gate: self.gate,
            inside: self.inside,
        }
    }
}

/// Nobody is behind the gate any more, and nobody gets in.
pub struct Drained<'a, T> {
    gate: &'a Gate<T>,
    inside: Arc<T>,
}

impl<T> Drained<'_, T> {
    /// What is behind the gate, and used by nobody else.
    pub fn get(&self) -> &T {
        &self.inside
    }

    /// Leaves it shut; [`Gate::resume`] goes on.
    pub fn leave(self) {
        self.gate.state.lock().phase = Phase::Left(self.inside);
        self.gate.changed.notify_all();
    }

    /// Puts something else in its place, and lets everybody in again. Sleeps as dropping what was
    /// there does.
    pub fn replace(self, inside: Arc<T>) {
        drop(self.inside);
        self.gate.state.lock().phase = Phase::Open(inside);
    }

    /// Takes it away, and lets those go on who wait for that. Sleeps as dropping it does.
    pub fn take_away(self) {
        drop(self.inside);
        self.gate.state.lock().phase = Phase::Gone;
        self.gate.changed.notify_all();
    }
}

#[kernel::macros::kunit_tests(kfabric_gate)]
mod tests {
    use super::*;
    use crate::support::workqueue::OwnedQueue;
    use kernel::{
        sync::atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    fn gate() -> Result<Arc<Gate<u32>>> {
        Arc::pin_init(Gate::new(Arc::new(7, GFP_KERNEL)?), GFP_KERNEL)
    }

    #[test]
    fn open_until_shut() -> Result {
        let gate = gate()?;
        assert_eq!(gate.enter().map(|inside| *inside.get()), Some(7));
        let shut = gate.shut().ok_or(EINVAL)?;
        assert_eq!(*shut.get(), 7);
        assert!(gate.enter().is_none());
        assert!(gate.shut().is_none());
        shut.drain().take_away();
        assert!(gate.enter().is_none());
        gate.wait_gone();
        Ok(())
    }

    #[test]
    fn empty_until_opened() -> Result {
        let gate = Arc::pin_init(Gate::empty(), GFP_KERNEL)?;
        assert!(gate.enter().is_none());
        assert!(gate.open(Arc::new(1, GFP_KERNEL)?));
        assert!(!gate.open(Arc::new(2, GFP_KERNEL)?));
        let inside = |gate: &Gate<u32>| gate.enter().map(|inside| *inside.get());
        assert_eq!(inside(&gate), Some(1));
        let drained = gate.shut().ok_or(EINVAL)?.drain();
        assert!(gate.enter().is_none());
        drained.replace(Arc::new(3, GFP_KERNEL)?);
        assert_eq!(inside(&gate), Some(3));

        let gate: Arc<Gate<u32>> = Arc::pin_init(Gate::empty(), GFP_KERNEL)?;
        assert!(gate.shut().is_none());
        gate.wait_gone();
        assert!(!gate.open(Arc::new(1, GFP_KERNEL)?));
        assert!(gate.enter().is_none());
        Ok(())
    }

    #[test]
    fn left_shut_and_gone_on_with() -> Result {
        let gate = gate()?;
        assert!(gate.resume().is_none());
        gate.shut().ok_or(EINVAL)?.leave();
        assert!(gate.enter().is_none());
        assert!(gate.shut().is_none());
        let shut = gate.resume().ok_or(EINVAL)?;
        assert!(gate.resume().is_none());
        shut.drain().take_away();
        assert!(gate.resume().is_none());
        gate.wait_gone();
        Ok(())
    }

    #[test]
    fn taken_over_by_who_may() -> Result {
        let gate = gate()?;
        gate.shut().ok_or(EINVAL)?.leave();
        assert!(matches!(gate.take_over(|seven| Err(*seven)), Err(7)));
        // As it was.
        gate.resume().ok_or(EINVAL)?.leave();
        let taken = gate.take_over(|_| Ok::<(), u32>(())).map_err(|_| EINVAL)?;
        assert!(gate.resume().is_none());
        taken.ok_or(EINVAL)?.drain().take_away();
        assert!(matches!(gate.take_over(|_| Err(1)), Ok(None)));
        Ok(())
    }

    #[test]
    fn users_are_counted() -> Result {
        let gate = gate()?;
        let first = gate.enter();
        let second = gate.enter();
        assert!(first.is_some() && second.is_some());
        assert_eq!(gate.state.lock().users, 2);
        drop(first);
        drop(second);
        assert_eq!(gate.state.lock().users, 0);
        Ok(())
    }

    #[test]
    fn whoever_shuts_it_waits_for_those_inside() -> Result {
        let (gate, step) = (gate()?, Arc::new(Atomic::new(0_u32), GFP_KERNEL)?);
        let (theirs, said) = (gate.clone(), step.clone());
        // Dropped first, since it waits for the other thread.
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        queue.try_spawn(GFP_KERNEL, move || {
            let inside = theirs.enter();
            said.store(1, Release);
            fsleep(Delta::from_millis(50));
            said.store(2, Release);
            drop(inside);
        })?;
        while step.load(Acquire) == 0 {
            fsleep(Delta::from_millis(1));
        }
        let drained = gate.shut().ok_or(EINVAL)?.drain();
        assert_eq!(step.load(Acquire), 2);
        drained.take_away();
        Ok(())
    }
}
