#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker unpack, cat, index, and verify of packs
. "$(dirname "$0")/lib.sh"
make_photos
rm photos/.stoker-synth.json

ends 0 "pack" "$stoker" pack photos plain --shard-size 40K
ends 0 "a pack of a pack" "$stoker" pack plain again --shard-size 40K
for f in plain/shard-*.tar; do cmp -s "$f" "again/${f#plain/}" || fail "a pack of a pack has the same bytes: $f"; done

# Names that a tar would take for something else come back as they were.
first=$(find photos -name '*.jpg' | sort | head -n 1)
class=$(dirname "$first")
for name in 'two.dots.jpg' 'same.jpg' 'same.png' '100%.jpg' 'UPPER.JPEG' 'ünï.jpg' '%41.jpg'; do cp "$first" "$class/$name"; done
long=$class/$(printf 'long%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30)
cp "$first" "$long.jpg"
ends 0 "pack" "$stoker" pack photos kept --shard-size 64K
ends 0 "unpack" "$stoker" unpack kept back
diff -r photos back >diff.txt || fail "the files come back: $(head -n 1 diff.txt)"
ends 0 "checksum of the folder" "$stoker" checksum photos --ops 'Resize((32, 32))'
mv out folder.txt
ends 0 "checksum of the pack" "$stoker" checksum kept --ops 'Resize((32, 32))'
same out folder.txt "the pack reads as the folder does"

# Suffixes that are spelled differently stay so, also in a pack of a pack.
mkdir -p spelled/x
for name in a.JPG a.jpg a.jpeg b.JPEG c.jpe d.jpg; do { cat "$first"; echo "$name"; } >"spelled/x/$name"; done
ends 0 "pack" "$stoker" pack spelled spelled-1
ends 0 "a pack of a pack" "$stoker" pack spelled-1 spelled-2
cmp -s spelled-1/shard-000000.tar spelled-2/shard-000000.tar || fail "a pack of a pack has the same suffixes"
ends 0 "a pack of a pack, as JPEG" "$stoker" pack spelled-1 spelled-3 --as jpeg
ends 0 "a pack as a folder" "$stoker" pack spelled-2 spelled-4 --to folder
for n in 2 3; do
  ends 0 "unpack" "$stoker" unpack spelled-$n spelled-back-$n
  diff -r spelled spelled-back-$n >diff.txt || fail "suffixes come back: $(head -n 1 diff.txt)"
done
diff -r spelled/x spelled-4/x >diff.txt || fail "suffixes in a folder: $(head -n 1 diff.txt)"

# It goes on where it was stopped, and does not write over what is another's.
rm "$(find back -name '*.jpg' | head -n 1)"
ends 0 "unpack again" "$stoker" unpack kept back
diff -r photos back >diff.txt || fail "what was missing is back"
echo other >"back/${first#photos/}"
ends 3 "another file is there" "$stoker" unpack kept back
says err 'exists with other content; --force' "another file is there"
[ "$(cat "back/${first#photos/}")" = other ] || fail "it is left alone"
ends 0 "force" "$stoker" unpack kept back --force --json
json out "unpack --json" 'd["complete"] and d["files"] == 32'
diff -r photos back >diff.txt || fail "force writes over it"

# Names that lead elsewhere.
if command -v python3 >/dev/null; then
  python3 - <<'PY'
import io, tarfile
with tarfile.open("evil.tar", "w") as t:
    for name in ["../out-of-it.jpg", "/tmp/stoker-evil.jpg", "a/../../b.jpg", "link/x.jpg", "good/1.jpg", "./good/2.jpg"]:
        m = tarfile.TarInfo(name)
        m.size = 3
        t.addfile(m, io.BytesIO(b"abc"))
PY
  mkdir target elsewhere && ln -s ../elsewhere target/link
  "$stoker" unpack evil.tar target >out 2>err
  [ "$(find . -name 'out-of-it*' | wc -l)" = 0 ] && [ ! -e /tmp/stoker-evil.jpg ] && [ ! -e b.jpg ] || fail "a file has left the target"
  [ -z "$(ls elsewhere)" ] || fail "a link was followed"
  says err 'out-of-it.jpg: cannot be a file name' "what is refused is told"
  [ -f target/good/1.jpg ] && [ -f target/good/2.jpg ] || fail "the others are there"
fi
ends 2 "a folder is no pack" "$stoker" unpack photos x
says err 'contains no tar shards' "a folder is no pack"

# A list may name files anywhere, and a file several times: every sample has a file of its own.
mkdir lists
{ echo "$PWD/$first"; for i in 1 2 3 4; do echo "../$first"; done; } >lists/twice.txt
for to in tar folder; do ends 0 "pack of a list" "$stoker" pack lists/twice.txt "twice-$to" --to "$to"; done
ends 0 "all samples are there" "$stoker" ls twice-tar --json
json out "all samples are there" 'd["samples"] == 5'
ends 0 "unpack" "$stoker" unpack twice-tar twice-back
for to in folder back; do
  [ "$(find "twice-$to" -name '*.jpg' | wc -l)" = 5 ] || fail "a file for each sample: $to"
  [ -f "twice-$to$PWD/$first" ] && [ -f "twice-$to/$first" ] || fail "the names below the folder: $to"
  find "twice-$to" -name '*.jpg' -exec cmp -s "$first" {} \; -print | wc -l | grep -qx 5 || fail "the same bytes: $to"
done

# One sample.
ends 0 "unpack into folders that are not there" "$stoker" unpack kept deep/er/back
printf '\001\000\002\000\003\000' >few.bin
ends 0 "cat of numbers" "$stoker" cat 'tokens:few.bin?dtype=uint16&length=3' 0
says out 'uint16\(3\) +6 +1 2 3' "the numbers"
ends 0 "cat" "$stoker" cat kept 0
says out '^ *image +image' "the fields of a sample"
ends 0 "cat --field" "$stoker" cat photos "${first#photos/}" --field image
same out "$first" "the bytes of a field"
ends 0 "cat -o" "$stoker" cat kept 0 --field image -o one.jpg
[ -s one.jpg ] || fail "cat -o writes a file"
ends 0 "cat --json" "$stoker" cat kept 3 --json
json out "cat --json" '[f["name"] for f in d["fields"]] == ["image", "label"]'
ends 2 "no such sample" "$stoker" cat kept 9999
ends 2 "no such key" "$stoker" cat kept nothing
mkdir digits && for k in 2 10 0001 0000; do echo "$k" >"digits/$k.txt"; done
tar -cf digits.tar -C digits 2.txt 10.txt 0001.txt 0000.txt
for pair in 2=0001 10=10 0001=0001 0000=0000 0=2 03=0000; do
  ends 0 "cat of ${pair%=*}" "$stoker" cat digits.tar "${pair%=*}" --field txt
  [ "$(cat out)" = "${pair#*=}" ] || fail "a number that there is, or a key of digits: $pair gives $(cat out)"
done
ends 2 "no such field" "$stoker" cat kept 0 --field depth
says err 'there is no field depth' "no such field"

# The index, and what was written.
sleep 1
ends 0 "index" "$stoker" index kept --json
ends 0 "index again" "$stoker" index kept --json
json out "the index is found again" 'd["samples"] == 32 and d["kind"] == "tar shards"'
ends 0 "index of shards" "$stoker" index kept --cache-dir off
says out 'made in .*iB per second|loaded in' "bytes of shards"
ends 0 "index of a folder" "$stoker" index photos --cache-dir off
says out 'made in .* \([0-9,]+ files per second\)' "files of a folder"
ends 0 "verify" "$stoker" verify kept
says err 'checksums match: [0-9]+ of [0-9]+ files' "checksums are proved"
printf x | dd of=kept/shard-000001.tar bs=1 seek=2000 conv=notrunc 2>/dev/null
"$stoker" verify kept >out 2>err
[ $? = 1 ] || fail "a flipped byte is found"
says out 'kept/shard-000001.tar: has the checksum' "the file is named"
rm kept/stoker.json
echo >kept/.stoker-pack.journal
ends 2 "an unfinished pack" "$stoker" ls kept
says err 'unfinished pack' "an unfinished pack"

# A compressed shard of a pack: labels that are the names of folders do not become files.
mkdir zipped && cp plain/stoker.json zipped
for f in plain/shard-*.tar; do gzip -c "$f" >"zipped/${f#plain/}"; done
for p in plain zipped; do ends 0 "unpack" "$stoker" unpack $p $p-back; done
diff -r plain-back zipped-back >diff.txt || fail "compressed shards: $(head -n 1 diff.txt)"

# Compressed archives.
mkdir tree && printf one >tree/a.txt && head -c 300000 /dev/zero >tree/b.bin && tar -cf t.tar -C tree a.txt b.bin
gzip -c t.tar >t.tar.gz
ends 0 "a tar.gz" "$stoker" unpack t.tar.gz unzipped
diff -r tree unzipped >/dev/null || fail "the files of a tar.gz"
head -c 200 t.tar.gz >cut.tar.gz
ends 1 "a tar.gz that is cut" "$stoker" unpack cut.tar.gz cut
says err 'cut short' "a tar.gz that is cut"
if "$stoker" info | grep -q zstd && command -v zstd >/dev/null; then
  zstd -q t.tar
  ends 0 "a tar.zst" "$stoker" unpack t.tar.zst unpacked
  diff -r tree unpacked >/dev/null || fail "the files of a tar.zst"
fi
finish
