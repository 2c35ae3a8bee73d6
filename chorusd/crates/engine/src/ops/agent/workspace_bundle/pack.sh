# Writes the workspace as a bundle to standard output: its branches, tags, notes, checkpoints and stashes, what is staged (refs/chorus/index) and its files
# as they are (refs/chorus/files, whose message says what HEAD is). It is made in a repository of its own, which has no settings of the
# workspace's; the workspace is only read. Arguments: settings of git. What is left out is told on standard error.
set -eu
settings="$*"
g() { git --no-pager $settings "$@"; }
workspace=$PWD
own="$workspace/.git"
temporary=$(mktemp -d)
there=no
if [ -L "$own" ] || { [ -e "$own" ] && [ ! -d "$own" ]; }; then
    echo 'its .git is no directory of its own, so its history is elsewhere' >&2
    exit 29
fi
if [ -d "$own" ] && [ ! -L "$own" ] && [ -e "$own/HEAD" ]; then there=yes; fi
if [ $there = yes ] && [ -s "$own/shallow" ]; then
    echo 'the repository is shallow: its files are carried over without history' >&2
    there=no
fi
format=sha1
if [ $there = yes ]; then format=$(GIT_DIR="$own" g rev-parse --show-object-format); fi
GIT_DIR="$temporary/git"; export GIT_DIR
g init --quiet --bare --template= --object-format="$format"
mkdir -p "$GIT_DIR/info"
echo '* -text -filter -ident -working-tree-encoding' >"$GIT_DIR/info/attributes"
GIT_WORK_TREE=$workspace; export GIT_WORK_TREE
head=none
if [ $there = yes ]; then
    echo "$own/objects" >"$GIT_DIR/objects/info/alternates"
    if [ -f "$own/info/exclude" ]; then cp "$own/info/exclude" "$GIT_DIR/info/exclude"; fi
    GIT_DIR="$own" g for-each-ref --format='create %(refname) %(objectname)' refs/heads refs/tags refs/notes \
        refs/chorus/checkpoints |
        g update-ref --stdin
    number=1000
    if GIT_DIR="$own" g rev-parse --verify --quiet refs/stash >"$temporary/stash"; then
        GIT_DIR="$own" g rev-list --walk-reflogs refs/stash >"$temporary/stash" || true
        while read -r commit; do
            number=$((number + 1))
            g update-ref "refs/chorus/stash/$number" "$commit"
        done <"$temporary/stash"
    fi
    if head=$(GIT_DIR="$own" g symbolic-ref --quiet HEAD); then
        head="ref $head"
    else
        head=detached
        g update-ref refs/chorus/head "$(GIT_DIR="$own" g rev-parse --verify HEAD)"
    fi
    commit=$(GIT_DIR="$own" g rev-parse --verify --quiet 'HEAD^{tree}' || true)
    if [ -f "$own/index" ]; then cp "$own/index" "$temporary/index"; fi
    if staged=$(GIT_DIR="$own" GIT_INDEX_FILE="$temporary/index" GIT_OBJECT_DIRECTORY="$GIT_DIR/objects" \
        GIT_ALTERNATE_OBJECT_DIRECTORIES="$own/objects" g write-tree 2>/dev/null); then
        g read-tree "$staged"
    else
        echo 'a merge is under way: what is staged is not carried over' >&2
        if [ -n "$commit" ]; then g read-tree "$commit"; fi
    fi
fi
keep() { g update-ref "refs/chorus/$1" "$(g commit-tree -m "$head" "$(g write-tree)")"; }
keep index
# With any of this the index is not what the files are; a file that goes meanwhile is gone at the next try.
lost='^fatal:|No space left|quota exceeded|unable to (write|create|deflate)'
tries=5
while :; do
    exit=0
    g add --all --ignore-errors -- . 2>"$temporary/said" || exit=$?
    if [ $exit -le 1 ] && ! grep -Eiq "$lost" "$temporary/said"; then break; fi
    tries=$((tries - 1))
    if [ $tries = 0 ]; then
        echo "git add ended with $exit" >&2
        grep -Ei "$lost" "$temporary/said" | tail -n 1 >&2
        exit 1
    fi
    rm -f "$GIT_DIR/index.lock"
done
sed -n 's/^error: /not carried over: /p' "$temporary/said" >&2
keep files
g ls-files --stage | sed -n 's/^160000 [0-9a-f]* 0.\(.*\)$/a repository of its own is not carried over: \1/p' >&2
g bundle create --quiet - --all
