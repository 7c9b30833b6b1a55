#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker show
. "$(dirname "$0")/lib.sh"
make_photos
ops='RandomResizedCrop(48) | RandomHorizontalFlip'

ends 0 "show" "$stoker" show photos -o sheet.png --ops "$ops" --grid 6x3
if grep -q 'not in this build' err; then
  echo "skipped: $(cat err)"
  exit 77
fi
says out '^sheet\.png: 18 samples, [0-9]+ x [0-9]+ pixels' "where it is"
[ "$(head -c 4 sheet.png | tail -c 3)" = PNG ] || fail "a PNG"
ends 0 "show --json" "$stoker" show photos -o again.png --ops "$ops | Normalize" --grid 6x3 --json
json out "show" 'd["output"] == "again.png" and len(d["samples"]) == 18 and all(s["caption"] for s in d["samples"])'
ends 0 "an end that is near" "$stoker" show photos -o few.png --ops "$ops" --take 5 --json
json out "five samples" 'len(d["samples"]) == 5'
ends 0 "another epoch" "$stoker" show photos -o other.png --ops "$ops" --grid 6x3 --epoch 1
cmp -s sheet.png other.png && fail "another epoch is another sheet"
ends 0 "the same again" "$stoker" show photos -o twice.png --ops "$ops" --grid 6x3 --threads 3
same sheet.png twice.png "the sheet is the same for any number of threads"

# middle SHEET: a hash of its middle, which the words at the top are no part of.
middle() {
  rm -rf middle && mkdir middle && cp "$1" middle/
  "$stoker" checksum middle --ops "CenterCrop((400, 800))"
}

# What makes floats leaves the image as it is.
plain='Resize(56) | CenterCrop(48)'
ends 0 "plain pixels" "$stoker" show photos -o plain.png --ops "$plain"
middle plain.png >plain
says plain '^epoch 0  ' "the middle of a sheet"
for o in "$plain | ToTensor | Normalize" "Resize(56) | ToTensor | CenterCrop(48)" \
  "$plain | ToImage | ToDtype(float32, scale=True) | Normalize(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))"; do
  ends 0 "$o" "$stoker" show photos -o floats.png --ops "$o"
  middle floats.png >floats
  same floats plain "$o"
done
ends 2 "an op that is none" "$stoker" show photos -o x.png --ops "ToTensor | CenterCorp(8)"
says err 'column 12: ' "the column is that of the typed text"
ends 0 "grey" "$stoker" show photos -o grey.png --ops "$plain | Grayscale"
ends 0 "grey of three channels" "$stoker" show photos -o grey3.png --ops "$plain | Grayscale(3)"
middle grey.png >grey
middle grey3.png >grey3
same grey grey3 "grey is drawn as grey of three channels"
cmp -s grey plain && fail "grey is not the colours"
ends 0 "one grey sample" "$stoker" show photos -o grey1.png --ops "$plain | Grayscale" --index 5

ends 2 "an option without effect" "$stoker" show photos -o without.png --ops "$ops" --rank 1
says err 'rank has no effect' "an option without effect"

ends 0 "one sample" "$stoker" show photos -o one.png --ops "$ops" --index 17 --epoch 3 --json
json out "one sample" 'd["sample"] == 17 and d["path"].startswith("photos/")'
json out "what was drawn for it" 'len(d["drawn"]) == 6 and d["drawn"][0]["ops"][0]["size"] == [48, 48]'
ends 0 "op by op" "$stoker" show photos -o ops.png --ops "$ops | ColorJitter(0.5) | Normalize" --index 17 --draws 4 --json
json out "an op without floats has a row" '[o["op"] for o in d["ops"]] == ["RandomResizedCrop(48)", "RandomHorizontalFlip", "ColorJitter(0.5)"]'
json out "what was drawn is said" 'all(len(o["drawn"]) == 4 for o in d["ops"]) and all("flipped" in w for w in d["ops"][1]["drawn"])'
ends 0 "each op" "$stoker" show photos -o each.png --ops "$ops" --index 17 --draws 3 --each
says out '^each\.png: sample 17, 2 ops, 3 draws' "each op"
ends 2 "draws of no sample" "$stoker" show photos -o x.png --draws 3
says err 'give its index: --index 17' "draws of no sample"
ends 2 "draws of views" "$stoker" show photos -o x.png --index 1 --draws 2 --ops 'a: CenterCrop(8) ; b: CenterCrop(9)'
says err 'draws shows one pipeline' "draws of views"
ends 0 "the first of several views" "$stoker" show photos -o views.png --ops 'a: CenterCrop(32) ; b*2: CenterCrop(16)'
ends 0 "mixed images" "$stoker" show photos -o mixed.png --ops "$plain | Normalize | MixUp" --grid 4x1 --json
json out "both classes are named" 'all(s["caption"].count(".") == 2 or s["caption"].endswith("1.00") for s in d["samples"])'
ends 0 "cut images" "$stoker" show photos -o cut.png --ops "$plain | CutMix" --grid 4x1
ends 0 "the five crops" "$stoker" show photos -o five.png --ops "Resize(60) | FiveCrop(32)" --index 3 --draws 5
tar --sort=name -cf photos.tar photos
ends 0 "one sample of a shard" "$stoker" show photos.tar -o tar.png --ops "$ops" --index 17 --epoch 3 --json
json out "one sample of a shard" 'd["sample"] == 17 and d["path"].startswith("photos.tar/")'
head -c 30720 /dev/urandom >pixels.bin
ends 0 "one sample of an array" "$stoker" show 'raw:pixels.bin?dtype=uint8&shape=32,32,3' -o raw.png --ops "$ops" --index 3
ends 2 "a sample that is not there" "$stoker" show photos -o x.png --ops "$ops" --index 24
says err 'there is no sample 24; the source has 24' "how many there are"
for f in x.gif x -; do
  ends 2 "-o $f" "$stoker" show photos -o $f --ops "$ops"
  says err 'ends in \.png, \.jpg or \.webp' "-o $f"
done
for o in "$ops | Normalize | Normalize" "Normalize | $ops" "$ops | Normalize(mean=(1, 2))"; do
  "$stoker" bench photos --ops "$o" --epochs 1 >/dev/null 2>refused
  want=$?
  ends $want "show and bench take the same ops: $o" "$stoker" show photos -o same.png --ops "$o"
done
ends 2 "a grid that is none" "$stoker" show photos --grid 8by5
ends 3 "a folder that is not there" "$stoker" show photos -o nowhere/x.png --ops "$ops"
[ ! -e x.png ] || fail "a failure leaves no file"
ls | grep -q 'tmp$' && fail "temporary files are left"
finish
