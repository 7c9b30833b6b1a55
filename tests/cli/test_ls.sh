#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker ls
. "$(dirname "$0")/lib.sh"
make_photos

ends 0 "ls" "$stoker" ls photos
says out 'samples +24' "the count"
says out 'classes +4' "the classes"
says out 'fingerprint +[0-9a-f]{16}$' "the fingerprint"
says out 'amber_' "the names of the classes"
ends 0 "ls of a list" sh -c "find photos -name '*.jpg' | sort > list.txt; '$stoker' ls list.txt"
says out 'samples +24' "the count of a list"

ends 2 "a field that a folder has not" "$stoker" ls photos --fields "image, caption"
says err 'no column caption; the columns are image, label' "what it has"
ends 0 "ls --json" "$stoker" ls photos --json
json out "ls" 'd["samples"] == 24 and d["n_classes"] == 4 and len(d["classes"]) == 4 and d["formats"]["JPEG"] == 24'
json out "ls" 'sum(c["samples"] for c in d["classes"]) == 24 and len(d["fingerprint"]) == 16'
json out "ls" 'd["width"]["min"] <= d["width"]["median"] <= d["width"]["max"] <= 150'
ends 0 "ls --take" "$stoker" ls photos --take 5 --json
json out "ls --take" 'd["samples"] == 5'

# What a list has besides, and what sources that are joined do not share.
{ echo path,label,caption,score && sed 's/$/,0,a photo,0.5/' list.txt; } >columns.csv
ends 0 "ls of a table" "$stoker" ls columns.csv
says out 'fields +image:image, label:int$' "its fields"
says out 'columns +available with --fields: caption, score$' "columns that nobody asked for"
ends 0 "ls of a column" "$stoker" ls columns.csv --fields caption
grep -q '^  columns' out && fail "who asks is told what he asked for"
sed 's/.*/{"image": "&", "caption": "a photo", "by": {"name": "x"}, "label": 0}/' list.txt >columns.jsonl
ends 0 "ls of JSON" "$stoker" ls columns.jsonl --json
json out "ls of JSON" 'd["columns"] == "caption, by.name" and d["left_out"] == ""'
mkdir plain && cp photos/*/*_000000.jpg plain
ends 0 "joined sources" "$stoker" ls photos files:plain
says out 'left out +not in every source: label \(not in files:plain\)' "what was left out"

# Rows that are copied straight into the batch have bytes, too.
ends 0 "arrays" "$stoker" pack photos arrays --to hdf5 --as raw --ops 'Resize(32) | CenterCrop(32)'
ends 0 "ls of arrays" "$stoker" ls 'hdf5:arrays/data.h5?image=images' --json
json out "ls of arrays" 'd["bytes"] == 24 * 32 * 32 * 3 and d["file_bytes"]["min"] == 32 * 32 * 3'
ends 2 "a dataset that is none" "$stoker" ls 'hdf5:arrays/data.h5?image=image'
says err 'no dataset image; the datasets are images, keys, labels; did you mean images\?' "which there are"

# A shuffle by windows is told where a window is less than all; of HDF5, what is no field is a dataset.
(cd photos && tar --sort=name -czf ../small.tar.gz .)
ends 0 "ls of compressed shards" "$stoker" ls small.tar.gz
says out 'tar shards, compressed$' "one window is a shuffle of all"
if "${STOKER_PYTHON:-python3}" -c 'import h5py' 2>/dev/null; then
  "${STOKER_PYTHON:-python3}" -c 'import h5py; h = h5py.File("odd.h5", "w"); h["x"] = [1.0] * 9; h["y"] = [2.0] * 9; h["z"] = [3.0]'
  ends 0 "ls of datasets" "$stoker" ls odd.h5
  says out 'skipped +datasets of another length.* 1$' "a dataset that is no field"
fi

# Bad ones are shown, names of any bytes are survived, and ls still ends with 0.
first=$(ls photos | head -n 1)
printf '<html>' >"photos/$first/page.jpg"
odd=$(printf 'a\377b\nc.jpg')
cp "$(find photos -name '*_000000.jpg')" "photos/$first/$odd"
ends 0 "ls with bad ones" "$stoker" ls photos
says out '1 bad sample found without decoding' "a bad one is counted"
says out 'page\.jpg: ' "a bad one is named"
ends 0 "ls --json with bad ones" "$stoker" ls photos --json
json out "bad ones" 'd["bad"] == 1 and d["samples"] == 26 and d["bad_samples"][0]["path"].endswith("page.jpg")'
mkdir "photos/z$(printf 'q\351"\\')"
cp "$(find photos -name '*_000001.jpg')" "photos/z$(printf 'q\351"\\')/x.jpg"
ends 0 "a class of odd bytes" "$stoker" ls photos --json
json out "a class of odd bytes" 'd["classes"][-1]["name"].encode("utf-8", "surrogateescape") == b"zq\xe9\"\\"'

{ cat list.txt && echo photos/gone.jpg; } >more.txt
ends 0 "a file that is missing" "$stoker" ls more.txt
says out 'missing +1 file; a missing file is a bad sample' "a file that is missing"
grep -q 'skipped.*missing' out && fail "a missing file is not skipped"
ends 0 "a file that is missing, in JSON" "$stoker" ls more.txt --json
json out "a file that is missing" 'd["missing"] == 1 and d["samples"] == 25 and d["complete"] and d["error"] is None'

mkdir empty
"$stoker" ls empty >out 2>err
[ $? != 0 ] || fail "an empty folder is no success"
[ -s err ] || fail "an empty folder has words"

# Sources of several kinds: what all have, fields of each, classes by name.
mkdir two && cp -r "photos/$first" two/other
(cd photos && tar --sort=name -cf ../part.tar "$first")
ends 0 "two folders of other classes" "$stoker" ls photos two
says out ' other ' "a class of the second"
ends 0 "a folder and a tar" "$stoker" ls photos part.tar --fields image
says out 'fields +image:image' "what was asked for"
ends 0 "fields of each" "$stoker" ls photos part.tar --fields pixels=image --fields pixels=jpg
says out 'fields +pixels:image' "their common name"
ends 2 "fields for one source too many" "$stoker" ls photos --fields image --fields image
says err 'given 2 times for 1 source;' "how often it may be given"

mkdir shards && cp part.tar shards
ends 2 "a folder of shards" "$stoker" ls shards
says err 'no images, but 1 file \.tar; to read them, use FOLDER/\*\.tar' "how they are addressed"
for suffix in tzst tfrecords hdf; do
  rm -rf shards && mkdir shards && echo none >shards/part.$suffix
  ends 2 "a folder of .$suffix" "$stoker" ls shards
  says err "no images, but 1 file \.$suffix; to read them, use FOLDER/\*\.$suffix" "how .$suffix is addressed"
done

mkdir tables && echo PAR1 >tables/a.parquet && echo PAR1 >tables/b.parquet
ends 2 "a folder of Parquet files" "$stoker" ls tables
says err 'but 2 files \.parquet, which are read only from Python' "where they are read"

echo nothing/there.jpg >one.txt
ends 3 "a list of one file that is none" "$stoker" ls one.txt
says err 'its only file does not exist; it was expected at ' "one file is one"

# More classes than a screen has lines.
ends 0 "many classes" "$stoker" synth many --samples 60 --classes 60 --size 32
ends 0 "ls of many" "$stoker" ls many
says out 'and 40 more' "the list is cut"
ends 0 "ls --all" "$stoker" ls many --all
[ "$(grep -cE '^ +[0-9]+  .* 1$' out)" = 60 ] || fail "--all shows all"
# Annotations: classes belong to boxes, which are not counted.
mkdir -p boxes/annotations && cp -r many boxes/val
cat >boxes/annotations/instances_val.json <<EOF
{"images": [{"id": 4, "file_name": "$(cd many && find . -name '*.jpg' | sort | head -n 1)", "width": 32, "height": 32}],
 "categories": [{"id": 7, "name": "cat"}],
 "annotations": [{"id": 9, "image_id": 4, "category_id": 7, "bbox": [1, 2, 3, 4]}]}
EOF
ends 0 "COCO annotations" "$stoker" ls boxes/annotations/instances_val.json
says out 'boxes:boxes\(xywh\), labels:each:int64' "their fields"
says out '^  classes +1$' "their classes"
ends 0 "cat of annotations" "$stoker" cat boxes/annotations/instances_val.json 0
says out 'boxes +tensor +float32\(1, 4\) +16  1 2 3 4' "a box"
sed 's/"image_id": 4/"image_id": 5/' boxes/annotations/instances_val.json >boxes/annotations/wrong_val.json
ends 1 "a dangling id" "$stoker" ls boxes/annotations/wrong_val.json
says err 'wrong_val.json: annotation 9 refers to image 5' "which annotation"
# 2^26 rows, of which two chunks were ever written: the others are not looked at one by one.
sparse=hdf5:$(dirname "$here")/../fuzz/seeds/hdf5/sparse
ends 0 "2^26 rows" "$stoker" ls "$sparse" --json
json out "2^26 rows" 'd["samples"] == 2**26 and d["complete"] and d["file_bytes"]["median"] == 4 and d["bad"] == 0'
finish
