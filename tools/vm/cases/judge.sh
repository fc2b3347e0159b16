# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/vm/judge fails what has failed.  Sourced by tools/vm/selftest.

# A guest's log that is in order, around the lines on stdin.
guest()
{
	echo "[    0.000000] Linux version 7.3.4 (made up)"
	echo "[    1.234567] DMA-API: preallocated 65536 debug entries"
	echo "[    2.345678] kfabric-vm: running /test.sh"
	cat
	echo "[    9.999999] kfabric-vm[cafe]: exit ${1:-0}"
	echo "[   10.000000] reboot: machine restart"
}

# judged pass|fail WHAT [judge options]: what judge says about $tmp/log.
judged()
{
	local want=$1 what=$2 rc=0
	shift 2

	"$here/judge" --token cafe "$@" "$tmp/log" >"$tmp/out" 2>&1 || rc=$?
	case $want:$rc in
	pass:0|fail:1) result 0 "judge: $what" ;;
	*) echo "judge said $rc" >>"$tmp/out"; result 1 "judge: $what" ;;
	esac
}

guest </dev/null >"$tmp/log"
judged pass "a quiet log passes"

guest 3 </dev/null >"$tmp/log"
judged fail "a script that ends with 3 fails"

guest </dev/null | sed 's/cafe/beef/' >"$tmp/log"
judged fail "another boot's verdict does not count"

guest </dev/null | sed 's/: exit 0/: exit 0 or so/' >"$tmp/log"
judged fail "a mangled verdict does not count"

echo '[    3.0] | kfabric-vm[cafe]: exit 0' >"$tmp/log"
judged fail "a verdict that the script printed does not count"

guest </dev/null | sed '/exit 0/,$d' >"$tmp/log"
echo "kfabric-watch: ended the guest: no verdict within 10s" >>"$tmp/log"
judged fail "no verdict after a time-out fails"
if grep -q 'no verdict within 10s' "$tmp/out"; then
	result 0 "judge: a hang is called one"
else
	result 1 "judge: a hang is called one"
fi

judged pass "a guest that was killed on purpose has none" --killed
guest 3 </dev/null >"$tmp/log"
judged fail "if it has one all the same, it counts" --killed
echo '[    2.9] WARNING: drivers/made_up.c:1 at up+0x1/0x2, CPU#0: sh/70' |
	guest | sed '/exit 0/,$d' >"$tmp/log"
judged fail "and so does what the kernel said before" --killed

: >"$tmp/log"
judged fail "an empty log fails"

echo '[    2.9] | a test that prints BUG: and WARNING: at you' | guest >"$tmp/log"
judged pass "what the script prints is not the kernel's complaint"

echo '[    2.9]     ok 1 no_WARNING:_here' | guest >"$tmp/log"
judged pass "a KUnit result is not the kernel's complaint"

# One line of each kind of complaint is enough, whatever else goes well.
while read -r line; do
	echo "[    3.000000] $line" | guest >"$tmp/log"
	judged fail "caught: $line"
done <<'END'
BUG: kernel NULL pointer dereference, address: 0000000000000008
BUG: unable to handle page fault for address: ffffc90000001000
Oops: Oops: 0000 [#1] SMP KASAN
Oops: general protection fault, probably for non-canonical address 0xdffffc0000000000
kernel BUG at lib/list_debug.c:62!
WARNING: drivers/infiniband/sw/rxe/rxe_pool.c:116 at rxe_pool_cleanup+0x23/0x30, CPU#1: rmmod/123
WARNING: possible circular locking dependency detected
WARNING: possible recursive locking detected
WARNING: inconsistent lock state
WARNING: suspicious RCU usage
WARNING: bad unlock balance detected!
INFO: trying to register non-static key.
INFO: task kfi_selftest:77 blocked for more than 60 seconds.
rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [insmod:88]
BUG: KASAN: slab-use-after-free in rxe_mr_copy+0x1a/0x90 [rdma_rxe]
BUG: sleeping function called from invalid context at kernel/locking/mutex.c:591
BUG: scheduling while atomic: insmod/88/0x00000002
BUG: Bad page state in process insmod  pfn:0a1b2
BUG kmalloc-64 (Tainted: G O ): Poison overwritten
UBSAN: array-index-out-of-bounds in drivers/foo.c:12:3
unreferenced object 0xffff888003f1c000 (size 64):
kmemleak: Kernel memory leak detector disabled
DMA-API: rxe0: device driver frees DMA memory with wrong function
refcount_t: underflow; use-after-free.
ODEBUG: free active (active state 0) object: ffff888003f1c000 object type: work_struct
list_del corruption. prev->next should be ffff888003f1c000, but was dead000000000100
unregister_netdevice: waiting for dummy0 to become free. Usage count = 2
Kernel panic - not syncing: Fatal exception
Call Trace:
END

{ echo 'WARNING: drivers/net/made_up.c:7 at made_up_stop+0x1/0x2, CPU#0: sh/9'
  echo 'Call Trace:'
  echo ' made_up_stop+0x1/0x2'
  echo '---[ end trace 0000000000000000 ]---'; } | guest >"$tmp/log"
echo 'made_up\.c:7 at made_up_stop || the same without us' >"$tmp/known"
judged pass "a known report does not fail" --known "$tmp/known"
echo 'BUG: another one' | guest >>"$tmp/log"
judged fail "an unknown one next to it does" --known "$tmp/known"
echo 'made_up\.c:7 at made_up_stop' >"$tmp/known"
judged fail "a known report needs its reason" --known "$tmp/known"

