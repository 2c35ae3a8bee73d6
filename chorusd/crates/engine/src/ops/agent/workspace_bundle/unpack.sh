# Makes the empty workspace what the bundle in .git/chorus.bundle says. Its files may have $MOST bytes. Arguments: settings of git.
set -eu
settings="$*"
g() { git --no-pager $settings "$@"; }
bundle=$PWD/.git/chorus.bundle
format=sha1
case "$(head -c 128 "$bundle" | tr '\0' ' ')" in *@object-format=sha256*) format=sha256 ;; esac
g init --quiet --template= --initial-branch=main --object-format="$format"
g fetch --quiet --no-tags --no-recurse-submodules --update-head-ok "$bundle" '+refs/heads/*:refs/heads/*' \
    '+refs/tags/*:refs/tags/*' '+refs/notes/*:refs/notes/*' '+refs/chorus/*:refs/chorus/*'
rm -f "$bundle" .git/FETCH_HEAD
# Each entry takes a block and an inode, too; what cannot fit is not counted to its end.
needed=$(g ls-tree -r -t -l refs/chorus/files |
    awk -v most="$MOST" '{ size += $4 + 4096; if (size > most) exit } END { printf "%.0f %d", size, NR }')
size=${needed% *}
if [ "$size" -gt "$MOST" ]; then
    echo "its files take $size bytes or more, and there is room for $MOST" >&2
    exit 28
fi
inodes=$(stat -f -c '%c %d' .)
if [ "${inodes% *}" -gt 0 ] && [ "${needed#* }" -ge "${inodes#* }" ]; then
    echo "it has ${needed#* } files and directories, and there is room for ${inodes#* }" >&2
    exit 28
fi
head=$(g log -1 --format=%B refs/chorus/files)
case "$head" in
"ref refs/heads/"*) g symbolic-ref HEAD "${head#ref }" ;;
detached) g update-ref --no-deref HEAD refs/chorus/head ;;
none) ;;
*) echo 'it does not say which branch it is on' >&2; exit 1 ;;
esac
mkdir -p .git/info
echo '* -text -filter -ident -working-tree-encoding' >.git/info/attributes
g read-tree 'refs/chorus/files^{tree}'
g checkout-index --all --force --quiet
g read-tree 'refs/chorus/index^{tree}'
rm .git/info/attributes
g update-index -q --refresh >/dev/null || true
g for-each-ref --sort=-refname --format='%(refname)' refs/chorus/stash | while read -r stash; do
    g stash store --quiet --message "$(g log -1 --format=%s "$stash")" "$stash"
done
g for-each-ref --format='delete %(refname)' refs/chorus | sed '/ refs\/chorus\/checkpoints\//d' | g update-ref --stdin
if [ "$head" = none ]; then rm -r .git; fi
