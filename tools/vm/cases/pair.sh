# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/vm/pair does what guests ask for, and fails when one of the two has.  The guests are
# made up, by a tools/vm/run that knows nothing but their console and monitor.  Sourced by
# tools/vm/selftest.

mkdir -p "$tmp/pair/tools/vm" "$tmp/pair/tools/env" "$tmp/pair/build/log"
cp "$here/pair" "$tmp/pair/tools/vm/"
cp "$TOP/Makefile" "$tmp/pair/"
cp "$TOP/tools/env/lib.sh" "$tmp/pair/tools/env/"
printf '#!/bin/sh\n' >"$tmp/pair/tools/env/kdir"
# The script is the guest.  Its monitor answers as QEMU's does, and ends it, later than the
# next request can be there.
cat >"$tmp/pair/tools/vm/run" <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
	case $1 in
	--link) dir=${2%:*} role=${2##*:} ;;
	--life) life=$2 ;;
	--log) log=$2 ;;
	--script) script=$2 ;;
	esac
	shift
done
KFI_ROLE=$role KFI_LIFE=$life bash "$script" >"$log" &
guest=$!
echo '{"QMP": {"version": {}, "capabilities": []}}' >"$dir/$role.monitor.out"
while IFS= read -r line; do
	echo "$role: $line" >>"$dir/../said"
	id=$(echo "$line" | sed -n 's/.*\("id": [0-9]*\).*/\1/p')
	case $line in
	*cannot*) echo "{\"error\": {\"class\": \"GenericError\"}${id:+, $id}}" ;;
	*) echo "{\"return\": {}${id:+, $id}}" ;;
	esac >"$dir/$role.monitor.out"
	case $line in *quit*) sleep 0.5; kill $guest ;; esac
done <"$dir/$role.monitor.in" &
wait $guest
rc=$?
kill %2
[ $rc = 0 ] || [ -e "$dir/$role.killed" ]
END
chmod +x "$tmp/pair/tools/vm/run" "$tmp/pair/tools/env/kdir"

# paired pass|fail WHAT SCRIPT: the script is both guests'.
paired()
{
	local want=$1 what=$2 rc=0

	printf '%s\n' "$3" >"$tmp/pair/script"
	rm -f "$tmp/pair/cache/vm/said"
	KFABRIC_CACHE=$tmp/pair/cache timeout 60 "$tmp/pair/tools/vm/pair" --kernel 7.3 \
		--script "$tmp/pair/script" >"$tmp/out" 2>&1 || rc=$?
	case $want:$rc in
	pass:0|fail:1) result 0 "pair: $what" ;;
	*) echo "pair ended with $rc" >>"$tmp/out"; result 1 "pair: $what" ;;
	esac
}

# told WHAT REGEXP ...: what the monitors were told, in this order.
told()
{
	local what=$1 got want
	shift

	got=$(grep -v qmp_capabilities "$tmp/pair/cache/vm/said" 2>/dev/null |
		sed 's/ *"id": [0-9]*,\{0,1\}//; s/[{} ]//g; s/,$//')
	want=$(printf '%s\n' "$@")
	printf 'wanted\n%s\ngot\n%s\n' "$want" "$got" >>"$tmp/out"
	[ "$got" = "$want" ] && ok=0 || ok=1
	result $ok "pair: $what"
}

paired pass "two guests that do well" 'echo "[    1.0] | done"'
paired fail "a client that fails" '[ $KFI_ROLE = server ]'
paired fail "a server that fails" '[ $KFI_ROLE = client ]'
paired fail "who waits for one that has failed is ended" '
	[ $KFI_ROLE = client ] && exit 3
	exec sleep 1000'
paired pass "a guest is killed and comes again" '
	[ $KFI_ROLE = server ] && [ $KFI_LIFE = 1 ] && exec sleep 1000
	[ $KFI_ROLE = server ] && exit 0
	echo "[    1.0] | pair: kill peer"
	echo "[    2.0][   T12] pair: restart peer"'
told "it was the server's QEMU that was ended, once" 'server:"execute":"quit"'
paired fail "it fails when it comes again" '
	[ $KFI_ROLE = server ] && [ $KFI_LIFE = 1 ] && exec sleep 1000
	[ $KFI_ROLE = server ] && exit 1
	echo "[    1.0] | pair: restart peer"'
paired fail "a guest that dies without having been killed" '
	[ $KFI_ROLE = server ] && kill -9 $$
	exit 0'
paired pass "the link of the guest that asks" '
	[ $KFI_ROLE = server ] && exit 0
	echo "[    1.0] | pair: link down"
	printf "[    1.0] |    pair: link"
	sleep 1
	printf " up\r\n"
	sleep 1'
told "is what goes down and up" \
	'client:"execute":"set_link","arguments":"name":"link","up":false' \
	'client:"execute":"set_link","arguments":"name":"link","up":true'
paired fail "a request that nobody knows" 'echo "[    1.0] | pair: dance"'
paired pass "what only looks like one is none" 'echo "[    1.0] | # pair: dance"
	echo "[    1.0] repair: dance"'
